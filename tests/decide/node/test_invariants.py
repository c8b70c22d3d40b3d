"""The node machine under random events: what must hold after every step, each by itself."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decide.node.random_node import CAPACITY, COMMANDS, Command, Node, Step, cpu
from podfit.core.times import parse_time
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.state import NodeState
from podfit.decide.pod.resize_state import PENDING
from podfit.decide.resize.neighbours import others_of

ROWS = pytest.mark.row("R-089", "R-104", "R-105", "R-106", "R-107", "R-108", "R-110", "R-111", "R-117", "R-172")
COURSES = st.lists(COMMANDS, min_size=25, max_size=50)
RANKS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


def never_more_allocated_than_allocatable(node: Node, _: Step) -> None:
    assert sum(map(node.holds, node.state.pods)) <= CAPACITY


def a_promise_is_never_lost(node: Node, step: Step) -> None:
    """It changes by a `Persist`, which does not come while the disk is full, and goes with its pod alone."""
    assert {uid: _size(node.state, uid) for uid in node.state.allocated} == node.promised
    assert not step.full or not step.of(do.Persist)
    forgotten = {uid for forget in step.of(do.Forget) for uid in forget.uids}
    assert forgotten <= node.gone, "a pod that is here has lost its promise"
    assert step.promised.keys() - forgotten <= node.promised.keys()
    if isinstance(step.event, on.PodsAdded):
        known = {pod.metadata.uid for pod in step.event.pods} & step.promised.keys()
        assert known <= {effect.pod.metadata.uid for effect in step.of(do.Admitted)}, (
            "who was promised room is admitted"
        )


def grants_come_in_the_order_of_the_queue(_: Node, step: Step) -> None:
    """A change puts the queue in order; whatever else happens keeps it."""
    granted = [effect.pod.metadata.uid for effect in step.of(do.RecordEvent) if effect.reason == "ResizeStarted"]
    changed = {pod.metadata.uid for pod in step.event.pods} if isinstance(step.event, on.PodsUpdated) else set()
    queue = list(step.after.queue)
    if changed:
        assert granted == sorted(granted, key=lambda uid: _rank(step, uid))
        assert queue == sorted(queue, key=lambda uid: _rank(step, uid))
    elif not isinstance(step.event, on.PodsAdded):
        assert granted == [uid for uid in step.before.queue if uid in granted]
        assert queue == [uid for uid in step.before.queue if uid in queue]


def what_fits_does_not_wait(node: Node, step: Step) -> None:
    """A resize that waits is granted by the first event after which it fits."""
    if step.full or not node.state.sources_ready:
        return
    taken = sum(map(node.holds, node.state.pods))
    for uid in node.state.queue:
        assert node.state.pods[uid].active, "who is over waits for nothing"
        if not node.state.reservations.held:
            free = CAPACITY - taken + node.holds(uid)
            assert node.wants(uid) > free, f"{uid} wants {node.wants(uid)}, {free} are free"


def who_does_not_fit_waits(node: Node, _: Step) -> None:
    """A desired size that is not allocated is in the queue, and said to be; here nothing is infeasible."""
    for uid, entry in node.state.pods.items():
        pending = node.state.conditions.get(PENDING, uid)
        waits = entry.active and node.wants(uid) != node.promised[uid]
        if node.state.sources_ready and entry.active:
            assert waits == (uid in node.state.queue)
            assert waits == (pending is not None)
            assert pending is None or pending.reason == "Deferred"


def only_as_much_is_ended_as_a_critical_pod_needs(node: Node, step: Step) -> None:
    """Victims are not critical, not over, not told twice; none could have been spared, and none is of a class above a
    pod that was spared and leaves as much.
    """
    for by in {end.by for end in step.of(do.End)}:
        victims = [end.uid for end in step.of(do.End) if end.by == by]
        assert step.before.reservations.ending.isdisjoint(victims)
        assert all(step.after.pods[uid].active for uid in victims)
        assert all((step.after.pods[uid].pod.spec.priority or 0) < 2_000_000_000 for uid in victims)
        if len({end.by for end in step.of(do.End)}) > 1 or len(step.after.reservations.held) > 1:
            continue
        going = {*step.after.reservations.ending, *_terminating(step.after)}
        staying = [uid for uid, entry in step.after.pods.items() if entry.active and uid not in going and uid != by]
        wants = step.after.reservations.held[by].requests["cpu"].milli()
        missing = sum(map(node.holds, staying)) + sum(map(node.holds, victims)) + wants - CAPACITY
        assert sum(map(node.holds, victims)) >= missing, "it still does not fit"
        for uid in victims:
            assert sum(map(node.holds, victims)) - node.holds(uid) < missing, f"{uid} could have been spared"
        for uid in victims:
            for other in staying:
                lower = _class(step.after, other) < _class(step.after, uid)
                yields = (step.after.pods[other].pod.spec.priority or 0) < 2_000_000_000
                assert not (lower and yields and node.holds(other) >= node.holds(uid)), f"{other} before {uid}"


def the_totals_are_those_of_the_active_pods(node: Node, _: Step) -> None:
    """Kept up with each pod, they are what counting all of them anew gives; so is what a pod finds beside itself."""
    state = node.state
    active = {uid: entry.counts for uid, entry in state.pods.items() if entry.active}
    assert state.totals == others_of(active.values()).totals
    for uid in (*state.pods, "new"):
        for reserved in (False, True):
            beside = {**active, **(state.reservations.held if reserved else {})}
            beside.pop(uid, None)
            others = state.others(uid, reserved=reserved)
            assert others.totals == others_of(beside.values()).totals
            assert sorted(held.name for held in others.one_by_one()) == sorted(held.name for held in beside.values())


INVARIANTS = [
    the_totals_are_those_of_the_active_pods,
    never_more_allocated_than_allocatable,
    a_promise_is_never_lost,
    grants_come_in_the_order_of_the_queue,
    what_fits_does_not_wait,
    who_does_not_fit_waits,
    only_as_much_is_ended_as_a_critical_pod_needs,
]


def _size(state: NodeState, uid: str) -> int:
    return state.allocated[uid].containers["c"].requests["cpu"].milli()


def _terminating(state: NodeState) -> list[str]:
    return [uid for uid, entry in state.pods.items() if entry.terminating]


def _class(state: NodeState, uid: str) -> int:
    return RANKS[state.pods[uid].pod.status.qos_class]


def _rank(step: Step, uid: str) -> tuple[bool, int, bool, datetime, str]:
    """What asks for no more, then priority, then Guaranteed, then who has waited longest, then the name."""
    desired, pending = step.after.pods[uid].pod, step.before.conditions.get(PENDING, uid)
    since = parse_time(pending.last_transition_time or "") if pending else datetime.max.replace(tzinfo=UTC)
    grows = cpu(desired) > step.promised[uid]
    priority = desired.spec.priority or 0
    return grows, -priority, desired.status.qos_class != "Guaranteed", since, desired.metadata.name


@ROWS
@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_what_must_hold_after_every_event(invariant: Callable[[Node, Step], None]) -> None:
    @given(COURSES)
    @settings(max_examples=100, deadline=None)
    def course(commands: list[Command]) -> None:
        Node(invariant).play(commands)

    course()


@ROWS
@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_what_must_always_hold_many_times(figure: Callable[[str, object], None]) -> None:
    """5,000 courses of up to 200 random events on the node machine: pods come, are resized alone and together, shrink,
    fail, end and go on four CPUs, critical ones preempt, the disk fills and empties, the kubelet restarts. Never more
    allocated than allocatable, no promise is lost, grants in the queue's order, what fits does not wait, and nobody is
    ended without need.
    """
    courses = 5000

    def check(node: Node, step: Step) -> None:
        for invariant in INVARIANTS:
            invariant(node, step)

    @given(st.lists(COMMANDS, min_size=50, max_size=200))
    @settings(max_examples=courses, deadline=None)
    def course(commands: list[Command]) -> None:
        Node(check).play(commands)

    course()
    figure("courses", courses)
