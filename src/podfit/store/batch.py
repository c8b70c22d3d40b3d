"""Compare and swap: which of the writes that wait go through, and with which revision.

Losers are told only when what they lost to is durable, so their answers travel with the batch.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from podfit.store.index import Index
from podfit.store.protocol import Change, KeyExists, Record, RevisionConflict, StoreError


class Write(msgspec.Struct, frozen=True):
    key: str
    value: bytes | None  # None deletes
    expected: int | None  # None creates
    done: asyncio.Future[Record]


class Batch(msgspec.Struct, frozen=True):
    changes: Sequence[Change]
    outcomes: Sequence[tuple[Write, Record | StoreError]]  # what each writer is told once the changes are durable


def decide(queue: Sequence[Write], index: Index, revision: int) -> Batch:
    """Compare and swap, in order: `revision` is the last one given out, `index` the state at it."""
    head: dict[str, Record | None] = {}
    changes: list[Change] = []
    outcomes: list[tuple[Write, Record | StoreError]] = []
    for write in queue:
        if write.done.done():
            continue  # cancelled while it waited
        current = head[write.key] if write.key in head else index.get(write.key)
        try:
            change = _decide(write, current, revision + len(changes) + 1)
        except StoreError as refusal:
            outcomes.append((write, refusal))
        else:
            head[write.key] = None if change.deleted else change.record
            changes.append(change)
            outcomes.append((write, change.record))
    return Batch(changes, outcomes)


def _decide(write: Write, current: Record | None, revision: int) -> Change:
    if write.expected is None:
        if current is not None:
            raise KeyExists(write.key)
        return Change(False, Record(write.key, write.value or b"", revision, revision), None)
    if current is None or current.mod_revision != write.expected:
        raise RevisionConflict(current)
    value = current.value if write.value is None else write.value
    return Change(write.value is None, Record(write.key, value, current.create_revision, revision), current)
