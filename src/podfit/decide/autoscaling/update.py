"""The updater's run for one VPA, as a generator: it yields actions and is sent their outcomes.

    action = next(run); while True: action = run.send(carry_out(action))

An eviction that was refused is no disruption, and a resize that was refused may become an eviction: so what comes next
depends on what came of the action before. Nothing here waits or asks; rate limits are the caller's.
"""

from collections.abc import Generator, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity
from podfit.decide.autoscaling import boost
from podfit.decide.autoscaling.actions import (
    Action,
    ActionOutcome,
    Deed,
    EvictPod,
    RememberInfeasible,
    ResizePod,
    Run,
    Skip,
    Steps,
    Tally,
    Verdict,
)
from podfit.decide.autoscaling.conditions import MEMORY_IN_USE, TOO_FEW_REPLICAS, memory_in_use, too_few
from podfit.decide.autoscaling.container_view import sized
from podfit.decide.autoscaling.groups import Group, groups, owner_of, too_small
from podfit.decide.autoscaling.in_place import (
    Decision,
    Judgement,
    decide,
    protected,
    restarts_nothing,
    stalled,
    waits_for_memory,
)
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.patches import (
    Operation,
    Resources,
    boosted_again,
    recommended_resources,
    resource_patches,
)
from podfit.decide.autoscaling.policies import (
    ACTIVE_MODES,
    IN_PLACE,
    IN_PLACE_OR_RECREATE,
    OFF,
    RECREATE,
    acting_mode,
    observes,
    observing_text,
)
from podfit.decide.autoscaling.priority import Priority, admitted, left_because, priority
from podfit.decide.autoscaling.shrinks import differs, guards
from podfit.decide.autoscaling.slices import told_to
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.pod.spare import is_spare

UPDATED = "vpaInPlaceUpdated"
PLACE_TIME = timedelta(minutes=20)
"""How long a pod that its node has no room for is left to the cluster autoscaler: a node's time to come, and more."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A VPA and the pods that it controls. `since` says by UID when a pod was first seen resizing (forgotten when it is
    not), `infeasible` what its node could not give; `configured` is how many pods a controller wants. Without
    `disturbs` no pod is evicted and no container restarted: those keep the pace of the passes. `places_first`: the
    cluster autoscaler makes a place for pods that their nodes have no room for.
    """

    vpa: VerticalPodAutoscaler
    pods: tuple[Pod, ...]
    configured: Mapping[ObjectIdentity, int]
    now: datetime
    limit_ranges: tuple[LimitRange, ...] = ()
    since: Mapping[str, datetime] = msgspec.field(default_factory=dict)
    infeasible: Mapping[str, RecommendedPodResources] = msgspec.field(default_factory=dict)
    disturbs: bool = True
    places_first: bool = False


def run(view: View, settings: UpdateSettings) -> Run:
    return _Run(view, settings).actions()


class _Run:
    def __init__(self, view: View, settings: UpdateSettings) -> None:
        self.view, self.settings, self.tally = view, settings, Tally()
        self.observes = observes(view.vpa, view.now)
        acting = acting_mode(view.vpa, upstream_compatible=settings.upstream_compatible)
        self.mode = OFF if self.observes else acting
        self.pods = tuple(
            pod for pod in view.pods if is_active(pod) and owner_of(pod) is not None and not is_spare(pod)
        )
        policy = view.vpa.spec.update_policy
        own = policy.min_replicas if policy else None
        self.minimum = settings.min_replicas if own is None else own
        below_minimum = settings.skip_disruption_budget or not settings.upstream_compatible
        self.groups = groups(
            self.pods,
            view.configured,
            min_replicas=self.minimum,
            tolerance=settings.tolerance,
            in_place_below_minimum=below_minimum and self.mode in (IN_PLACE, IN_PLACE_OR_RECREATE),
        )
        self.infeasible = dict(view.infeasible)
        self.changed: set[str] = set()
        self.deeds: dict[str, Deed] = {}
        self.reasons: dict[str, str] = {}
        """By UID why a pod is left; the last check that spoke counts."""

    def actions(self) -> Run:
        ordinary = yield from self._boosts()
        evict: list[Pod] = []
        if self.mode == IN_PLACE_OR_RECREATE or (self.mode == IN_PLACE and self.settings.gates.in_place):
            evict = yield from self._in_place(ordinary)
        elif self.mode == RECREATE:
            evict = [pod for pod, _ in self._ordered([pod for pod in ordinary if self._evictable(pod)])]
        self.tally.evictable = len(evict)
        evict = [pod for pod in evict if not self._gets_a_place(pod)]
        for pod in evict if self.view.disturbs else ():
            group = self._group_of(pod)
            if group is None or not self._evictable(pod):
                continue
            outcome = yield EvictPod(pod)
            self._leave(pod, "its eviction was refused")
            if outcome is ActionOutcome.DONE:
                self.deeds[pod.metadata.uid] = Deed.EVICTED
                if pod.status.phase != "Pending":
                    group.evicted += 1
        self.tally.verdicts = tuple(map(self._verdict, self.view.pods))
        if not self.settings.upstream_compatible:
            self.tally.conditions = dict(self._held_back(ordinary))
        return self.tally

    # ------------------------------------------------------------ boosts

    def _boosts(self) -> Generator[Action, ActionOutcome, list[Pod]]:
        """The pods of which no boost goes on or begins."""
        boosts, ordinary = self.settings.gates.cpu_startup_boost, []
        for pod in self.pods:
            if boosts and any(boost.boosted_containers(pod)):
                self._leave(pod, "its startup boost is not over")
                yield from self._unboost(pod)
            elif again := self._starting_again(pod):
                self._leave(pod, "its startup boost is not over")
                yield from self._boost_again(pod, again)
            else:
                ordinary.append(pod)
        return ordinary

    def _unboost(self, pod: Pod) -> Steps:
        """V-108: to what is recommended, or to what the containers had."""
        vpa, group = self.view.vpa, self._group_of(pod)
        boosted = tuple(boost.boosted_containers(pod))
        ended = tuple(name for name in boosted if boost.expired(pod, vpa, name, self.view.now))
        if not ended or group is None or pod.status.phase == "Pending" or not self._may_unboost(pod):
            return
        if not self._costs_nothing(pod, ended) and not (group.disruptable and self.view.disturbs):
            return
        wanted = {} if self.mode == OFF else dict(recommended_resources(pod, vpa, self.view.limit_ranges))
        for name in boosted:
            if name not in ended:
                wanted.pop(name, None)
            elif name not in wanted:
                wanted[name] = Resources(*boost.original(pod.metadata.annotations[boost.ANNOTATION + name]))
        yield from self._resize(pod, wanted, ended)

    def _may_unboost(self, pod: Pod) -> bool:
        """Not while a resize is under way; a boost that came back and has no room on the node ends all the same."""
        stage = ResizeState.of(pod).stage
        waits = stage in (ResizeStage.DEFERRED, ResizeStage.INFEASIBLE) and not self.settings.upstream_compatible
        return waits or stage is ResizeStage.NONE

    def _starting_again(self, pod: Pod) -> tuple[str, ...]:
        """The containers whose boost is to come back."""
        settings = self.settings
        if self.observes or settings.upstream_compatible or not settings.gates.cpu_startup_boost:
            return ()
        if not restarts_nothing(pod):
            return ()
        if ResizeState.of(pod).stage is not ResizeStage.NONE or self._group_of(pod) is None:
            return ()
        names = (container.name for container in pod.spec.containers)
        return tuple(name for name in names if boost.starts_again(pod, self.view.vpa, name))

    def _boost_again(self, pod: Pod, names: tuple[str, ...]) -> Steps:
        """What they have now is noted first, as at their first start, so that a boost always ends."""
        vpa, most = self.view.vpa, self.settings.max_boost
        found = {} if self.mode == OFF else recommended_resources(pod, vpa, self.view.limit_ranges)
        try:
            wanted, notes = boosted_again(pod, vpa, found, names, most)
        except boost.BoostError as error:
            self._leave(pod, f"its startup boost cannot be worked out: {error}")
            return
        yield from self._resize(pod, wanted, before=notes)

    # ------------------------------------------------------------ resizes

    def _in_place(self, pods: list[Pod]) -> Generator[Action, ActionOutcome, list[Pod]]:
        """The pods that are to be evicted instead."""
        wanted = (Decision.INFEASIBLE, Decision.DEFERRED) if self.mode == IN_PLACE else (Decision.EVICT,)
        candidates = []
        for pod in pods:
            decision, reason = self._decide(pod)
            self._leave(pod, reason)
            if decision is Decision.INFEASIBLE_CACHED:
                yield Skip(pod)
            elif decision in (Decision.APPROVED, Decision.WAITS_FOR_MEMORY) or decision in wanted:
                candidates.append(pod)
        evict = []
        ordered = tuple(self._ordered(candidates))
        self.tally.resizable = len(ordered)
        for pod, _ in ordered:
            decision, reason = self._decide(pod)
            self._leave(pod, reason)
            resources = recommended_resources(pod, self.view.vpa, self.view.limit_ranges)
            if decision is Decision.EVICT:
                evict.append(pod)
            elif not self._waits(pod, decision, resources):
                if decision is Decision.INFEASIBLE:
                    yield from self._remember(pod)
                outcome = yield from self._resize(pod, resources)
                if outcome in (ActionOutcome.REFUSED, ActionOutcome.NO_CAPACITY) and self.mode == IN_PLACE_OR_RECREATE:
                    evict.append(pod)
                elif outcome is ActionOutcome.NO_CAPACITY:
                    yield from self._remember(pod)
        return evict

    def _waits(self, pod: Pod, decision: Decision, resources: Mapping[str, Resources]) -> bool:
        match decision:
            case Decision.DEFERRED:
                hasty = self.mode == IN_PLACE and self.settings.upstream_compatible
                return not hasty or self._group_of(pod) is None
            case Decision.WAITS_FOR_MEMORY:
                return not differs(pod, resources)
            case Decision.INFEASIBLE_CACHED:
                return True
        if not self.view.disturbs and not restarts_nothing(pod):
            self._leave(pod, "a container would be restarted, which is for the next pass")
            return True
        return self._may_not_restart(pod, decision)

    def _may_not_restart(self, pod: Pod, decision: Decision) -> bool:
        """Whether what could never be given is tried again only when a container may restart."""
        group = self._group_of(pod)
        free = restarts_nothing(pod) or (group is not None and group.disruptable)
        return decision is Decision.INFEASIBLE and not self.settings.upstream_compatible and not free

    def _remember(self, pod: Pod) -> Steps:
        found = self._told(pod).status.recommendation
        if found is not None:
            self.infeasible[pod.metadata.uid] = found
            yield RememberInfeasible(pod, found)

    def _resize(
        self, pod: Pod, wanted: Mapping[str, Resources], ended: tuple[str, ...] = (), before: tuple[Operation, ...] = ()
    ) -> Generator[Action, ActionOutcome, ActionOutcome]:
        """`ended` are containers whose boost is over; `before` is noted on the pod first."""
        patches = tuple(
            operation
            for container, _, path, _, _ in sized(pod, wanted)
            if container.name in wanted
            for operation in resource_patches(path, container.resources, wanted[container.name])
        )
        if not patches:
            self._leave(pod, "nothing is recommended for its containers")
            return ActionOutcome.REFUSED
        first = before if before or self.settings.upstream_compatible else guards(pod, wanted)
        annotated = bool(pod.metadata.annotations or first)
        outcome = yield ResizePod(pod, patches, tuple(_marks(ended, annotated=annotated)), bool(ended), first)
        self._leave(pod, "its resize was refused, or got no answer")
        group = self._group_of(pod)
        if outcome is ActionOutcome.DONE:
            self.changed.add(pod.metadata.uid)
            self.deeds[pod.metadata.uid] = Deed.RESIZED
            if group is not None and not (before or self._costs_nothing(pod, ended)):
                group.resized += 1
        return outcome

    def _costs_nothing(self, pod: Pod, ended: tuple[str, ...]) -> bool:
        """Whether the end of a boost waits for no other pod, as it restarts nothing; upstream counts it."""
        return bool(ended) and not self.settings.upstream_compatible and restarts_nothing(pod)

    # ------------------------------------------------------------ decisions

    def _told(self, pod: Pod) -> VerticalPodAutoscaler:
        return told_to(self.view.vpa, pod)

    def _leave(self, pod: Pod, reason: str) -> None:
        self.reasons[pod.metadata.uid] = reason

    def _verdict(self, pod: Pod) -> Verdict:
        deed = self.deeds.get(pod.metadata.uid, Deed.LEFT)
        return Verdict(
            pod, deed, self.reasons.get(pod.metadata.uid) or self._passed_over(pod) if deed is Deed.LEFT else ""
        )

    def _passed_over(self, pod: Pod) -> str:
        """Why no check looked at the pod."""
        if not is_active(pod):
            return "it has ended, or is being deleted"
        if owner_of(pod) is None:
            return "nothing controls it"
        if is_spare(pod):
            return "it runs on spare capacity, and has no requests"
        if self.observes:
            return observing_text(self.view.vpa)
        return f"mode {self.mode} changes no pods that run" + (" without the gate" if self.mode == IN_PLACE else "")

    def _decide(self, pod: Pod) -> Judgement:
        return decide(
            pod,
            self.mode,
            self._group_of(pod),
            self._told(pod).status.recommendation,
            self.infeasible,
            since=self.view.since.get(pod.metadata.uid),
            now=self.view.now,
            skip_disruption_budget=self.settings.skip_disruption_budget,
            upstream_compatible=self.settings.upstream_compatible,
        )

    def _held_back(self, pods: list[Pod]) -> Iterator[tuple[str, str]]:
        """Conditions of the VPA: why pods are not as recommended that this run has left as they are."""
        if self.mode not in ACTIVE_MODES:
            return
        left = [pod for pod in pods if pod.metadata.uid not in self.changed]
        in_use = sorted(pod.metadata.name for pod in left if waits_for_memory(pod))
        if in_use:
            yield MEMORY_IN_USE, memory_in_use(in_use)
        small = too_small(self.pods, self.minimum)
        waiting = [pod for pod in left if owner_of(pod) in small and not waits_for_memory(pod) and self._is_due(pod)]
        owners = {owner for pod, _ in self._ordered(waiting) if (owner := owner_of(pod)) is not None}
        if owners:
            yield TOO_FEW_REPLICAS, too_few({owner: small[owner] for owner in owners}, self.minimum)

    def _is_due(self, pod: Pod) -> bool:
        """Whether no resize of it is on its way."""
        stage = ResizeState.of(pod).stage
        return stage is ResizeStage.NONE or stalled(stage, self.view.since.get(pod.metadata.uid), self.view.now)

    def _gets_a_place(self, pod: Pod) -> bool:
        """Whether the cluster autoscaler makes room first, which evicts what can start elsewhere at once."""
        if not self.view.places_first or self.settings.upstream_compatible:
            return False
        state, since = ResizeState.of(pod), self.view.since.get(pod.metadata.uid)
        lacks_room = state.shortage is not None or state.infeasible
        waits = lacks_room and since is not None and self.view.now - since <= PLACE_TIME
        if waits:
            self._leave(pod, "the cluster autoscaler makes a place for it first, within 20 minutes")
        return waits

    def _group_of(self, pod: Pod) -> Group | None:
        owner = owner_of(pod)
        return self.groups.get(owner) if owner else None

    def _evictable(self, pod: Pod) -> bool:
        since, old = self.view.since.get(pod.metadata.uid), self.settings.upstream_compatible
        reason = protected(pod, self._group_of(pod), since, self.view.now, upstream_compatible=old)
        self._leave(pod, reason)
        return not reason

    def _ordered(self, pods: list[Pod]) -> Iterator[tuple[Pod, Priority]]:
        """Those that are accepted and admitted, the most urgent first."""
        found = []
        for pod in pods:
            vpa, by = self._told(pod), self.settings.thresholds
            policy, annotations = vpa.spec.resource_policy, vpa.metadata.annotations
            processed = for_pod(pod, vpa.status.recommendation, policy, self.view.limit_ranges, annotations)
            rank = priority(pod, vpa, processed.recommendation, self.settings.gates, by)
            old = self.settings.upstream_compatible
            reason = left_because(pod, rank, self.view.now, by, upstream_compatible=old)
            if not reason and not admitted(pod, vpa, processed.recommendation):
                reason = "its change fulfils no eviction requirement of the VPA"
            if reason:
                self._leave(pod, reason)
            else:
                found.append((pod, rank))
        return iter(sorted(found, key=lambda candidate: candidate[1].order))


def _marks(ended: tuple[str, ...], *, annotated: bool) -> Iterator[Operation]:
    """Annotations that say what was done, without those of boosts that are over."""
    if not annotated:
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    yield {"op": "add", "path": f"/metadata/annotations/{UPDATED}", "value": "true"}
    for name in ended:
        yield {"op": "remove", "path": f"/metadata/annotations/{boost.ANNOTATION.replace('/', '~1')}{name}"}
