"""What an updater does in one run for one VPA, as a generator: it says what to do, and is told how that went.

    action = next(run); while True: action = run.send(carry_out(action))

An eviction that was refused is no disruption, and a resize that was refused may become an eviction: so what comes next
depends on what came of the action before. Nothing here waits or asks; rate limits are the caller's.
"""

from collections.abc import Generator, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import TypeAlias

import msgspec

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling import boost
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.groups import Group, Owner, groups, owner_of
from podfit.decide.autoscaling.in_place import Decision, State, decide, evictable, restarts_nothing, state_of
from podfit.decide.autoscaling.patches import Operation, Resources, recommended_resources, resource_patches
from podfit.decide.autoscaling.pod_level import for_pod
from podfit.decide.autoscaling.policies import IN_PLACE, IN_PLACE_OR_RECREATE, OFF, RECREATE, acting_mode
from podfit.decide.autoscaling.priority import Priority, Thresholds, accepted, admitted, priority

UPDATED = "vpaInPlaceUpdated"


class Outcome(Enum):
    """`NO_CAPACITY`: the API refused a resize because the node is smaller than that. `UNKNOWN`: it gave no answer, or
    one that says nothing of the pod, so the next run tries again.
    """

    DONE = "done"
    REFUSED = "refused"
    NO_CAPACITY = "no capacity"
    UNKNOWN = "unknown"


class Tally(msgspec.Struct):
    """How many pods a run found that are to be evicted, and resized."""

    evictable: int = 0
    resizable: int = 0


class Evict(msgspec.Struct, frozen=True):
    pod: Pod


class Resize(msgspec.Struct, frozen=True):
    """Patch the resize subresource with `resources`, then, when that is done, the pod with `marks`. `unboosts`: it ends
    a startup boost."""

    pod: Pod
    resources: tuple[Operation, ...]
    marks: tuple[Operation, ...]
    unboosts: bool = False


class Skip(msgspec.Struct, frozen=True):
    """Say that a pod is not resized, since its node could never give it that much."""

    pod: Pod


class RememberInfeasible(msgspec.Struct, frozen=True):
    """Keep for the pod's UID what its node could not give."""

    pod: Pod
    recommendation: RecommendedPodResources


Action: TypeAlias = Evict | Resize | Skip | RememberInfeasible
Steps: TypeAlias = Generator[Action, Outcome, None]
Run: TypeAlias = Generator[Action, Outcome, Tally]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`upstream_compatible`: Recreate and Auto only evict, too few replicas are left alone altogether, in mode InPlace
    a pod that should wait is resized at once, and pods change for nothing.
    """

    gates: Gates = NO_GATES
    min_replicas: int = 2
    tolerance: float = 0.5
    thresholds: Thresholds = Thresholds()
    skip_disruption_budget: bool = False
    upstream_compatible: bool = False


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A VPA and the pods that it controls. `since` says by UID when a pod was first seen resizing (forgotten when it is
    not), `infeasible` what its node could not give; `configured` is how many pods a controller wants.
    """

    vpa: VerticalPodAutoscaler
    pods: tuple[Pod, ...]
    configured: Mapping[Owner, int]
    now: datetime
    limit_ranges: tuple[LimitRange, ...] = ()
    since: Mapping[str, datetime] = msgspec.field(default_factory=dict)
    infeasible: Mapping[str, RecommendedPodResources] = msgspec.field(default_factory=dict)


def run(view: View, settings: Settings) -> Run:
    return _Run(view, settings).actions()


class _Run:
    def __init__(self, view: View, settings: Settings) -> None:
        self.view, self.settings, self.tally = view, settings, Tally()
        self.mode = acting_mode(view.vpa, upstream_compatible=settings.upstream_compatible)
        self.pods = tuple(pod for pod in view.pods if _is_live(pod) and owner_of(pod) is not None)
        policy = view.vpa.spec.update_policy
        own = policy.min_replicas if policy else None
        below_minimum = settings.skip_disruption_budget or not settings.upstream_compatible
        self.groups = groups(
            self.pods,
            view.configured,
            min_replicas=settings.min_replicas if own is None else own,
            tolerance=settings.tolerance,
            in_place_below_minimum=below_minimum and self.mode in (IN_PLACE, IN_PLACE_OR_RECREATE),
        )
        self.infeasible = dict(view.infeasible)

    def actions(self) -> Run:
        boosts = self.settings.gates.cpu_startup_boost
        ordinary = []
        for pod in self.pods:
            if boosts and any(boost.boosted_containers(pod)):
                yield from self._unboost(pod)
            else:
                ordinary.append(pod)
        evict: list[Pod] = []
        if self.mode == IN_PLACE_OR_RECREATE or (self.mode == IN_PLACE and self.settings.gates.in_place):
            evict = yield from self._in_place(ordinary)
        elif self.mode == RECREATE:
            evict = [pod for pod, _ in self._ordered([pod for pod in ordinary if self._evictable(pod)])]
        self.tally.evictable = len(evict)
        for pod in evict:
            group = self._group_of(pod)
            if group is None or not self._evictable(pod):
                continue
            if (yield Evict(pod)) is Outcome.DONE and pod.status.phase != "Pending":
                group.evicted += 1
        return self.tally

    # ------------------------------------------------------------ resizes

    def _in_place(self, pods: list[Pod]) -> Generator[Action, Outcome, list[Pod]]:
        """The pods that are to be evicted instead."""
        wanted = (Decision.INFEASIBLE, Decision.DEFERRED) if self.mode == IN_PLACE else (Decision.EVICT,)
        candidates = []
        for pod in pods:
            decision = self._decide(pod)
            if decision is Decision.INFEASIBLE_CACHED:
                yield Skip(pod)
            elif decision is Decision.APPROVED or decision in wanted:
                candidates.append(pod)
        evict = []
        ordered = tuple(self._ordered(candidates))
        self.tally.resizable = len(ordered)
        for pod, _ in ordered:
            decision = self._decide(pod)
            hasty = self.mode == IN_PLACE and self.settings.upstream_compatible and owner_of(pod) in self.groups
            waits = (decision is Decision.DEFERRED and not hasty) or self._may_not_restart(pod, decision)
            if decision is Decision.EVICT:
                evict.append(pod)
            elif not waits and decision is not Decision.INFEASIBLE_CACHED:
                if decision is Decision.INFEASIBLE:
                    yield from self._remember(pod)
                outcome = yield from self._resize(
                    pod, recommended_resources(pod, self.view.vpa, self.view.limit_ranges)
                )
                if outcome in (Outcome.REFUSED, Outcome.NO_CAPACITY) and self.mode == IN_PLACE_OR_RECREATE:
                    evict.append(pod)
                elif outcome is Outcome.NO_CAPACITY:
                    yield from self._remember(pod)
        return evict

    def _may_not_restart(self, pod: Pod, decision: Decision) -> bool:
        """Whether what could never be given is tried again only when a container may restart."""
        group = self._group_of(pod)
        free = restarts_nothing(pod) or (group is not None and group.disruptable)
        return decision is Decision.INFEASIBLE and not self.settings.upstream_compatible and not free

    def _remember(self, pod: Pod) -> Steps:
        found = self.view.vpa.status.recommendation
        if found is not None:
            self.infeasible[pod.metadata.uid] = found
            yield RememberInfeasible(pod, found)

    def _resize(
        self, pod: Pod, wanted: Mapping[str, Resources], ended: tuple[str, ...] = ()
    ) -> Generator[Action, Outcome, Outcome]:
        """`ended` are containers whose boost is over."""
        patches = tuple(
            operation
            for container, _, path, _, _ in every_container(pod)
            if container.name in wanted
            for operation in resource_patches(path, container.resources, wanted[container.name])
        )
        if not patches:
            return Outcome.REFUSED
        outcome = yield Resize(pod, patches, tuple(_marks(pod, ended)), bool(ended))
        group = self._group_of(pod)
        if outcome is Outcome.DONE and group is not None:
            group.resized += 1
        return outcome

    def _unboost(self, pod: Pod) -> Steps:
        """V-108: to what is recommended, or to what the containers had."""
        vpa, group = self.view.vpa, self._group_of(pod)
        boosted = tuple(boost.boosted_containers(pod))
        ended = tuple(name for name in boosted if boost.expired(pod, vpa, name, self.view.now))
        if not ended or group is None or pod.status.phase == "Pending" or state_of(pod) is not State.NONE:
            return
        if not group.disruptable:
            return
        wanted = {} if self.mode == OFF else dict(recommended_resources(pod, vpa, self.view.limit_ranges))
        for name in boosted:
            if name not in ended:
                wanted.pop(name, None)
            elif name not in wanted:
                wanted[name] = Resources(*boost.original(pod.metadata.annotations[boost.ANNOTATION + name]))
        yield from self._resize(pod, wanted, ended)

    # ------------------------------------------------------------ decisions

    def _decide(self, pod: Pod) -> Decision:
        return decide(
            pod,
            self.mode,
            self._group_of(pod),
            self.view.vpa.status.recommendation,
            self.infeasible,
            since=self.view.since.get(pod.metadata.uid),
            now=self.view.now,
            skip_disruption_budget=self.settings.skip_disruption_budget,
        )

    def _group_of(self, pod: Pod) -> Group | None:
        owner = owner_of(pod)
        return self.groups.get(owner) if owner else None

    def _evictable(self, pod: Pod) -> bool:
        return evictable(pod, self._group_of(pod), self.view.since.get(pod.metadata.uid), self.view.now)

    def _ordered(self, pods: list[Pod]) -> Iterator[tuple[Pod, Priority]]:
        """Those that are accepted and admitted, the most urgent first."""
        found = []
        for pod in pods:
            vpa, by = self.view.vpa, self.settings.thresholds
            processed = for_pod(pod, vpa.status.recommendation, vpa.spec.resource_policy, self.view.limit_ranges)
            rank = priority(pod, vpa, processed.recommendation, self.settings.gates, by)
            old = self.settings.upstream_compatible
            takes = accepted(pod, rank, self.view.now, by, upstream_compatible=old)
            if takes and admitted(pod, vpa, processed.recommendation):
                found.append((pod, rank))
        return iter(sorted(found, key=lambda candidate: candidate[1].order))


def _is_live(pod: Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def _marks(pod: Pod, ended: tuple[str, ...]) -> Iterator[Operation]:
    """Annotations that say what was done, without those of boosts that are over."""
    if not pod.metadata.annotations:
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    yield {"op": "add", "path": f"/metadata/annotations/{UPDATED}", "value": "true"}
    for name in ended:
        yield {"op": "remove", "path": f"/metadata/annotations/{boost.ANNOTATION.replace('/', '~1')}{name}"}
