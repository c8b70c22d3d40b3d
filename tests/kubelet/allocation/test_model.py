"""Allocation against a model that knows nothing but a list of numbers: never over-committed, nothing that fits starves.

The model holds for each pod what it was promised and what it still holds (a shrink frees room only once it is
reported), and after every step it tries all that wait, in the specified order, exactly once.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podfit.api.core.pods import Pod
from podfit.kubelet.allocation.admission import Admitted
from support.allocating import Allocating
from support.placed import placed
from support.pods import container, needs, pod

CAPACITY = 4000
SIZES = st.sampled_from([100, 500, 1000, 1500, 2000, 3000, 4000])
PICK = st.integers(0, 5)
PRIORITY = st.sampled_from([0, 0, 10])


@dataclass
class Model:
    """Milli-CPUs. `since` orders those that wait by when they were first deferred."""

    promised: int
    desired: int
    priority: int
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

    @initialize(first=st.lists(st.tuples(st.sampled_from([500, 1000]), PRIORITY), min_size=4, max_size=4))
    def begin(self, first: list[tuple[int, int]]) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.node = Allocating(Path(self.folder.name), write=lambda path, data: None)
        self.api: dict[str, Pod] = {}
        self.made = 0
        self.ticks = 0
        self.loop.run_until_complete(self.node.manager.sources_ready())
        for cpu, priority in first:
            self.add(cpu, priority)
        for pick in range(len(first)):
            self.report(pick)

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.manager.close()
            self.loop.close()
            self.folder.cleanup()

    @rule(cpu=SIZES, priority=PRIORITY)
    def add(self, cpu: int, priority: int) -> None:
        name = f"p{self.made}"
        self.made += 1
        new = placed(pod(container("c1", {"cpu": f"{cpu}m"}), name=name, priority=priority))
        (answer,) = self.loop.run_until_complete(self.node.add(new))
        assert isinstance(answer, Admitted) is (self._used() + cpu <= CAPACITY)
        if isinstance(answer, Admitted):
            self.model[name], self.api[name] = Model(cpu, cpu, priority), new

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
        self.loop.run_until_complete(self.node.wants(self.api[name], c1=needs({"cpu": f"{cpu}m"})))
        self._retry()

    @rule(pick=PICK)
    def report(self, pick: int) -> None:
        """The worker has done what was promised, and the status says so."""
        name = self._alive(pick)
        if not name:
            return
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
        for model in self.model.values():
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
        for each in sorted(waiting, key=lambda m: (m.desired > m.promised, -m.priority, m.since or 10**9)):
            if self._used() - each.counts + each.desired <= CAPACITY:
                each.promised, each.since = each.desired, 0
            elif not each.since:
                each.since = self.ticks


Allocation.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestAllocation = Allocation.TestCase
