"""Opens etcd: checks its version, and that what is under the prefix is podfit's.

The key that is the prefix itself says so. Values there are the JSON that the embedded store keeps, not the protobuf of
an upstream API server, and each would misread the other's; so a prefix that holds keys and no mark is refused.
"""

import grpc.aio
import msgspec

from podfit.store.etcd import etcd_v3_pb2 as pb
from podfit.store.etcd.history import compacted_revision
from podfit.store.etcd.members import EtcdMembers
from podfit.store.etcd.messages import Keys
from podfit.store.etcd.options import EtcdOptions, EtcdUnusable
from podfit.store.etcd.snapshot import snapshot
from podfit.store.etcd.store import EtcdStore

OLDEST = (3, 4)
ENCODING = 1
UPSTREAM = b"k8s\0"  # what upstream's encoding begins with


class _Mark(msgspec.Struct, frozen=True):
    podfit: int  # the encoding of what is stored beside it


async def etcd_store(options: EtcdOptions, *, root: str = "") -> EtcdStore:
    """Open the store; `root` is the part of every key that `options.prefix` stands for in etcd.

    Raises EtcdUnusable, StoreUnavailable.
    """
    options.check()
    members = EtcdMembers(options)
    keys = Keys(f"{options.prefix}/", root)
    try:
        await _check_version(members)
        await _check_mark(members, keys)
        mark = msgspec.json.encode(_Mark(podfit=ENCODING))
        begin = await snapshot(members, keys, mark)
        compacted = await compacted_revision(members, keys)
    except grpc.aio.AioRpcError as error:
        await members.close()
        raise EtcdUnusable(f"etcd at {', '.join(options.servers)}: {error.details()}") from error
    except BaseException:
        await members.close()
        raise
    return EtcdStore(members, keys, mark=mark, begin=begin, compacted=compacted)


async def _check_version(members: EtcdMembers) -> None:
    found = (await members.read("Maintenance/Status", pb.StatusRequest(), pb.StatusResponse)).version
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise EtcdUnusable(f"etcd {found} is too old: podfit needs 3.4 or later")


async def _check_mark(members: EtcdMembers, keys: Keys) -> None:
    mark = await members.read("KV/Range", pb.RangeRequest(key=keys.mark), pb.RangeResponse)
    if mark.kvs:
        _check_encoding(mark.kvs[0].value, keys)
        return
    low, end = keys.range(keys.root)
    held = await members.read("KV/Range", pb.RangeRequest(key=low, range_end=end, limit=1), pb.RangeResponse)
    if held.kvs:
        whose = "an upstream API server (protobuf)" if held.kvs[0].value.startswith(UPSTREAM) else "another program"
        raise EtcdUnusable(
            f"etcd holds {held.count} keys of {whose} under {keys.prefix}, the first is {held.kvs[0].key!r}; podfit "
            "neither reads nor overwrites them: choose another prefix with --etcd-prefix"
        )


def _check_encoding(value: bytes, keys: Keys) -> None:
    try:
        found = msgspec.json.decode(value, type=_Mark).podfit
    except msgspec.DecodeError:
        raise EtcdUnusable(f"the key {keys.prefix} of etcd is not the mark of podfit: {value[:60]!r}") from None
    if found > ENCODING:
        raise EtcdUnusable(
            f"what etcd holds under {keys.prefix} was written by a newer podfit: encoding {found}, this podfit reads "
            f"{ENCODING}"
        )
