"""The format of checkpoints and of one record of the journal (R-090).

    {"data":"{\\"entries\\":{…}}","checksum":1178570812}        the whole file
    {"put":{"UID":{…}},"drop":["UID"]}                        what a journal records

An entry is upstream's, and has `RestartingContainers` besides while containers are stopped to be started anew.
An entry is text once: what did not change since the last writing is neither encoded nor summed again.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from typing import Any

import msgspec

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.meta import codec
from podfit.core.bounded_cache import cached_within
from podfit.decide.pod.allocated import PodResources

OFFSET, PRIME, SIZE = 2166136261, 16777619, 1 << 32  # of FNV-1a, 32 bits
Texts = Mapping[str, bytes]
"""Entries by pod UID, in the order of the UIDs, each as it is in the file: `"UID":{…}`."""


class Damaged(Exception):
    """The file is no checkpoint, or a checksum does not match."""


def checksum(data: bytes) -> int:
    """The checksum of `(string)` and the data (R-090)."""
    return fnv32a(b"(string)" + data)


class EntryEncoder:
    """Makes texts of entries. Most of them are as they were the last time, and so is their text."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[PodResources, bytes]] = {}

    def texts(self, entries: Mapping[str, PodResources]) -> Texts:
        self._known = {uid: self._text(uid, entries[uid]) for uid in sorted(entries)}
        return {uid: text for uid, (_, text) in self._known.items()}

    def _text(self, uid: str, resources: PodResources) -> tuple[PodResources, bytes]:
        known = self._known.get(uid)
        if known is not None and known[0] is resources:
            return known
        return resources, f"{_json(uid)}:{_json(_entry(resources))}".encode()


def whole(texts: Texts) -> bytes:
    pieces = list(itertools.chain.from_iterable((b",", text) for text in texts.values()))
    pieces = [b'(string){"entries":{', *pieces[1:], b"}}"]
    value = reduce(fold, pieces, OFFSET)
    data = b"".join(pieces).removeprefix(b"(string)").decode()
    return _json({"data": data, "checksum": value}).encode()


def dump(entries: Mapping[str, PodResources]) -> bytes:
    return whole(EntryEncoder().texts(entries))


def load(content: bytes) -> dict[str, PodResources]:
    """The entries of a file. Damaged says what is wrong with it."""
    try:
        document = json.loads(content)
        data, expected = document["data"], document["checksum"]
        entries = json.loads(data)["entries"] or {}
        found = checksum(data.encode())
        resources = {uid: _read_entry(entry) for uid, entry in entries.items()}
    except (ValueError, LookupError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise Damaged(f"not a checkpoint: {error}") from error
    if found != expected:
        raise Damaged(f"checksum is {found}, the file says {expected}")
    return resources


def change(put: Iterable[bytes], drop: Collection[str]) -> bytes:
    """One record: the texts of what is new or different, and who is there no more."""
    return b'{"put":{%b},"drop":%b}' % (b",".join(put), _json(sorted(drop)).encode())


def apply(entries: dict[str, PodResources], record: bytes) -> None:
    try:
        document = json.loads(record)
        entries.update((uid, _read_entry(entry)) for uid, entry in document["put"].items())
        dropped = list(document["drop"])
    except (ValueError, LookupError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise Damaged(f"not a change of a checkpoint: {error}") from error
    for uid in dropped:
        entries.pop(uid, None)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _entry(resources: PodResources) -> dict[str, Any]:
    containers = {name: _resources(resources.containers[name]) for name in sorted(resources.containers)}
    level = None if resources.pod is None else _resources(resources.pod)
    restarting = {name: resources.restarting[name] for name in sorted(resources.restarting)}
    entry: dict[str, Any] = {"ContainerResources": containers, "PodLevelResources": level}
    return entry | ({"RestartingContainers": restarting} if restarting else {})


def _resources(resources: ResourceRequirements) -> dict[str, Any]:
    lists = {"limits": resources.limits, "requests": resources.requests}
    written: dict[str, Any] = {
        key: {name: str(amounts[name]) for name in sorted(amounts)} for key, amounts in lists.items() if amounts
    }
    return written | ({"claims": codec.to_dict(resources.claims)} if resources.claims else {})


def _read_entry(entry: dict[str, Any]) -> PodResources:
    containers = entry.get("ContainerResources") or {}
    level = entry.get("PodLevelResources")
    return PodResources(
        {name: codec.convert(resources, ResourceRequirements) for name, resources in containers.items()},
        None if level is None else codec.convert(level, ResourceRequirements),
        msgspec.convert(entry.get("RestartingContainers") or {}, dict[str, str]),
    )


def fnv32a(data: bytes, value: int = OFFSET) -> int:
    """FNV-1a, byte by byte."""
    for byte in data:
        value = (value ^ byte) * PRIME & 0xFFFFFFFF
    return value


def fold(value: int, piece: bytes) -> int:
    """What `fnv32a(piece, value)` is, quickly for a piece that was there before.

        fnv(value, byte) = (value ^ byte) * PRIME mod 2^32

    The exclusive or sees the lowest byte of the value only, so the upper bytes go through a piece as a factor:

        fnv(value, piece) = (value - low) * PRIME^length + fnv(low, piece)      low = value mod 256

    What is left to sum byte by byte depends on the piece and on one of 256 beginnings. Fifty pods are 8 kB, which takes
    a millisecond for every write of a checkpoint when summed anew.
    """
    low = value & 0xFF
    return ((value - low) * pow(PRIME, len(piece), SIZE) + _from(piece, low)) % SIZE


@cached_within(8 * 2**20)
def _from(piece: bytes, low: int) -> int:
    return fnv32a(piece, low)
