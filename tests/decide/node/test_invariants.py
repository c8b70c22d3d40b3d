"""The node machine under random events, checked after every step against what must always hold.

- Never more allocated than allocatable: what all active pods count for fits the node.
- No promise is lost: an allocation changes only by a `Persist` that succeeded, and goes only with its pod.
- The queue's order: within a pass, grants come in the order of the queue's keys.
- Nothing that fits waits: after each step that could persist, no queued resize fits beside what the others hold.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.container_status import ContainerStatus
from podfit.api.core.pods import Pod, PodStatus
from podfit.core.quantity import ZERO, Quantity
from podfit.core.times import parse_time
from podfit.decide.container_resources import SYSTEM_CRITICAL, Machine
from podfit.decide.fit import Fits, NodeView
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.conditions import PENDING
from podfit.decide.node.machine import step
from podfit.decide.node.resizes import verdict_of
from podfit.decide.node.state import NodeState
from podfit.decide.order import QueueKey, queue_key
from support.placed import placed, resized
from support.pods import container, needs, pod

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CAPACITY = 4000
ROWS = pytest.mark.row("R-089", "R-104", "R-105", "R-106", "R-107", "R-108", "R-110", "R-111", "R-117")
SIZES = st.sampled_from([100, 500, 1000, 1500, 2000, 3000, 5000])
PRIORITIES = st.sampled_from([None, None, 10, SYSTEM_CRITICAL])
PICK = st.integers(0, 9)
Command = tuple[str, int, int | None]
_GONE = st.sampled_from(["ended", "deleted", "removed"])
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.tuples(st.sampled_from(["add", "add guaranteed"]), SIZES, PRIORITIES),
    *[st.tuples(st.just("update"), SIZES, PICK)] * 6,
    *(st.tuples(st.just(name), st.just(0), PICK) for name in ("actuated", "actuated", "failed", "retry")),
    st.tuples(st.sampled_from(["disk full", "disk free"]), st.just(0), PICK),
    st.tuples(_GONE, st.just(0), PICK),
)


class Node:
    def __init__(self) -> None:
        allocatable = {"cpu": Quantity.parse(f"{CAPACITY}m"), "memory": Quantity.parse("8Gi")}
        view = NodeView(allocatable=allocatable, machine=Machine(memory=8 << 30))
        self.state = NodeState(view=view, sources_ready=True)
        self.desired: dict[str, Pod] = {}
        self.held: dict[str, Pod] = {}
        self.now, self.full, self.made = BEGIN, False, 0

    def play(self, commands: Sequence[Command]) -> None:
        for size in (1000, 1000, 1000, 500):
            self._command("add", size, None)
        for number in range(4):
            self._command("actuated", 0, number)
        for name, size, which in commands:
            self.now += timedelta(seconds=1)
            self._command(name, size, which)

    def _command(self, name: str, size: int, number: int | None) -> None:
        if name.startswith("add"):
            self.made += 1
            amounts = {"cpu": f"{size}m", "memory": "1Mi"}
            limits = amounts if name == "add guaranteed" else None
            self._admit(placed(pod(container("c", amounts, limits), name=f"p{self.made}", priority=number)))
        elif name in ("disk full", "disk free"):
            self.full = name == "disk full"
            self.step(on.Retry("periodic_retry"))
        elif name == "retry":
            self.step(on.Retry("periodic_retry"))
        elif self.desired:
            uid = sorted(self.desired)[(number or 0) % len(self.desired)]
            self._about(name, uid, size)

    def _admit(self, new: Pod) -> None:
        """One that waits for its victims is added again with every sync that the machine asks for."""
        uid = new.metadata.uid
        answer = next(effect for effect in self.step(on.PodsAdded((new,))) if isinstance(effect, do.Answer))
        self.held.pop(uid, None)
        if isinstance(answer, do.Admitted):
            self.desired[uid] = new
        elif isinstance(answer, do.Preempting):
            self.held[uid] = new

    def _about(self, name: str, uid: str, size: int) -> None:
        desired = self.desired[uid]
        match name:
            case "update":
                amounts = {"cpu": f"{size}m", "memory": "1Mi"}
                guaranteed = desired.status.qos_class == "Guaranteed"
                self.desired[uid] = resized(desired, c=needs(amounts, amounts if guaranteed else None))
                self.step(on.PodsUpdated((self.desired[uid],)))
            case "actuated" if self.state.pods[uid].active:  # a pod that ended does not run again
                self.step(on.StatusGenerated(uid, _running(self.state.allocated_pod(desired))))
            case "failed":
                self.step(on.ActuationEnded(desired, "runtime says no"))
            case "ended":
                self.step(on.StatusGenerated(uid, replace(self.state.pods[uid].pod.status, phase="Failed")))
            case "deleted":
                self.step(on.PodsDeleted((uid,)))
            case "removed":
                del self.desired[uid]
                self.step(on.PodsRemoved((uid,)))

    def step(self, event: on.Event) -> tuple[do.Effect, ...]:
        before = self.state
        state, effects = step(before, event, now=self.now)
        persisted = next((effect for effect in effects if isinstance(effect, do.Persist)), None)
        if self.full and persisted is not None:
            persisted = None
            state, effects = step(before, event, now=self.now, unsaved="disk full")
            assert not any(isinstance(effect, do.Persist) for effect in effects)
        self.state = state
        self._check(before, persisted, effects, event)
        for effect in effects:
            if isinstance(effect, do.Sync) and effect.uid in self.held:
                self._admit(self.held[effect.uid])
        return effects

    def _check(
        self, before: NodeState, persisted: do.Persist | None, effects: tuple[do.Effect, ...], event: on.Event
    ) -> None:
        state = self.state
        held = sum((state.pods[uid].counts.requests.get("cpu", ZERO) for uid in _active(state)), ZERO)
        assert held.milli() <= CAPACITY, "never more allocated than allocatable"
        known = dict(before.allocated) | (dict(persisted.allocations) if persisted else {})
        gone = set(event.uids) if isinstance(event, on.PodsRemoved) else set[str]()
        assert state.allocated == {uid: kept for uid, kept in known.items() if uid not in gone}, "no promise is lost"
        granted = [
            effect.pod.metadata.uid
            for effect in effects
            if isinstance(effect, do.Record) and effect.reason == "ResizeStarted"
        ]
        if not isinstance(event, on.PodsUpdated):
            tried = sorted(before.queue, key=lambda uid: _key(before, uid))
            assert granted == [uid for uid in tried if uid in granted], "in the queue's order"
        if not self.full:
            for uid in state.queue:
                assert not isinstance(verdict_of(state, uid), Fits), f"{uid} fits and waits"
        for uid in state.queue:
            assert state.pods[uid].active, "who is over waits for nothing"


def _key(state: NodeState, uid: str) -> QueueKey:
    pod, pending = state.pods[uid].pod, state.conditions.get(PENDING, uid)
    since = parse_time(pending.last_transition_time) if pending and pending.last_transition_time else None
    return queue_key(pod, state.allocated_pod(pod), since)


def _active(state: NodeState) -> list[str]:
    return [uid for uid, entry in state.pods.items() if entry.active]


def _running(allocated: Pod) -> PodStatus:
    statuses = tuple(
        ContainerStatus(name=each.name, resources=each.resources, allocated_resources=each.resources.requests)
        for each in allocated.spec.containers
    )
    return replace(allocated.status, phase="Running", container_statuses=statuses)


@ROWS
@given(st.lists(COMMANDS, min_size=40, max_size=80))
@settings(max_examples=250, deadline=None)
def test_what_must_always_hold(commands: list[Command]) -> None:
    Node().play(commands)


@ROWS
@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_what_must_always_hold_many_times(figure: Callable[[str, object], None]) -> None:
    """5,000 courses of up to 200 random events on the node machine: pods come, are resized, shrink, fail, end and go on
    four CPUs, critical ones preempt, the disk fills and empties. Never more allocated than allocatable, no promise is
    lost, grants in the queue's order, and nothing that fits waits.
    """
    courses = 5000

    @given(st.lists(COMMANDS, min_size=50, max_size=200))
    @settings(max_examples=courses, deadline=None)
    def course(commands: list[Command]) -> None:
        Node().play(commands)

    course()
    figure("courses", courses)
