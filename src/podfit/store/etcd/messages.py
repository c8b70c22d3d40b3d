"""Conversion between etcd's messages and the store's records.

In etcd stands `prefix` where the store's keys begin with `root`; the key that is the prefix itself is the store's own
mark, and no record. A watch of the range is therefore never without an event whose revision is known.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from podfit.store.etcd import etcd_v3_pb2 as pb
from podfit.store.protocol import Change, Record, StoreError


class Keys(msgspec.Struct, frozen=True):
    """`prefix` ends with a slash, and `root` is empty or does."""

    prefix: str
    root: str

    @property
    def mark(self) -> bytes:
        return self.prefix.encode()

    @property
    def end(self) -> bytes:
        return bytes_end(self.mark)

    def outer(self, key: str) -> bytes:
        assert key.startswith(self.root), f"{key!r} is not below {self.root}"
        return (self.prefix + key[len(self.root) :]).encode()

    def inner(self, key: bytes) -> str:
        return self.root + key.decode()[len(self.prefix) :]

    def range(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """Bounds of the keys that start with `prefix` and come behind `after`."""
        low = self.outer(prefix)
        end = bytes_end(low)
        low = max(low, self.mark + b"\0")
        return (max(low, self.outer(after) + b"\0") if after else low), end

    def record(self, kv: Any) -> Record:
        return Record(self.inner(kv.key), kv.value, kv.create_revision, kv.mod_revision)

    def changes(self, events: Iterable[Any]) -> list[Change]:
        """Raises Incomplete when etcd does not know any more what an event replaced."""
        return [self._change(event) for event in events if event.kv.key != self.mark]

    def _change(self, event: Any) -> Change:
        kv = event.kv
        created = event.type == pb.Event.PUT and kv.version == 1
        if not created and not event.prev_kv.key:
            raise Incomplete(kv.mod_revision)
        previous = None if created else self.record(event.prev_kv)
        if event.type == pb.Event.PUT:
            return Change(False, self.record(kv), previous)
        assert previous is not None
        return Change(True, Record(previous.key, previous.value, previous.create_revision, kv.mod_revision), previous)


class Incomplete(StoreError):
    """What was before this revision is compacted."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"history before revision {revision} is compacted")
        self.revision = revision


def bytes_end(prefix: bytes) -> bytes:
    """The smallest key above every key that starts with `prefix`."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1])


def compared(key: bytes, expected: int | None) -> list[Any]:
    """That the key is not there (None), or that its revision is the expected one. A missing key's revision is 0."""
    if expected is None:
        return [pb.Compare(result=pb.Compare.EQUAL, target=pb.Compare.VERSION, key=key, version=0)]
    return [
        pb.Compare(result=pb.Compare.GREATER, target=pb.Compare.VERSION, key=key, version=0),
        pb.Compare(result=pb.Compare.EQUAL, target=pb.Compare.MOD, key=key, mod_revision=expected),
    ]


def write(key: bytes, value: bytes | None, expected: int | None, along: Sequence[tuple[bytes, bytes, int]] = ()) -> Any:
    """A compare and swap; where it fails, it reads what is there instead. `value` None deletes. `along` are keys that
    are swapped too, with their values and expected revisions."""
    success: Sequence[Any]
    if value is None:
        success = [pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key, prev_kv=True))]
    else:
        success = [
            pb.RequestOp(request_put=pb.PutRequest(key=key, value=value)),
            pb.RequestOp(request_range=pb.RangeRequest(key=key, keys_only=True)),
        ]
    failure = [pb.RequestOp(request_range=pb.RangeRequest(key=key))]
    compare = compared(key, expected)
    for other, content, revision in along:
        compare += compared(other, revision)
        success = [pb.RequestOp(request_put=pb.PutRequest(key=other, value=content)), *success]
    return pb.TxnRequest(compare=compare, success=success, failure=failure)


def watching(key: bytes, end: bytes, start: int) -> Any:
    create = pb.WatchCreateRequest(key=key, range_end=end, start_revision=start, prev_kv=True, progress_notify=True)
    return pb.WatchRequest(create_request=create)
