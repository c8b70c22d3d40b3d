"""Compare-and-swap over a batch: which queued writes succeed, and with which revision.

Losers are told only when what they lost to is durable, so their answers travel with the batch.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from podfit.store.index import Index
from podfit.store.protocol import Change, Companion, CompanionConflict, KeyExists, Record, RevisionConflict, StoreError


class Write(msgspec.Struct, frozen=True):
    key: str
    value: bytes | None  # None deletes
    expected: int | None  # None creates
    freeing: bool  # is tried on a full disk too
    done: asyncio.Future[Record]
    along: Sequence[Companion] = ()
    tries: int = 1


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
        try:
            made = _made(write, lambda key: head[key] if key in head else index.get(key), revision + len(changes) + 1)
        except StoreError as refusal:
            outcomes.append((write, refusal))
        else:
            for change in made:
                head[change.record.key] = None if change.deleted else change.record
            changes += made
            outcomes.append((write, made[0].record))
    return Batch(changes, outcomes)


def _made(write: Write, current: Callable[[str], Record | None], revision: int) -> list[Change]:
    """The write's change and its companions', the first of them with this revision."""
    changes = [_decide(write, current(write.key), revision)]
    for offset, companion in enumerate(write.along, 1):
        before = current(companion.key)
        if before is None or before.mod_revision != companion.expected:
            raise CompanionConflict
        record = Record(companion.key, companion.value, before.create_revision, revision + offset)
        changes.append(Change(False, record, before))
    return changes


def _decide(write: Write, current: Record | None, revision: int) -> Change:
    if write.expected is None:
        if current is not None:
            raise KeyExists(write.key)
        return Change(False, Record(write.key, write.value or b"", revision, revision), None)
    if current is None or current.mod_revision != write.expected:
        raise RevisionConflict(current)
    value = current.value if write.value is None else write.value
    return Change(write.value is None, Record(write.key, value, current.create_revision, revision), current)
