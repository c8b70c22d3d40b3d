"""Allocation against a model that knows nothing but a list of numbers: never over-committed, nothing that fits starves.

The model holds for each pod what it was promised and what it still holds (a shrink frees room only once it is
reported), and after every step it tries all that wait, in the specified order, exactly once. While the disk takes
nothing, nothing is promised.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from podfit.api.core.containers import Container, ResourceRequirements
from podfit.api.core.pods import Pod
from podfit.kubelet.allocation.admission import Admitted, Rejected, Unsaved
from support.allocating import Allocating
from support.placed import placed
from support.pods import needs, pod

CAPACITY = 4000
SIZES = st.sampled_from([100, 500, 1000, 1500, 2000, 3000, 4000])
PICK = st.integers(0, 5)
ROWS = pytest.mark.row("R-104", "R-105", "R-106", "R-107", "R-108", "R-110", "R-111")
PRIORITY = st.sampled_from([0, 0, 10])


@dataclass
class Model:
    """Milli-CPUs. `since` orders those that wait by when they were first deferred."""

    promised: int
    desired: int
    priority: int
    guaranteed: bool = False
    holds: int = 0
    since: int = 0
    ended: bool = False

    @property
    def counts(self) -> int:
        return 0 if self.ended else max(self.promised, self.holds)


class Allocation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, Model] = {}
        self.full = False

    @initialize(first=st.lists(st.tuples(st.sampled_from([500, 1000]), PRIORITY), min_size=4, max_size=4))
    def begin(self, first: list[tuple[int, int]]) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.node = Allocating(Path(self.folder.name), write=self._write)
        self.api: dict[str, Pod] = {}
        self.made = 0
        self.ticks = 0
        self.loop.run_until_complete(self.node.manager.sources_ready())
        for cpu, priority in first:
            self.add(cpu, priority, guaranteed=False)
        for pick in range(len(first)):
            self.report(pick)

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.manager.close()
            self.loop.close()
            self.folder.cleanup()

    def _write(self, path: Path, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")

    @rule(full=st.booleans())
    def disk(self, full: bool) -> None:
        self.full = full
        self.loop.run_until_complete(self.node.manager.retry("periodic_retry"))
        self._retry()

    @rule(cpu=SIZES, priority=PRIORITY, guaranteed=st.booleans())
    def add(self, cpu: int, priority: int, guaranteed: bool) -> None:
        name = f"p{self.made}"
        self.made += 1
        size = _size(cpu, guaranteed=guaranteed)
        new = placed(pod(Container(name="c1", image="app:1", resources=size), name=name, priority=priority))
        assert (new.status.qos_class == "Guaranteed") is guaranteed
        (answer,) = self.loop.run_until_complete(self.node.add(new))
        fits = self._used() + cpu <= CAPACITY
        assert type(answer) is (Rejected if not fits else Unsaved if self.full else Admitted)
        if isinstance(answer, Admitted):
            self.model[name], self.api[name] = Model(cpu, cpu, priority, guaranteed), new

    @rule(pick=PICK, cpu=SIZES)
    def desire(self, pick: int, cpu: int) -> None:
        name = self._alive(pick)
        if not name or self.model[name].desired == cpu:
            return
        self.loop.run_until_complete(self.node.clock.advance(1))
        self.ticks += 1
        self.model[name].desired = cpu
        if cpu == self.model[name].promised:
            self.model[name].since = 0  # taken back: it no longer waits
        size = _size(cpu, guaranteed=self.model[name].guaranteed)
        self.loop.run_until_complete(self.node.wants(self.api[name], c1=size))
        self._retry()

    @rule(pick=PICK)
    def report(self, pick: int) -> None:
        """The worker has done what was promised, and the status says so."""
        name = self._alive(pick)
        if not name or self.full:
            return  # what was actuated could not be recorded
        before, self.model[name].holds = self.model[name].counts, self.model[name].promised
        self.loop.run_until_complete(self.node.settles(self.api[name]))
        if self.model[name].counts < before:
            self._retry()

    @rule(pick=PICK)
    def end(self, pick: int) -> None:
        name = self._alive(pick)
        if not name:
            return
        self.model[name].ended = True
        self.loop.run_until_complete(self.node.ends(self.api[name]))
        self._retry()

    @rule(pick=PICK)
    def remove(self, pick: int) -> None:
        name = self._alive(pick)
        if name:
            del self.model[name]
            self.loop.run_until_complete(self.node.manager.remove([name]))
            self._retry()

    @invariant()
    def agrees(self) -> None:
        for name, model in self.model.items():
            if not model.ended:
                assert self.node.cpu(self.api[name]) == model.promised, name

    @invariant()
    def never_too_much(self) -> None:
        assert self._used() <= CAPACITY

    @invariant()
    def nothing_that_fits_waits(self) -> None:
        for model in () if self.full else self.model.values():
            if not model.ended and model.desired != model.promised:
                assert self._used() - model.counts + max(model.desired, model.holds) > CAPACITY

    def _alive(self, pick: int) -> str:
        """One of the pods that have not ended; empty when there is none."""
        names = [name for name, each in self.model.items() if not each.ended]
        return names[pick % len(names)] if names else ""

    def _used(self) -> int:
        return sum(each.counts for each in self.model.values())

    def _retry(self) -> None:
        waiting = [each for each in self.model.values() if not each.ended and each.desired != each.promised]
        for each in sorted(waiting, key=_rank):
            if not self.full and self._used() - each.counts + each.desired <= CAPACITY:
                each.promised, each.since = each.desired, 0
            elif not each.since:
                each.since = self.ticks


def _rank(model: Model) -> tuple[bool, int, bool, int]:
    """The specified order: what grows nothing, priority, Guaranteed, how long it has waited (R-104 to R-107)."""
    return model.desired > model.promised, -model.priority, not model.guaranteed, model.since or 10**9


def _size(cpu: int, *, guaranteed: bool) -> ResourceRequirements:
    amounts = {"cpu": f"{cpu}m"} | ({"memory": "1Mi"} if guaranteed else {})
    return needs(amounts, amounts if guaranteed else None)


@ROWS
def test_a_node_promises_what_the_model_promises() -> None:
    run_state_machine_as_test(Allocation, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))


@ROWS
@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_node_promises_what_the_model_promises_many_times(figure: Callable[[str, object], None]) -> None:
    """3,000 courses of 100 steps at random: pods come, grow, shrink, report, end and go on four CPUs, the disk fills
    and empties. What is promised is exactly what a model of plain numbers promises: never too much, nothing that
    fits waits, in the specified order.
    """
    run_state_machine_as_test(Allocation, settings=settings(max_examples=3000, stateful_step_count=100, deadline=None))
    figure("courses", 3000)
