"""A node that random events happen to, and what the tests know of it without asking the machine.

`promised` is what was persisted, `reported` what the pods' last statuses say; the rules here are written anew, from the
specification (5.4, 5.5), so that a fault of the machine is not also one of its test.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.machine import step
from podfit.decide.node.state import NodeState
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL
from podfit.decide.resize.verdict import NodeView
from support.placed import placed, resized
from support.pods import container, needs, pod

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CAPACITY = 4000
SIZES = st.sampled_from([100, 500, 1000, 1500, 2000, 3000, 5000])
PRIORITIES = st.sampled_from([None, None, 10, SYSTEM_CRITICAL])
PICK = st.integers(0, 9)
Command = tuple[str, int, int | None]
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.tuples(st.sampled_from(["add", "add guaranteed"]), SIZES, PRIORITIES),
    st.tuples(st.just("add"), SIZES, st.just(SYSTEM_CRITICAL)),
    *[st.tuples(st.sampled_from(["update", "update", "update three"]), SIZES, PICK)] * 6,
    *(st.tuples(st.just(name), st.just(0), PICK) for name in ("actuated", "actuated", "failed", "retry", "restart")),
    st.tuples(st.sampled_from(["disk full", "disk free"]), st.just(0), PICK),
    st.tuples(st.sampled_from(["ended", "ended", "terminating", "deleted", "removed"]), st.just(0), PICK),
)


class Step(msgspec.Struct, frozen=True):
    """One step of the machine. `promised` and `reported` are of before it, by UID, in milli-CPUs."""

    event: on.Event
    before: NodeState
    after: NodeState
    effects: tuple[do.Effect, ...]
    promised: dict[str, int]
    reported: dict[str, int]
    full: bool

    def of(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]


class Node:
    """`check` is called after every step."""

    def __init__(self, check: Callable[["Node", Step], None]) -> None:
        self._check = check
        allocatable = {"cpu": Quantity.parse(f"{CAPACITY}m"), "memory": Quantity.parse("8Gi")}
        self._view = NodeView(allocatable=allocatable, machine=Machine(memory=8 << 30))
        self.state = NodeState(view=self._view, sources_ready=True)
        self.desired: dict[str, Pod] = {}
        self.held: dict[str, Pod] = {}
        self.promised: dict[str, int] = {}
        self.reported: dict[str, int] = {}
        self.over: set[str] = set()
        self.gone: set[str] = set()
        self._now, self._full, self._made = BEGIN, False, 0

    def play(self, commands: Sequence[Command]) -> None:
        for kind, size, priority in (("add", 1000, None), ("add guaranteed", 1000, 10), ("add", 1000, None)):
            self._command(kind, size, priority)
        self._command("add guaranteed", 500, None)
        for number in range(4):
            self._command("actuated", 0, number)
        for name, size, which in commands:
            self._now += timedelta(seconds=1)
            self._command(name, size, which)

    def holds(self, uid: str) -> int:
        """What the pod counts for: what it was promised or still has, whichever is more."""
        if uid in self.over or uid in self.gone:
            return 0
        return max(self.promised.get(uid, 0), self.reported.get(uid, 0))

    def wants(self, uid: str) -> int:
        return cpu(self.state.pods[uid].pod)

    # ------------------------------------------------------------------ what happens

    def _command(self, name: str, size: int, number: int | None) -> None:
        if name.startswith("add"):
            self._made += 1
            amounts = {"cpu": f"{size}m", "memory": "1Mi"}
            limits = amounts if name == "add guaranteed" else None
            self._admit(placed(pod(container("c", amounts, limits), name=f"p{self._made}", priority=number)))
        elif name in ("disk full", "disk free"):
            self._full = name == "disk full"
            self._step(on.Retry("periodic_retry"))
        elif name == "retry":
            self._step(on.Retry("periodic_retry"))
        elif name == "restart":
            self._restart()
        elif known := sorted(self.desired.keys() - self.gone):
            at = (number or 0) % len(known)
            self._about(name, [known[(at + more) % len(known)] for more in range(3)], size)

    def _admit(self, new: Pod) -> None:
        """One that waits for its victims is added again with every sync that the machine asks for."""
        uid = new.metadata.uid
        answer = next(effect for effect in self._step(on.PodsAdded((new,))) if isinstance(effect, do.Answer))
        self.held.pop(uid, None)
        if isinstance(answer, do.Admitted):
            self.desired[uid] = new
        elif isinstance(answer, do.Preempting):
            self.held[uid] = new

    def _about(self, name: str, uids: list[str], size: int) -> None:
        uid = uids[0]
        match name:
            case "update":
                self._update([uid], [size])
            case "update three":
                self._update(list(dict.fromkeys(uids)), [size, 500, 1500])
            case "actuated" if self.state.pods[uid].active:  # a pod that ended does not run again
                running = self.state.allocated_pod(self.desired[uid])
                self._report(uid, _running(running), cpu(running))
            case "failed":
                self._step(on.ActuationEnded(self.desired[uid], "runtime says no"))
            case "ended":
                self.over.add(uid)
                self._report(uid, replace(self.state.pods[uid].pod.status, phase="Failed"), 0)
            case "terminating":
                going = self.desired[uid]
                meta = replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                self.desired[uid] = replace(going, metadata=meta)
                self._step(on.PodsUpdated((self.desired[uid],)))
            case "deleted":
                self.gone.add(uid)
                self._step(on.PodsDeleted((uid,)))
            case "removed":
                del self.desired[uid]
                self.gone.add(uid)
                self._step(on.PodsRemoved((uid,)))

    def _update(self, uids: list[str], sizes: list[int]) -> None:
        for uid, size in zip(uids, sizes, strict=False):
            desired, amounts = self.desired[uid], {"cpu": f"{size}m", "memory": "1Mi"}
            limits = amounts if desired.status.qos_class == "Guaranteed" else None
            self.desired[uid] = resized(desired, c=needs(amounts, limits))
        self._step(on.PodsUpdated(tuple(self.desired[uid] for uid in uids)))

    def _report(self, uid: str, status: PodStatus, milli: int) -> None:
        self.reported[uid] = milli
        self._step(on.StatusGenerated(uid, status))

    def _restart(self) -> None:
        """The kubelet begins anew with its checkpoint and with what the API has; pods that waited are new again."""
        state, held = self.state, list(self.held.values())
        self.desired = {uid: pod for uid, pod in self.desired.items() if uid not in self.gone}
        shown = tuple(
            replace(pod, status=replace(state.pods[uid].pod.status, conditions=state.conditions.of(uid)))
            for uid, pod in self.desired.items()
        )
        self.state = NodeState(view=self._view, allocated=state.allocated)
        self.held = {}
        self._step(on.PodsAdded(shown))
        self._step(on.SourcesReady())
        for shown_pod in held:
            self._admit(shown_pod)

    def _step(self, event: on.Event) -> tuple[do.Effect, ...]:
        before, promised, reported = self.state, dict(self.promised), dict(self.reported)
        state, effects = step(before, event, now=self._now)
        if self._full and any(isinstance(effect, do.Persist) for effect in effects):
            state, effects = step(before, event, now=self._now, unsaved="disk full")
        self.state = state
        taken = Step(event, before, state, effects, promised, reported, self._full)
        for persist in taken.of(do.Persist):
            self.promised |= {uid: _milli(kept) for uid, kept in persist.allocations.items()}
        for forget in taken.of(do.Forget):
            self.promised = {uid: kept for uid, kept in self.promised.items() if uid not in forget.uids}
        self._check(self, taken)
        for sync in taken.of(do.Sync):
            if sync.uid in self.held:
                self._admit(self.held[sync.uid])
        return effects


def cpu(pod: Pod) -> int:
    return pod.spec.containers[0].resources.requests["cpu"].milli()


def _milli(kept: Any) -> int:
    return int(kept.containers["c"].requests["cpu"].milli())


def _running(allocated: Pod) -> PodStatus:
    statuses = tuple(
        ContainerStatus(
            name=container.name, resources=container.resources, allocated_resources=container.resources.requests
        )
        for container in allocated.spec.containers
    )
    return replace(allocated.status, phase="Running", container_statuses=statuses)
