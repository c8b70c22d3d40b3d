"""The updater: each minute it looks which pods differ from what is recommended, and resizes or evicts some of them.

Between two passes it looks at VPAs to which something has happened (`decide.autoscaling.wake`); such a look evicts
nothing and restarts nothing.

    VPAs ─ targets ─ pods ─▶ decide.autoscaling.update.run ─▶ pods/resize, pods/eviction ─▶ events, metrics

It does nothing while no admission controller has renewed its Lease, since an evicted pod would come back as it was.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.client.controlling import Controlling
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.places import makes_places
from podfit.client.rest import Client
from podfit.client.targets import Targets
from podfit.client.vpa_kinds import VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.core.times import format_time
from podfit.decide.autoscaling import boost, update, wake
from podfit.decide.autoscaling.actions import (
    Action,
    ActionOutcome,
    EvictPod,
    RememberInfeasible,
    ResizePod,
    Skip,
    Tally,
)
from podfit.decide.autoscaling.conditions import IN_PLACE_BY_DEFAULT, IN_PLACE_TEXT, burst_refused, with_conditions
from podfit.decide.autoscaling.policies import in_place_by_default
from podfit.decide.autoscaling.view import concerned as concerned_pods
from podfit.decide.autoscaling.view import view_of
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.net.metrics import Metrics
from podfit.vpa.progress import repeat
from podfit.vpa.updater import metrics as measured
from podfit.vpa.updater.admission_status import admits
from podfit.vpa.updater.burst_poller import BurstPoller
from podfit.vpa.updater.bursts import BurstLoop
from podfit.vpa.updater.carry_out import Writer
from podfit.vpa.updater.metrics import UpdaterMetrics, VpaMetrics
from podfit.vpa.updater.settings import EvictionRate, UpdaterSettings
from podfit.vpa.wakes import Concerned, Wakes

log = logging.getLogger(__name__)
COMPONENT = "vpa-updater"
POD, VPA = "Pod", "VerticalPodAutoscaler"
BY_NAMESPACE = "namespace"
TRIES = 5
"""How often conditions are written that somebody takes away."""
LIVING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def _concerned(vpa: VerticalPodAutoscaler) -> Concerned:
    return Concerned(VPA, vpa.metadata.namespace, vpa.metadata.name)


class _OutOfTime(Exception):
    """The next pass is due."""


class Updater:
    """`passed` is told when the loop begins, and of every pass that has ended."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        settings: UpdaterSettings,
        metrics: Metrics | None = None,
        passed: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._clock, self._settings, self._passed = client, clock, settings, passed
        namespace, self._published = settings.namespace, settings.published()
        self._vpas = Informer(client, VPAS, clock=clock, namespace=namespace)
        by_namespace = {BY_NAMESPACE: lambda obj: (obj.metadata.namespace,)}
        self._pods = Informer(client, Pod, clock=clock, namespace=namespace, fields=LIVING, indexes=by_namespace)
        self._limit_ranges = Informer(client, LimitRange, clock=clock, namespace=namespace, indexes=by_namespace)
        self._targets = Targets(client, clock, namespace)
        self._recorder = EventRecorder(client, component=COMPONENT, clock=clock)
        asks_first = not settings.rules.upstream_compatible
        self._writer = Writer(client, clock, self._recorder, asks_first=asks_first)
        self._bursts = BurstLoop(client, clock, self._vpas, self._pods, self._targets, self._kept)
        self._bursts.polls = settings.poll_bursts > 0
        self._poller = BurstPoller(client, clock, self._bursts.bursting, settings.poll_bursts)
        self._evictions, self._resizes = (EvictionRate(settings.eviction_rate, clock) for _ in range(2))
        self._since: dict[str, datetime] = {}
        self._places_first = False
        self._infeasible: dict[str, RecommendedPodResources] = {}
        self._said: dict[str, tuple[frozenset[str], int]] = {}
        self.metrics = metrics or Metrics()
        self._measured = UpdaterMetrics(self.metrics, clock)
        self._wakes: Wakes = Wakes(clock)

    def _follow(self) -> None:
        """From now on what happens makes it look; what was there before is for the first pass."""
        self._pods.add_handler(update=self._pod_changed)
        self._vpas.add_handler(add=lambda new: self._vpa_changed(None, new), update=self._vpa_changed)
        self._wakes.forget()

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if wake.concerns(old, new):
            self._wakes.add(Concerned(POD, new.metadata.namespace, new.metadata.name))

    def _vpa_changed(self, old: VerticalPodAutoscaler | None, new: VerticalPodAutoscaler) -> None:
        if wake.asks(old, new):
            self._wakes.add(_concerned(new))

    async def run(self) -> None:
        """Update until cancelled; the first time one interval after the start."""
        informers: tuple[Informer[Any], ...] = (self._vpas, self._pods, self._limit_ranges, *self._targets.informers)
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            group.create_task(self._recorder.run())
            await asyncio.gather(*(informer.synced.wait() for informer in informers))
            if not self._settings.rules.upstream_compatible:
                self._follow()
                group.create_task(self._bursts.run())
                if self._settings.poll_bursts > 0:
                    group.create_task(self._poller.run())
            await repeat(
                self._measured_pass,
                every=self._settings.interval,
                clock=self._clock,
                passed=self._passed,
                wakes=self._wakes,
                look=self._look,
            )

    async def _measured_pass(self) -> None:
        with self._measured.step("total"):
            await self._pass()

    async def _pass(self) -> None:
        until, step = self._clock.monotonic() + self._settings.interval, self._measured.step
        with step("AdmissionInit"):
            if not await self._may_work():
                return
        self._measured.new_pass()
        if not self._settings.rules.upstream_compatible:
            self._places_first = await makes_places(self._client, self._clock)
        with step("ListVPAs"):
            vpas = self._kept()
            there = {vpa.metadata.uid for vpa in vpas}
            self._said = {uid: said for uid, said in self._said.items() if uid in there}
        with step("ListPods"):
            pods = concerned_pods(self._pods.list())
            self._note(pods)
        with step("FilterPods"):
            by_vpa = await self._by_vpa(Controlling(self._targets, vpas), pods)
        with step("EvictPods"):
            try:
                for vpa in vpas:
                    await asyncio.sleep(0)
                    await self._update(vpa, tuple(by_vpa.get(vpa.metadata.uid, ())), until)
            except _OutOfTime:
                log.info("the next pass is due, the rest of this one is left out")
        self._targets.scales.forget_old()

    async def _look(self, happened: tuple[Concerned, ...]) -> None:
        """At the VPAs to which something has happened, and at no others."""
        until = self._clock.monotonic() + self._settings.interval
        by_namespace: dict[str, list[VerticalPodAutoscaler]] = {}
        for vpa in self._kept():
            by_namespace.setdefault(vpa.metadata.namespace, []).append(vpa)
        places = {concerned.namespace for concerned in happened if concerned.namespace in by_namespace}
        if not places or not await self._may_work():
            return
        with self._measured.step("Look"):
            for namespace in sorted(places):
                vpas = by_namespace[namespace]
                controlling = Controlling(self._targets, vpas)
                asked = await self._asked(controlling, vpas, namespace, happened)
                if not asked:
                    continue
                pods = concerned_pods(self._pods.by_index(BY_NAMESPACE, namespace))
                by_vpa = await self._by_vpa(controlling, pods)
                for vpa in asked:
                    mine = tuple(by_vpa.get(vpa.metadata.uid, ()))
                    self._note_some(mine)
                    try:
                        await self._update(vpa, mine, until, looks=True)
                    except _OutOfTime:
                        log.info("the next pass is due, the rest of this look is left to it")
                        return

    async def _asked(
        self,
        controlling: Controlling,
        vpas: Sequence[VerticalPodAutoscaler],
        namespace: str,
        happened: tuple[Concerned, ...],
    ) -> list[VerticalPodAutoscaler]:
        """Those of `vpas` that an event names, or that control the pod which it names."""
        here = {concerned for concerned in happened if concerned.namespace == namespace}
        uids = {vpa.metadata.uid for vpa in vpas if _concerned(vpa) in here}
        for number, (kind, _, name) in enumerate(sorted(here), 1):
            if number % OBJECTS == 0:
                await asyncio.sleep(0)
            pod = self._pods.get(name, namespace) if kind == POD else None
            controls = await controlling.vpa_of(pod) if pod is not None else None
            if controls is not None:
                uids.add(controls.metadata.uid)
        return [vpa for vpa in vpas if vpa.metadata.uid in uids]

    async def _by_vpa(self, controlling: Controlling, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
        """The pods that each VPA controls, by its UID."""
        by_vpa: dict[str, list[Pod]] = {}
        for number, pod in enumerate(pods, 1):
            if number % OBJECTS == 0:
                await asyncio.sleep(0)
            controls = await controlling.vpa_of(pod)
            if controls is not None:
                by_vpa.setdefault(controls.metadata.uid, []).append(pod)
        return by_vpa

    async def _may_work(self) -> bool:
        lease = self._settings.admission
        if lease is None:
            return True
        try:
            there = await admits(self._client, self._clock, lease)
        except (ApiError, ConnectionError) as error:
            log.warning("nothing is updated, the admission controller's lease cannot be read error=%s", error)
            return False
        if not there:
            log.warning("nothing is updated, no admission controller renews %s/%s", lease.namespace, lease.name)
        return there

    def _kept(self) -> list[VerticalPodAutoscaler]:
        """The VPAs that change running pods: by their mode, or to end a boost."""
        return [vpa for vpa in self._vpas.list() if self._published.looks_at(vpa)]

    def _note(self, pods: Sequence[Pod]) -> None:
        """Since when pods are resizing, and what their nodes could not give; of pods that are gone, nothing (V-106)."""
        now, living = self._clock.now(), {pod.metadata.uid for pod in pods}
        resizing = {pod.metadata.uid for pod in pods if ResizeState.of(pod).stage is not ResizeStage.NONE}
        self._since = {uid: self._since.get(uid, now) for uid in resizing}
        self._infeasible = {uid: amounts for uid, amounts in self._infeasible.items() if uid in living}

    def _note_some(self, pods: Sequence[Pod]) -> None:
        """Does what `_note` does, for these pods alone."""
        now = self._clock.now()
        for pod in pods:
            uid = pod.metadata.uid
            if ResizeState.of(pod).stage is ResizeStage.NONE:
                self._since.pop(uid, None)
            else:
                self._since.setdefault(uid, now)

    async def _update(
        self, vpa: VerticalPodAutoscaler, pods: tuple[Pod, ...], until: float, *, looks: bool = False
    ) -> None:
        """`looks`: between two passes."""
        namespace = vpa.metadata.namespace
        self._note_ends(vpa, pods)
        told, last = self._measured.begin(vpa, len(pods), looks=looks), None
        view = view_of(
            vpa,
            pods,
            self._limit_ranges.list(namespace),
            self._clock.now(),
            wanted=self._targets.wanted,
            since=self._since,
            infeasible=self._infeasible,
            disturbs=not looks,
            places_first=self._places_first,
        )
        steps = update.run(view, self._settings.rules)
        tally = Tally()
        try:
            while True:
                action = next(steps) if last is None else steps.send(last)
                last = await self._carried_out(action, vpa, told, until)
        except StopIteration as end:
            tally = end.value
        finally:
            told.end(tally.evictable, tally.resizable)
        refused = burst_refused(self._bursts.refusals(vpa))
        await self._say(vpa, {**tally.conditions, **refused}, moved=told.moved)

    def _note_ends(self, vpa: VerticalPodAutoscaler, pods: Sequence[Pod]) -> None:
        """Boosts that last for a while after Ready end when that is over."""
        rules = self._settings.rules
        if rules.upstream_compatible or not rules.gates.cpu_startup_boost:
            return
        ends = (left for pod in pods if (left := boost.left(pod, vpa, self._clock.now())) is not None)
        if (first := min(ends, default=None)) is not None:
            self._wakes.add_after(first, _concerned(vpa))

    async def _say(self, vpa: VerticalPodAutoscaler, held_back: Mapping[str, str], *, moved: bool) -> None:
        """In conditions. A recommender that writes the status at the same time may undo it, so it is tried again."""
        uid, rules, now = vpa.metadata.uid, self._settings.rules, format_time(self._clock.now())
        said, tries = self._said.get(uid, (frozenset(), 0))
        wanted = dict(held_back)
        by_default = in_place_by_default(vpa, upstream_compatible=rules.upstream_compatible)
        there = any(condition.type == IN_PLACE_BY_DEFAULT for condition in vpa.status.conditions)
        if by_default and not there and (moved or IN_PLACE_BY_DEFAULT in said):
            wanted[IN_PLACE_BY_DEFAULT] = IN_PLACE_TEXT
            if IN_PLACE_BY_DEFAULT not in said:
                self._writer.announce_in_place(vpa)
        if with_conditions(vpa.status, wanted, now) == vpa.status:
            return
        tries = tries + 1 if wanted.keys() == said else 1
        self._said[uid] = frozenset(wanted), tries
        if tries <= TRIES:
            await self._writer.say(vpa, wanted)

    async def _carried_out(
        self, action: Action, vpa: VerticalPodAutoscaler, told: VpaMetrics, until: float
    ) -> ActionOutcome:
        """Raises _OutOfTime."""
        match action:
            case EvictPod():
                if not await self._evictions.taken(until):
                    told.eviction_failed(measured.EVICTION_WAIT)
                    raise _OutOfTime
                outcome = await self._writer.evict(action, vpa)
                told.evicted() if outcome is ActionOutcome.DONE else told.eviction_failed(measured.EVICTION)
                return outcome
            case ResizePod():
                if not await self._resizes.taken(until):
                    told.resize_failed(measured.IN_PLACE_WAIT)
                    raise _OutOfTime
                return await self._resize(action, told)
            case Skip():
                self._writer.skip(action.pod)
                told.skipped()
            case RememberInfeasible():
                self._infeasible[action.pod.metadata.uid] = action.recommendation
                told.resize_failed(measured.INFEASIBLE)
        return ActionOutcome.DONE

    async def _resize(self, action: ResizePod, told: VpaMetrics) -> ActionOutcome:
        outcome = await self._writer.resize(action)
        if outcome is not ActionOutcome.DONE:
            told.resize_failed(measured.UNBOOST if action.unboosts else measured.IN_PLACE)
            return outcome
        told.resized(unboosted=action.unboosts)
        return outcome
