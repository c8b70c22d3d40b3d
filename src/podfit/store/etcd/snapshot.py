"""Everything under the prefix at one revision, and a write of the mark at that revision: from there on a watch is
complete, and there is an event at which it begins.
"""

from typing import Any

import msgspec

from podfit.store.etcd import etcd_v3_pb2 as pb
from podfit.store.etcd.members import EtcdMembers
from podfit.store.etcd.messages import Keys
from podfit.store.protocol import Record

PART = 1000
"""Records read at once."""


class Snapshot(msgspec.Struct, frozen=True):
    records: list[Record]
    revision: int


async def snapshot(members: EtcdMembers, keys: Keys, mark: bytes) -> Snapshot:
    """Raises StoreUnavailable, and AioRpcError where history is compacted meanwhile."""
    written = await members.read("KV/Put", pb.PutRequest(key=keys.mark, value=mark), pb.PutResponse)
    revision: int = written.header.revision
    records: list[Record] = []
    low, end = keys.range(keys.root)
    answer: Any = None
    while answer is None or answer.more:
        request = pb.RangeRequest(key=low, range_end=end, limit=PART, revision=revision)
        answer = await members.read("KV/Range", request, pb.RangeResponse)
        records += map(keys.record, answer.kvs)
        low = keys.outer(records[-1].key) + b"\0" if records else low
    return Snapshot(records, revision)
