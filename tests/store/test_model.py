"""The store against a list of everything that ever happened."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from podfit.store.logged import LoggedStore
from podfit.store.protocol import Compacted, KeyExists, RevisionConflict
from podfit.store.sqlite import sqlite_store

KEYS = st.sampled_from(["/a", "/b", "/b/c", "/d"])
VALUES = st.binary(max_size=3)
Seen = tuple[int, str, bytes | None]


class StoreMachine(RuleBasedStateMachine):
    """`history` is the model: (revision, key, value or None for a deletion), one entry a write."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "store.db"
        self.store = self.open()
        self.first = self.store.revision
        self.compacted = 0
        self.history: list[Seen] = []

    def open(self) -> LoggedStore:
        async def inside() -> LoggedStore:
            return sqlite_store(self.path)

        return self.loop.run_until_complete(inside())

    def state(self, revision: int) -> dict[str, tuple[int, bytes]]:
        then: dict[str, tuple[int, bytes]] = {}
        for written, key, value in self.history:
            if written <= revision:
                then.pop(key, None)
                if value is not None:
                    then[key] = (written, value)
        return then

    @rule(key=KEYS, value=VALUES)
    def create(self, key: str, value: bytes) -> None:
        exists = key in self.state(self.store.revision)
        try:
            record = self.loop.run_until_complete(self.store.create(key, value))
        except KeyExists:
            assert exists
        else:
            assert not exists
            self.history.append((record.mod_revision, key, value))

    @rule(key=KEYS, value=st.none() | VALUES, stale=st.booleans())
    def change(self, key: str, value: bytes | None, stale: bool) -> None:
        current = self.state(self.store.revision).get(key)
        expected = (current[0] if current else 1) - stale
        work = self.store.delete(key, expected=expected) if value is None else self.store.update(
            key, value, expected=expected)
        try:
            record = self.loop.run_until_complete(work)
        except RevisionConflict:
            assert stale or current is None
        else:
            assert current is not None
            assert not stale
            self.history.append((record.mod_revision, key, value))

    @rule(back=st.integers(0, 8))
    def compact(self, back: int) -> None:
        revision = max(self.store.revision - back, 0)
        self.loop.run_until_complete(self.store.compact(revision))
        self.compacted = max(self.compacted, revision)

    @rule()
    def reopen(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.store = self.open()

    @rule(back=st.integers(0, 8))
    def list_then(self, back: int) -> None:
        revision = self.store.revision - back
        if revision < self.first:
            return
        try:
            page = self.loop.run_until_complete(self.store.list("/", revision=revision))
        except Compacted:
            assert revision < self.compacted
        else:
            shown = {record.key: (record.mod_revision, record.value) for record in page.records}
            assert shown == self.state(revision)

    @rule(back=st.integers(0, 8), prefix=st.sampled_from(["/", "/b", "/b/"]))
    def watch_from(self, back: int, prefix: str) -> None:
        after = max(self.store.revision - back, self.first)
        try:
            watch = self.store.watch(prefix, after=after)
        except Compacted:
            assert after < self.compacted
            return
        wanted = [seen for seen in self.history if seen[0] > after and seen[1].startswith(prefix)]
        assert self.loop.run_until_complete(self.read(watch, len(wanted))) == wanted

    async def read(self, watch, count: int) -> list[Seen]:  # type: ignore[no-untyped-def]
        found: list[Seen] = []
        async with asyncio.timeout(5):
            while len(found) < count:
                for change in await anext(watch):
                    record = change.record
                    found.append((record.mod_revision, record.key, None if change.deleted else record.value))
        watch.close()
        return found

    @invariant()
    def shows_the_present(self) -> None:
        page = self.loop.run_until_complete(self.store.list("/"))
        shown = {record.key: (record.mod_revision, record.value) for record in page.records}
        assert shown == self.state(self.store.revision)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        self.directory.cleanup()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
