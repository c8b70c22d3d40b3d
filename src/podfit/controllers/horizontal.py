"""The horizontal pod autoscaler: one pass over each, one sync period after the one before.

    scale ─▶ metrics, if they count ─▶ decide.autoscaling.horizontal ─▶ scale ─▶ events, status

An autoscaler that is new or changed waits for its period as well, and is looked at once in it; namespaces take turns.
What the windows of its behaviour need is remembered here, and in an annotation for the next process; by upstream's
rules it is lost.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.autoscaling.v1.types import Scale
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_labels
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.metric_readings import MetricReadings
from podfit.client.nodes import Nodes
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.client.scales import NoKind, Scales
from podfit.client.vpa_kinds import LASTING, VerticalAutoscalers
from podfit.controllers.base import BY_NAMESPACE, Controller, Key, by_namespace, key_of, namespace_of
from podfit.controllers.horizontal_metrics import HorizontalMetrics
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.selectors import Matcher, Selector, SelectorError
from podfit.decide.autoscaling.horizontal.asked_size import is_vertical_first, sized_first
from podfit.decide.autoscaling.horizontal.claims import Claims, demanded_label
from podfit.decide.autoscaling.horizontal.lasting import restored
from podfit.decide.autoscaling.horizontal.model import Memory, Outcome, Settings, View
from podfit.decide.autoscaling.horizontal.passing import (
    WARNING,
    finish,
    group_problem,
    lost,
    needs_readings,
    propose,
    reference,
)
from podfit.decide.node.room.growth import growth
from podfit.decide.node.room.plan import keeps_node
from podfit.net.loop_turns import beside
from podfit.net.metrics import Metrics

COMPONENT = "horizontal-pod-autoscaler"
ACCOUNT = "horizontal-pod-autoscaler"
CONFLICT = 409
_TRIES = 5
"""Of a scale that somebody else changes as well."""
_MISSING_SECONDS = 30.0
MOST_QUOTED = 1024
_BY_LABEL, _BY_NODE = "label", "active pods of a node"


def by_label(pod: Pod) -> Iterable[tuple[str, str, str]]:
    return ((pod.metadata.namespace, key, value) for key, value in pod.metadata.labels.items())


def by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if keeps_node(pod) else ()


class HorizontalPodAutoscalerController(Controller[Key]):
    def __init__(
        self,
        client: Client,
        *,
        informers: Informers,
        recorder: EventRecorder,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        usages: PodUsages,
    ) -> None:
        self._client, self._recorder, self._clock, self._settings = client, recorder, clock, settings
        self._autoscalers, self._pods = informers.of(HorizontalPodAutoscaler), informers.of(Pod)
        self._pods.add_index(BY_NAMESPACE, by_namespace)
        self._pods.add_index(_BY_LABEL, by_label)
        self._pods.add_index(_BY_NODE, by_node)
        self._scales = Scales(client, clock, missing_seconds=_MISSING_SECONDS)
        self._readings = MetricReadings(
            client, self._scales, clock, settings.sync_period, None if settings.upstream_compatible else usages
        )
        self._vpas, self._nodes = VerticalAutoscalers(client, clock), Nodes(client, clock)
        self._claims = Claims()
        self._memories: dict[Key, Memory] = {}
        self._metrics = HorizontalMetrics(metrics, lambda: len(self._autoscalers.list()))
        super().__init__(clock, self._autoscalers, self._pods, workers=settings.workers, share=namespace_of)
        self._autoscalers.add_handler(add=self._later, update=lambda _, new: self._later(new), delete=self._gone)

    def _later(self, autoscaler: HorizontalPodAutoscaler) -> None:
        self.queue.add_after(key_of(autoscaler), self._settings.sync_period)

    def _gone(self, autoscaler: HorizontalPodAutoscaler) -> None:
        self._claims.forget(key_of(autoscaler))
        self._later(autoscaler)

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        autoscaler = self._autoscalers.get(name, namespace)
        if autoscaler is None:
            self._memories.pop(key, None)
            return None
        began = self._clock.monotonic()
        outcome = await self._pass(key, autoscaler)
        if self._autoscalers.get(name, namespace) is not None:
            self._memories[key] = outcome.memory
        self._metrics.observe(key, outcome, self._clock.monotonic() - began)
        for event in outcome.events:
            self._recorder.event(autoscaler, event.type, event.reason, event.message)
        await self._say(autoscaler, outcome)
        return self._settings.sync_period

    async def _pass(self, key: Key, autoscaler: HorizontalPodAutoscaler) -> Outcome:
        memory, ref = self._memory(key, autoscaler), autoscaler.spec.scale_target_ref
        if problem := group_problem(ref.api_version):
            return self._lost(autoscaler, memory, problem, "invalid API version in scale target reference", spec=True)
        try:
            path = await self._scales.path(ref.api_version, ref.kind, key[0], ref.name)
            scale = await self._read_scale(path)
        except NoKind as error:
            return self._lost(autoscaler, memory, str(error), "unable to determine resource for scale target reference")
        except (ApiError, ConnectionError, ValueError) as error:
            told = f"failed to query scale subresource for {reference(autoscaler)}"
            return self._lost(autoscaler, memory, _message(error), told)
        view = self._view(key, autoscaler, scale, memory)
        if not self._settings.upstream_compatible:
            lasting = self._settings.sync_period if is_vertical_first(autoscaler) else LASTING
            view = replace(view, vpas=await self._vpas.of(key[0], lasting=lasting))
            view = await self._with_room(view)
        readings = (
            await self._readings.read(autoscaler.spec.metrics, key[0], scale.status.selector, view.pods)
            if needs_readings(view)
            else []
        )
        plan = await beside(len(view.pods), propose, view, readings, self._clock.now().timestamp())
        failure = ""
        if plan.scale_to is not None:
            failure = await self._write_scale(path, scale, plan.scale_to)
        return finish(plan, self._clock.now().timestamp(), failure)

    async def _with_room(self, view: View) -> View:
        """Only where pods may grow."""
        if not is_vertical_first(view.autoscaler) or not view.pods:
            return view
        names, settings = {pod.spec.node_name for pod in view.pods if keeps_node(pod)}, self._settings
        nodes = await self._nodes.by_name(names, at_most_every=settings.sync_period)
        on_node = {name: self._pods.by_index(_BY_NODE, name) for name in names}
        size, resources = sum(map(len, on_node.values())), sized_first(view.autoscaler)
        room = await beside(size, growth, view.pods, nodes, on_node, resources, settings.gates)
        return replace(view, room=room)

    def _memory(self, key: Key, autoscaler: HorizontalPodAutoscaler) -> Memory:
        found = self._memories.get(key)
        if found is not None:
            return found
        if self._settings.upstream_compatible:
            return Memory()
        return restored(autoscaler, self._settings, self._clock.now().timestamp())

    def _lost(
        self, autoscaler: HorizontalPodAutoscaler, memory: Memory, why: str, told: str, *, spec: bool = False
    ) -> Outcome:
        now = self._clock.now().timestamp()
        return lost(autoscaler, memory, why, f"{told}: {why}", now, in_spec=spec, settings=self._settings)

    def _view(self, key: Key, autoscaler: HorizontalPodAutoscaler, scale: Scale, memory: Memory) -> View:
        view = View(
            autoscaler=autoscaler,
            replicas=scale.spec.replicas,
            reported=scale.status.replicas,
            selector=scale.status.selector,
            memory=memory,
            settings=self._settings,
        )
        if not scale.status.selector or not needs_readings(view):
            return view
        selector = parse_labels(scale.status.selector)
        self._claims.claim(key, selector)
        pods = self._selected(key[0], selector)
        return replace(view, pods=pods, rivals=tuple("/".join(rival) for rival in self._claims.rivals(key, pods)))

    def _selected(self, namespace: str, selector: Selector) -> tuple[Pod, ...]:
        """In the order of their names."""
        label = demanded_label(selector)
        if label is None:
            pods = self._pods.by_index(BY_NAMESPACE, namespace)
        else:
            pods = self._pods.by_index(_BY_LABEL, (namespace, *label))
        matcher = Matcher(selector.requirements)
        return tuple(
            sorted((pod for pod in pods if matcher.matches(pod.metadata.labels)), key=lambda pod: pod.metadata.name)
        )

    async def _read_scale(self, path: str) -> Scale:
        """Raises ValueError for a scale whose selector cannot be read."""
        scale = codec.decode(await self._client.request("GET", path), Scale)
        try:
            parse_labels(scale.status.selector)
        except SelectorError as error:
            raise ValueError(
                "received an object from a /scale endpoint which was not convertible to autoscaling Scale: failed to "
                f'parse target selector: couldn\'t parse the selector string "{_short(scale.status.selector)}": {error}'
            ) from error
        return scale

    async def _write_scale(self, path: str, scale: Scale, replicas: int) -> str:
        """Why it was not written; empty when it was."""
        for attempt in range(1, _TRIES + 1):
            wanted = replace(scale, spec=replace(scale.spec, replicas=replicas))
            try:
                await self._client.request("PUT", path, codec.encode(wanted))
                return ""
            except (ApiError, ConnectionError) as error:
                if not (isinstance(error, ApiError) and error.code == CONFLICT and attempt < _TRIES):
                    return _message(error)
            try:
                scale = await self._read_scale(path)
            except (ApiError, ConnectionError, ValueError) as error:
                return _message(error)
        raise AssertionError("the last try returns")

    async def _say(self, autoscaler: HorizontalPodAutoscaler, outcome: Outcome) -> None:
        if outcome.status == autoscaler.status and not outcome.annotations:
            return
        meta = autoscaler.metadata
        if outcome.annotations:
            meta = replace(meta, annotations={**meta.annotations, **outcome.annotations})
        try:
            await self._client.update_status(replace(autoscaler, metadata=meta, status=outcome.status))
        except (ApiError, ConnectionError) as error:
            self._recorder.event(autoscaler, WARNING, "FailedUpdateStatus", _message(error))


def _short(selector: str) -> str:
    """Whoever writes the target's status writes this, and it ends in the status of the autoscaler."""
    return selector if len(selector) <= MOST_QUOTED else f"{selector[:MOST_QUOTED]}..."


def _message(error: Exception) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
