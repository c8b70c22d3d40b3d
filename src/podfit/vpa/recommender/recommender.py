"""The recommender: each minute it counts usage, and writes what it recommends and what it must remember.

    metrics.k8s.io ─ samples ─┐
    pods ─ containers, OOMs ──┼─▶ ClusterState ─▶ status of each VPA, where it differs
    targets ─ selectors ──────┘        │ ▲
                                       ▼ │ at the start
                                  checkpoints

Between two passes a container that ran out of memory, and a VPA whose spec was changed, are looked at on the event:
what is recommended there is written without waiting for usage.

Nothing that is missing changes a recommendation: not usage, not a target, not the API server.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import (
    CrossVersionObjectReference,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.recommender.v1alpha1 import PodRecommendationStatus
from podfit.client.controlling import Controlling
from podfit.client.informer import Informer
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.client.targets import Targets, Unsupported
from podfit.client.vpa_kinds import VPAS
from podfit.client.workloads import NOTHING
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import Selector
from podfit.core.times import format_time, parse_time
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.conditions import said_while_observing
from podfit.decide.autoscaling.nodes_and_autoscalers import Around, around, beside_autoscalers, capped_to_nodes
from podfit.decide.autoscaling.pod_recommendation import NO_VPA, answered
from podfit.decide.autoscaling.policies import UPDATE_MODES, is_for, stored_mode
from podfit.decide.autoscaling.quality import Quality, begin, remember
from podfit.decide.autoscaling.scope import EVERY_SLICE, NO_RULES, Rules
from podfit.decide.autoscaling.slices import recommended_by_slice, slice_for, slice_told, told_to, with_slices
from podfit.decide.autoscaling.status import Estimated, VpaInputs, provided, status
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.net.metrics import Metrics
from podfit.vpa.history.own.recorder import Recorder
from podfit.vpa.progress import repeat
from podfit.vpa.recommender.checkpoints import Checkpoints
from podfit.vpa.recommender.external_usage import ExternalMetrics, external_samples
from podfit.vpa.recommender.initial import FILE, InitialResources
from podfit.vpa.recommender.metrics import RecommenderMetrics, expose
from podfit.vpa.recommender.pods import Pods
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.recommender.starting import PastSource, start
from podfit.vpa.recommender.usage import Sample, samples
from podfit.vpa.recommender.workers import each_by_workers
from podfit.vpa.statuses import write_status
from podfit.vpa.wakes import Concerned, Wakes


class NodesAndAutoscalers:
    """Nobody waits until its informers are synced."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._nodes = Informer(client, Node, clock=clock)
        self._autoscalers = Informer(client, HorizontalPodAutoscaler, clock=clock, namespace=namespace)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return self._nodes, self._autoscalers

    def now(self) -> Around:
        return around(self._nodes.list(), self._autoscalers.list())


log = logging.getLogger(__name__)
COMPONENT = "vpa-recommender"
POD, VPA = "Pod", "VerticalPodAutoscaler"
COLLECT_SECONDS = 3600.0


class Recommender:
    """`passed` is told when the loop begins, and of every pass that has ended. `usages`: what others of the process
    read as well. What it sees goes to `recorder`.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        settings: RecommenderSettings,
        metrics: Metrics | None = None,
        passed: Callable[[], None] = lambda: None,
        history: PastSource | None = None,
        usages: PodUsages | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._client, self._clock, self._settings, self._passed = client, clock, settings, passed
        compatible = settings.upstream_compatible
        self._state = ClusterState(settings.flags, settings.gates, upstream_compatible=compatible)
        namespace = settings.namespace
        self._quality = Quality(UPDATE_MODES)
        self._vpas = Informer(client, VPAS, clock=clock, namespace=namespace)
        self._history = history
        self._usages = usages or PodUsages(client, clock, namespace=namespace)
        self._targets = Targets(client, clock, namespace)
        self._wakes = Wakes(clock)
        self._pods = Pods(
            client,
            clock,
            self._state,
            namespace,
            selected_only=settings.memory_saver,
            sidecars=not compatible,
            quality=self._quality,
            told_of_oom=self._oom,
            recorder=recorder,
        )
        self._recorder = recorder
        self._around = None if compatible else NodesAndAutoscalers(client, clock, namespace)
        self._initial = (
            None if compatible else InitialResources(client, clock, self._targets, self._pods, _kept_in(recorder))
        )
        self._checkpoints = Checkpoints(client, clock, self._state, namespace)
        self._selectors: dict[VpaKey, tuple[CrossVersionObjectReference | None, Selector]] = {}
        self._unsupported: dict[VpaKey, str] = {}
        self._ended_at = self._collected_at = clock.monotonic()
        self._ready = False
        self.metrics = metrics or Metrics()
        self._measured = RecommenderMetrics(self.metrics, clock, self._own, self._aggregates)
        expose(self.metrics, self._quality)

    async def run(self) -> None:
        """Recommend until cancelled; the first time one interval after the start."""
        informers: tuple[Informer[Any], ...] = (self._vpas, *self._pods.informers, *self._targets.informers)
        async with asyncio.TaskGroup() as group:
            beside = (*self._around.informers, self._initial.namespaces) if self._around and self._initial else ()
            for informer in (*informers, *beside):
                group.create_task(informer.run())
            if self._recorder is not None:
                group.create_task(self._recorder.run())
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
            await self._load_vpas()
            await start(self._state, self._checkpoints, self._history, self._clock)
            if self._initial is not None:
                await self._initial.load()
                group.create_task(self._initial.keep())
            self._ready = True
            if not self._settings.upstream_compatible:
                self._vpas.add_handler(update=self._vpa_changed)
            await repeat(
                self._measured_pass,
                every=self._settings.interval,
                clock=self._clock,
                passed=self._passed,
                wakes=self._wakes,
                look=self._look,
            )

    def _oom(self, pod: PodKey) -> None:
        if self._ready and not self._settings.upstream_compatible:
            self._wakes.add(Concerned(POD, *pod))

    def _vpa_changed(self, old: VerticalPodAutoscaler, new: VerticalPodAutoscaler) -> None:
        if old.spec != new.spec:
            self._wakes.add(Concerned(VPA, *_key(new)))

    async def _look(self, happened: tuple[Concerned, ...]) -> None:
        """At what happened, and at the VPAs that it concerns."""
        changed = {VpaKey(namespace, name) for kind, namespace, name in happened if kind == VPA}
        with self._measured.step("Look"):
            if changed:
                await self._load_vpas()
            self._pods.count_ooms()
            for kind, namespace, name in happened:
                if kind == POD:
                    changed.update(self._state.selected_by(PodKey(namespace, name)))
            await self._update_vpas(changed)

    async def _measured_pass(self) -> None:
        with self._measured.step("total"):
            await self._pass()

    async def _pass(self) -> None:
        step = self._measured.step
        with step("LoadVPAs"):
            await self._load_vpas()
        with step("LoadMetrics"):
            await self._load_metrics()
        with step("DeleteRemovedPods"):
            self._pods.drop_gone()
        with step("UpdateVPAs"):
            await self._update_vpas()
        with step("MaintainCheckpoints"):
            await self._maintain_checkpoints()
        with step("GarbageCollect"):
            self._forget_ended()

    def _own(self) -> list[VerticalPodAutoscaler]:
        """The VPAs of this recommender (V-045)."""
        settings = self._settings
        return [
            vpa
            for vpa in self._vpas.list()
            if is_for(vpa, settings.name) and vpa.metadata.namespace not in settings.ignored
        ]

    async def _load_vpas(self) -> None:
        own = {_key(autoscaler): autoscaler for autoscaler in self._own()}
        for key in [key for key in self._state.vpas if key not in own]:
            self._state.remove_vpa(key)
            self._selectors.pop(key, None)
            self._unsupported.pop(key, None)
        new = {key: stored_mode(vpa) for key, vpa in own.items() if not self._state.has_vpa(key)}
        for number, (key, vpa) in enumerate(own.items(), 1):
            if number % OBJECTS == 0:
                await asyncio.sleep(0)
            rules = Rules.of(vpa.metadata.annotations) if not self._settings.upstream_compatible else NO_RULES
            selector, policy = await self._selector(key, vpa), vpa.spec.resource_policy
            self._state.set_vpa(key, selector, policy, rules, self._clock.now().timestamp())
        self._pods.select()
        begin(self._quality, self._state, new)

    async def _selector(self, key: VpaKey, vpa: VerticalPodAutoscaler) -> Selector:
        """The selector of the target; while it cannot be read, the one that the same target had (docs/vpa.md)."""
        target = vpa.spec.target_ref
        try:
            found = await self._targets.selector(key.namespace, target)
        except Unsupported as error:
            self._unsupported[key] = str(error)
            before, selector = self._selectors.get(key, (None, NOTHING))
            return selector if before == target else NOTHING
        self._unsupported.pop(key, None)
        self._selectors[key] = target, found
        return found

    async def _load_metrics(self) -> None:
        if self._settings.external is not None:
            await self._load_external(self._settings.external)
        else:
            await self._load_usage()
        self._pods.count_ooms()

    async def _load_usage(self) -> None:
        try:
            told = list(samples(await self._usages.read()))
        except (ApiError, ConnectionError, ValueError) as error:
            self._measured.answered(error=True)
            log.warning("usage not read, recommendations stay error=%s", error)
        else:
            self._measured.answered(error=False)
            await self._count(told)

    async def _load_external(self, metrics: ExternalMetrics) -> None:
        asked = [
            (pod, selector) for key, (_, selector) in self._selectors.items() for pod in self._pods.of(key, selector)
        ]
        found = await external_samples(self._client, metrics, asked, self._settings.workers)
        self._measured.answered(error=bool(found.problems))
        if found.problems:
            log.warning("usage not read number=%d first=%s", len(found.problems), found.problems[0])
        await self._count(found.samples)

    async def _count(self, told: Sequence[Sample]) -> None:
        self._pods.count(told)
        if self._recorder is not None:
            await self._recorder.usage(told)
        if self._initial is not None:
            await self._initial.count(sample for sample in told if sample.pod.namespace not in self._settings.ignored)

    async def _update_vpas(self, only: set[VpaKey] | None = None) -> None:
        """Of a look `only` these; the quality of recommendations is told from pass to pass."""
        known = set(self._state.vpas)  # one that came since then is for the next pass
        if only is not None:
            known &= only
        vpas = {key: vpa for vpa in self._own() if (key := _key(vpa)) in known}
        beside = self._around.now() if self._around else Around()
        found = self._state.found({key: vpa.metadata.annotations for key, vpa in vpas.items()})
        if only is None:
            remember(self._quality, self._state, found, {key: stored_mode(vpa) for key, vpa in vpas.items()})
        await each_by_workers(
            self._settings.workers, vpas.items(), lambda keyed: self._update(*keyed, found[keyed[0]], beside)
        )

    async def _update(self, key: VpaKey, vpa: VerticalPodAutoscaler, estimated: Estimated, beside: Around) -> None:
        """Write the status, if it is another one than before (V-050)."""
        now, slices = self._clock.now(), self._state.found_by_slice(key, vpa.metadata.annotations)
        try:
            new = await write_status(self._client, vpa, self._maker(key, estimated, slices, beside))
        except (ApiError, ConnectionError) as error:
            log.warning("status not written vpa=%s/%s error=%s", *key, error)
            return
        if self._recorder is not None:
            self._recorder.recommended(vpa, new or vpa.status)
        created = vpa.metadata.creation_timestamp
        if created and new and new.recommendation and not provided(vpa).container_recommendations:
            self._measured.recommended_first((now - parse_time(created)).total_seconds())

    def _maker(
        self, key: VpaKey, estimated: Estimated, slices: Mapping[str, Estimated], beside: Around
    ) -> Callable[[VerticalPodAutoscaler], VerticalPodAutoscalerStatus]:
        """What makes the status that a VPA is to have now."""
        seen = VpaInputs(estimated, self._state.pods_of(key), self._unsupported.get(key, ""))
        now, bounds = self._clock.now(), self._bounds(beside)

        def made(newest: VerticalPodAutoscaler) -> VerticalPodAutoscalerStatus:
            text = format_time(now)
            bounded = capped_to_nodes(status(newest, seen, text, bounds), beside.most, text)
            told = beside_autoscalers(bounded, newest, beside, bounds, text)
            alike = beside.sized_by_autoscalers(key.namespace, newest.spec.target_ref)
            sliced = recommended_by_slice(newest, slices, self._state.own.left(key), bounds, alike)
            return said_while_observing(with_slices(told, newest, sliced, now), newest, now)

        return made

    def _bounds(self, beside: Around) -> ResourceList:
        """The most that a container may get where its policy says nothing."""
        flags = self._settings.flags.render
        most = {CPU: flags.max_allowed_cpu, MEMORY: flags.max_allowed_memory}
        return {**beside.most, **{name: most for name, most in most.items() if most is not None}}

    async def recommend_to(self, pod: Pod) -> PodRecommendationStatus | None:
        """What the pod, of a namespace, would be given now, from what is known at this moment; None before the first
        VPAs and what was remembered of them are read.
        """
        if not self._ready:
            return None
        initial = await self._initial.of(pod) if self._initial is not None else ()
        return replace(await self._by_vpa(pod), initial=initial)

    async def _by_vpa(self, pod: Pod) -> PodRecommendationStatus:
        own = [vpa for vpa in self._own() if vpa.metadata.namespace == pod.metadata.namespace]
        vpa = await Controlling(self._targets, own).vpa_of(pod)
        if vpa is None or not self._state.has_vpa(_key(vpa)):
            return PodRecommendationStatus(message=NO_VPA)
        key = _key(vpa)
        estimated = self._state.found({key: vpa.metadata.annotations})[key]
        beside = self._around.now() if self._around else Around()
        slices = self._state.found_by_slice(key, vpa.metadata.annotations, {EVERY_SLICE, slice_for(vpa, pod)})
        vpa = replace(vpa, status=self._maker(key, estimated, slices, beside)(vpa))
        if not self._state.own.rules(key).any:
            return answered(pod, vpa, vpa.status, estimated, self._state.confidence(key))
        told, sliced = told_to(vpa, pod), slices.get(slice_for(vpa, pod), estimated)
        answer = answered(pod, told, told.status, sliced, self._state.confidence(key))
        return replace(answer, message=slice_told(vpa, pod))

    async def _maintain_checkpoints(self) -> None:
        settings = self._settings
        if self._history is not None and self._history.instead:
            return
        await self._checkpoints.write(settings.checkpoints_timeout, settings.workers)
        if self._clock.monotonic() - self._collected_at >= settings.checkpoints_gc_interval:
            self._collected_at = self._clock.monotonic()
            await self._checkpoints.collect(self._every_vpa, settings.ignored)

    def _every_vpa(self) -> set[VpaKey]:
        return set(map(_key, self._vpas.list()))

    def _forget_ended(self) -> None:
        self._targets.scales.forget_old()
        if self._clock.monotonic() - self._ended_at >= COLLECT_SECONDS:
            self._ended_at = self._clock.monotonic()
            dropped = self._state.forget_ended(self._clock.now().timestamp())
            log.info("aggregates dropped that have ended number=%d", dropped)

    def _aggregates(self) -> int:
        return int(self._state.model.aggregates.slots.used.sum())


def _kept_in(recorder: Recorder | None) -> Path | None:
    return recorder.root / FILE if recorder is not None else None


def _key(vpa: VerticalPodAutoscaler) -> VpaKey:
    return VpaKey(vpa.metadata.namespace, vpa.metadata.name)
