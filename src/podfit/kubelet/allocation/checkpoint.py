"""The two files that survive the kubelet: what was promised and what was actuated (spec 5.1).

    {"data":"{\\"entries\\":{…}}","checksum":1178570812}

Writes are grouped: changes that arrive while a write is on its way share the next one, so fifty pods that resize at
once cost two writes and not fifty. A change becomes visible only when it is durable, and a failed write leaves no trace
of the changes it carried. Writing happens in a thread, which costs 0.1 ms: a slow disk must not stop the event loop.
"""

import asyncio
import itertools
import json
import logging
from collections.abc import Callable, Collection, Mapping, Set
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec

from podfit.api import codec
from podfit.api.core.containers import ResourceRequirements
from podfit.decide.overlay import PodResources
from podfit.kubelet.allocation.checksum import OFFSET, fnv32a, fold
from podfit.net.files import write_atomic

log = logging.getLogger(__name__)

Write = Callable[[Path, bytes], None]


class CheckpointError(Exception):
    """The change could not be made durable, and was not made."""


class Damaged(Exception):
    """The file is no checkpoint, or its checksum does not match."""


def checksum(data: bytes) -> int:
    """Of `(string)` and the data (R-090)."""
    return fnv32a(b"(string)" + data)


class Dumper:
    """Writes entries as they are in the file. Most of them are as they were the last time, and so is their text."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[PodResources, bytes]] = {}

    def dump(self, entries: Mapping[str, PodResources]) -> bytes:
        self._texts = {uid: self._text(uid, entries[uid]) for uid in sorted(entries)}
        pieces = list(itertools.chain.from_iterable((b",", text) for _, text in self._texts.values()))
        pieces = [b'(string){"entries":{', *pieces[1:], b"}}"]
        value = reduce(fold, pieces, OFFSET)
        data = b"".join(pieces).removeprefix(b"(string)").decode()
        return _json({"data": data, "checksum": value}).encode()

    def _text(self, uid: str, resources: PodResources) -> tuple[PodResources, bytes]:
        known = self._texts.get(uid)
        if known is not None and known[0] is resources:
            return known
        return resources, f"{_json(uid)}:{_json(_entry(resources))}".encode()


def dump(entries: Mapping[str, PodResources]) -> bytes:
    return Dumper().dump(entries)


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


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _entry(resources: PodResources) -> dict[str, Any]:
    containers = {name: _resources(resources.containers[name]) for name in sorted(resources.containers)}
    level = None if resources.pod is None else _resources(resources.pod)
    return {"ContainerResources": containers, "PodLevelResources": level}


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
        {name: codec.convert(each, ResourceRequirements) for name, each in containers.items()},
        None if level is None else codec.convert(level, ResourceRequirements),
    )


class Checkpoint:
    """Resources by pod UID, as durable as the file at `path`. `get` never shows what is not on disk."""

    def __init__(self, path: Path, *, write: Write = write_atomic) -> None:
        self.path = path
        self.damage = ""
        """What was wrong with the file that was found; empty when nothing was."""
        self.set_aside: Path | None = None
        """Where the damaged file is now; None when there was none, or it could not be renamed yet."""
        self._write = write
        self._dumper = Dumper()
        self._entries = self._read()
        self._written = self._dumper.dump(self._entries)
        self._behind = False
        self._waiting: dict[str, PodResources] = {}
        self._writing: Set[str] = frozenset()  # the pods whose change is on its way to the disk
        self._next: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()

    def _read(self) -> dict[str, PodResources]:
        """A missing file is an empty one. A damaged one is put aside under a new name and is never a reason to stop."""
        try:
            return load(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (Damaged, OSError) as error:
            self.damage = str(error)
        try:
            self._put_aside()
        except OSError as error:
            log.warning("checkpoint is damaged and stays in place path=%s reason=%s error=%s",
                        self.path, self.damage, error)
        return {}

    def _put_aside(self) -> None:
        """Under the first name that is free, so that no earlier evidence is lost. Raises OSError."""
        numbers = itertools.chain([""], map(".{}".format, itertools.count(2)))
        names = (self.path.with_name(f"{self.path.name}.damaged{number}") for number in numbers)
        aside = next(each for each in names if not each.exists())
        self.path.replace(aside)
        self.set_aside = aside
        log.warning("checkpoint set aside path=%s as=%s reason=%s", self.path, aside, self.damage)

    @property
    def uids(self) -> Collection[str]:
        return self._entries.keys()

    def get(self, uid: str) -> PodResources | None:
        return self._entries.get(uid)

    async def put(self, changes: Mapping[str, PodResources]) -> None:
        """Return when the changes are on disk and visible; CheckpointError when they are neither."""
        same = all(self._entries.get(uid) == resources for uid, resources in changes.items())
        if same and not self._waiting and not self._behind and self._writing.isdisjoint(changes):
            return
        self._waiting.update(changes)
        if self._next is None:
            self._next = asyncio.create_task(self._flush())
        await asyncio.shield(self._next)

    def restore(self, entries: Mapping[str, PodResources]) -> None:
        """Take over what was rebuilt after damage; the next `put`, even one that changes nothing, writes it."""
        self._entries = {**entries, **self._entries}
        self._behind = True

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone; the file loses it at its next writing."""
        self._entries.pop(uid, None)

    def retain(self, uids: Collection[str]) -> None:
        """Drop every pod but these."""
        self._entries = {uid: resources for uid, resources in self._entries.items() if uid in uids}

    async def _flush(self) -> None:
        async with self._busy:
            changes, self._waiting, self._next = self._waiting, {}, None
            content = self._dumper.dump({**self._entries, **changes})
            if content != self._written:
                self._writing = changes.keys()
                try:
                    await asyncio.to_thread(self._replace, content)
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise CheckpointError(f"could not write {self.path}: {reason}") from error
                finally:
                    self._writing = frozenset()
            self._written, self._behind = content, False
            self._entries.update(changes)

    def _replace(self, content: bytes) -> None:
        """A damaged file that could not be renamed before has to be, or this would overwrite it. Raises OSError."""
        if self.damage and self.set_aside is None:
            self._put_aside()
        self._write(self.path, content)
