"""A step of the node machine under way: its state so far, and its effects in order."""

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node import critical
from podfit.decide.node.critical import PREEMPTED, PREEMPTING, Occupant, Preempts
from podfit.decide.node.effects import Count, Effect, End, Grow, Persist, RecordEvent, Release
from podfit.decide.node.state import NodeState, released
from podfit.decide.pod.allocated import PodResources, resources_of
from podfit.decide.pod.system_priority import is_critical
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import neighbour
from podfit.decide.resize.verdict import Deferred

NORMAL, WARNING = "Normal", "Warning"


class Draft:
    """`unsaved` says why nothing can be persisted; then the step allocates nothing."""

    def __init__(self, state: NodeState, now: datetime, unsaved: str) -> None:
        self.state, self.now, self.unsaved = state, now, unsaved
        self._allocations: dict[str, PodResources] = {}
        self._grown: list[Pod] = []
        self._released: list[str] = []
        self._effects: list[Effect] = []

    def add(self, *effects: Effect) -> None:
        self._effects += effects

    def allocate(self, pod: Pod) -> None:
        """The node allocates to `pod` what its spec asks for."""
        resources = resources_of(pod, self.state.view.gates)
        if self.state.allocated.get(pod.metadata.uid) != resources:
            self.state = self.state.with_allocation(pod.metadata.uid, resources)
        self._allocations[pod.metadata.uid] = resources

    def grow(self, pod: Pod) -> None:
        """What grows of `pod` is written once it is allocated durably, where the kernel comes first."""
        if self.state.view.machine.kernel_first:
            self._grown.append(pod)

    def occupy(self, pod: Pod) -> None:
        """Set aside the CPUs and the memory that the pod is due."""
        self.state = replace(self.state, view=verdicts.occupied(pod, self.state.view))

    def over(self, uids: Collection[str], *, release: bool = True) -> None:
        """Nothing more is decided about these pods, and they stand in nobody's way. `release`: their containers have
        ended, so that the CPUs and the memory that were set aside for them are free.
        """
        state, reservations, conditions = self.state, self.state.reservations, self.state.conditions
        for uid in uids:
            reservations, conditions = reservations.forget(uid), conditions.forget(uid)
        if release:
            self._released += uids
            state = replace(state, view=released(state.view, uids))
        self.state = replace(
            state,
            reservations=reservations,
            conditions=conditions,
            failing=state.failing.difference(uids),
            queue=tuple(uid for uid in state.queue if uid not in uids),
        )

    def preemption(self, pod: Pod, refusal: Deferred) -> Preempts | None:
        """What a critical pod may do about its refusal. Its room is reserved from now on, or is not any more."""
        state, uid = self.state, pod.metadata.uid
        if not is_critical(pod):
            self.release_reservation(uid)
            return None
        reservations = state.reservations
        occupants = [
            Occupant(
                state.allocated_pod(entry.pod),
                reservations.held.get(other, entry.counts),
                going=other in reservations.ending or entry.terminating,
            )
            for other, entry in state.pods.items()
            if other != uid and entry.active
        ]
        reserved = [counts for other, counts in reservations.held.items() if other != uid and other not in state.pods]
        answer = critical.preemption(pod, refusal, state.view, occupants, reserved)
        if answer is None:
            self.release_reservation(uid)
        else:
            victims = (victim.metadata.uid for victim in answer.victims)
            reservations = reservations.reserve(uid, neighbour(pod, state.view.gates), victims)
            self.state = replace(state, reservations=reservations)
        return answer

    def release_reservation(self, uid: str) -> None:
        self.state = replace(self.state, reservations=self.state.reservations.release(uid))

    def preempt(self, preempts: Preempts, *, by: str) -> None:
        """These pods have to end for a critical one (R-117)."""
        for victim in preempts.victims:
            self.add(
                RecordEvent(victim, WARNING, PREEMPTING, PREEMPTED),
                Count("preemptions", preempts.signal),
                End(victim.metadata.uid, by),
            )

    def effects(self) -> tuple[Effect, ...]:
        return (*self._first(), *self._effects)

    def _first(self) -> Iterable[Effect]:
        if self._released:
            yield Release(tuple(self._released))
        if self._allocations and not self.unsaved:
            yield Persist(self._allocations, self.state.view.cpus, self.state.view.memory)
            if self._grown:
                yield Grow(tuple(self._grown))
