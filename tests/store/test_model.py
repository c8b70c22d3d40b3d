"""Each durable store against a list of everything that ever happened."""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from podfit.store import hub, logged
from podfit.store.hub import HubWatch
from podfit.store.protocol import Change, Compacted, KeyExists, Record, RevisionConflict
from podfit.store.sqlite import sqlite_store
from support.etcd import AnyStore, fresh_prefix, open_etcd
from support.eventually import PATIENCE

T = TypeVar("T")

KEYS = st.sampled_from(["/a", "/b", "/b/c"])
PREFIXES = st.sampled_from(["", "/", "/b", "/b/", "/x"])
WRITES = st.tuples(
    st.sampled_from(["create", "create", "update", "delete", "delete", "stale"]), KEYS, st.binary(max_size=3)
)
BACK = st.integers(0, 12)


@dataclass(eq=False)
class Watcher:
    watch: HubWatch
    prefix: str
    after: int
    found: list[Change] = field(default_factory=list)

    async def read(self, count: int) -> None:
        while len(self.found) < count:
            self.found += await anext(self.watch)


class StoreMachine(RuleBasedStateMachine):
    """`history` is the model: every change that ever happened. The ring holds two changes, so that all joins occur."""

    in_order = True  # writes begun together are done in the order of their beginning

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.patches = [
            mock.patch.object(hub, "RECENT", 2 * hub.OVERHEAD + 6),
            mock.patch.object(hub, "HISTORY_PAGE", 2),
            mock.patch.object(logged, "SWEEP", 1),
        ]
        for patch in self.patches:
            patch.start()
        self.store = self.run(self.open())
        self.first = self.newest = self.store.revision
        self.compacted = self.store.compacted
        self.history: list[Change] = []
        self.watchers: list[Watcher] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 5 * PATIENCE))

    async def open(self) -> AnyStore:
        return sqlite_store(Path(self.directory.name) / "store.db")

    def state(self, revision: int) -> dict[str, Record]:
        then: dict[str, Record] = {}
        for change in self.history:
            if change.record.mod_revision <= revision:
                then.pop(change.record.key, None)
                if not change.deleted:
                    then[change.record.key] = change.record
        return then

    @rule(writes=st.lists(WRITES, min_size=1, max_size=6))
    def write_at_once(self, writes: list[tuple[str, str, bytes]]) -> None:
        """All see the same state; the model decides them one after another."""
        before = self.state(self.store.revision)
        seen = {key: record.mod_revision for key, record in before.items()}
        results = self.run(self.perform(writes, seen))
        for (action, key, value), result in zip(writes, results, strict=True):
            wanted = self.decide(action, key, value, seen.get(key, 1))
            if isinstance(wanted, Change):
                self.history.append(wanted)
                self.newest = wanted.record.mod_revision
                assert result == wanted.record
            else:
                assert type(result) is type(wanted)
                assert getattr(result, "current", None) == getattr(wanted, "current", None)

    async def perform(self, writes: list[tuple[str, str, bytes]], seen: dict[str, int]) -> list[Record | BaseException]:
        work = []
        for action, key, value in writes:
            expected = seen.get(key, 1) - (action == "stale")
            if action == "create":
                work.append(self.store.create(key, value))
            elif action == "delete":
                work.append(self.store.delete(key, expected=expected))
            else:
                work.append(self.store.update(key, value, expected=expected))
        if not self.in_order:
            return [(await asyncio.gather(coroutine, return_exceptions=True))[0] for coroutine in work]
        return await asyncio.gather(*work, return_exceptions=True)

    def decide(self, action: str, key: str, value: bytes, seen: int) -> Change | Exception:
        newest = self.newest
        current = self.state(newest).get(key)
        if action == "create":
            return KeyExists() if current else Change(False, Record(key, value, newest + 1, newest + 1), None)
        if current is None or current.mod_revision != seen or action == "stale":
            return RevisionConflict(current)
        value = current.value if action == "delete" else value
        return Change(action == "delete", Record(key, value, current.create_revision, newest + 1), current)

    @rule(back=BACK)
    def compact(self, back: int) -> None:
        revision = max(self.store.revision - back, 0)
        self.run(self.store.compact(revision))
        self.compacted = max(self.compacted, revision)

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.watchers.clear()
        self.store = self.run(self.open())
        self.reopened()

    def reopened(self) -> None:
        """A file is as it was."""

    @rule(back=BACK, prefix=PREFIXES, after=st.sampled_from(["", "/a", "/b", "/c"]), limit=st.integers(0, 3))
    def list_then(self, back: int, prefix: str, after: str, limit: int) -> None:
        revision = max(self.store.revision - back, self.first)
        try:
            page = self.run(self.store.list(prefix, after=after, limit=limit, revision=revision))
        except Compacted:
            assert revision < self.compacted
            return
        assert revision >= self.compacted
        state = self.state(revision)
        wanted = [state[key] for key in sorted(state) if key.startswith(prefix) and key > after]
        shown = wanted[:limit] if limit else wanted
        assert (list(page.records), page.remaining) == (shown, len(wanted) - len(shown))

    @rule(prefix=PREFIXES, back=st.integers(-2, 20), at_once=st.booleans())
    def watch(self, prefix: str, back: int, at_once: bool) -> None:
        after = max(self.store.revision - back, self.first)
        try:
            watch = self.store.watch(prefix, after=after)
        except Compacted:
            assert after < self.compacted
        else:
            assert after >= self.compacted
            self.watchers.append(Watcher(watch, prefix, after))
            if at_once:
                self.catch_up(self.watchers[-1])

    @precondition(lambda self: self.watchers)
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        self.catch_up(data.draw(st.sampled_from(self.watchers)))

    def catch_up(self, watcher: Watcher) -> None:
        wanted = [
            change
            for change in self.history
            if change.record.mod_revision > watcher.after and change.record.key.startswith(watcher.prefix)
        ]
        try:
            self.run(watcher.read(len(wanted)))
        except Compacted:
            assert watcher.watch.revision < self.compacted
            watcher.watch.close()
            self.watchers.remove(watcher)
        else:
            assert watcher.found == wanted

    @invariant()
    def shows_the_present(self) -> None:
        page = self.run(self.store.list("/"))
        state = self.state(self.store.revision)
        assert list(page.records) == [state[key] for key in sorted(state)]
        assert self.store.revision == self.newest
        assert self.store.compacted == self.compacted

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()
        for patch in self.patches:
            patch.stop()
        self.directory.cleanup()


class EtcdMachine(StoreMachine):
    in_order = False
    url: ClassVar[str]

    async def open(self) -> AnyStore:
        self.prefix = getattr(self, "prefix", "") or fresh_prefix()
        return await open_etcd(self.url, prefix=self.prefix)

    def reopened(self) -> None:
        """Opening writes the mark."""
        self.newest = self.store.revision


def check(machine: type[StoreMachine], examples: int) -> None:
    steps = settings(max_examples=examples, stateful_step_count=30, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(machine, settings=steps)


def test_sqlite_is_the_model() -> None:
    check(StoreMachine, 60)


@pytest.mark.etcd
@pytest.mark.timeout(900)
@pytest.mark.parametrize("examples", [2, pytest.param(100, marks=pytest.mark.campaign)])
def test_etcd_is_the_model(etcd_url: str, monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    """100 courses at random of writes, deletions, lists, watches and compactions: the store on a real etcd answers what
    a model of plain dictionaries answers.
    """
    monkeypatch.setattr(EtcdMachine, "url", etcd_url, raising=False)
    check(EtcdMachine, examples)
