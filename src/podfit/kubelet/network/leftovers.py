"""Addresses and network namespaces whose pods are gone: those of a runtime that was killed while it made a pod.

host-local keeps a file for each address, with the sandbox's id as its first line; the runtime keeps a mount for each
namespace, below its own state; libcni keeps what each plugin answered. What is the node's network's is known by the
network's name, or by lying below the runtime's own directory.
"""

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from pathlib import Path

import msgspec

from podfit.kubelet.disk.mounter import TmpfsMounter, mount_points

RESULTS = Path("/var/lib/cni/results")
LEAST_SECONDS = 120.0
"""Younger ones may be of a pod that is being made."""
WRITTEN_SECONDS = 5.0
"""An answer that is not whole after so long never will be: whoever wrote it was killed."""


class NetworkTraces(msgspec.Struct, frozen=True):
    """`name` is the network's, `addresses` host-local's directory. Below `namespaces` the runtime mounts them, in a
    directory that is called `netns`.
    """

    name: str
    addresses: Path
    namespaces: Path
    results: Path = RESULTS

    def taken(self) -> dict[str, Path]:
        """The addresses that are taken, with their files."""
        directory = self.addresses / self.name
        found = directory.iterdir() if directory.is_dir() else iter(())
        return {path.name: path for path in found if _is_address(path.name)}

    def sweep(self, sandboxes: Collection[str], now: float, least: float) -> list[str]:
        """Free what is older than `least` seconds, of none of these sandboxes (ids), and of no process; what was freed,
        for the log. Raises OSError.
        """
        mended = self.mend(sandboxes, now, WRITTEN_SECONDS)
        return [*mended, *self._addresses(sandboxes, now, least), *self._mounts(now, least)]

    def mend(self, sandboxes: Collection[str], now: float, least: float) -> list[str]:
        """Remove answers of plugins for these sandboxes that were not written whole: as long as there is one, libcni
        does not take down the sandbox's network, and the runtime not the sandbox; without one it does. What was
        removed, for the log. Raises OSError.
        """
        kept = [(answer, self._owner(answer)) for answer in self._answers()]
        kept += [(self.results / f"cni-loopback-{sandbox}-lo", sandbox) for sandbox in sandboxes]
        found = []
        for answer, owner in kept:
            with contextlib.suppress(FileNotFoundError):
                if owner in sandboxes and now - answer.stat().st_mtime >= least and not _is_whole(answer):
                    answer.unlink()
                    found.append(f"broken answer of a plugin {answer.name}")
        return found

    def remove(self) -> None:
        """All of it: the runtime has ended, with every pod. Raises OSError."""
        for path in self.taken().values():
            path.unlink(missing_ok=True)
        for answer in self._answers():
            _forget(answer, self._owner(answer))
        for point in self._mounted():
            _unmount(point)

    def lines(self) -> list[str]:
        """What there is, for people."""
        return [*self.taken(), *map(str, self._mounted()), *map(str, self._answers())]

    def _addresses(self, sandboxes: Collection[str], now: float, least: float) -> Iterator[str]:
        directory = self.addresses / self.name
        if not directory.is_dir():
            return
        with _locked(directory):
            for address, path in self.taken().items():
                with contextlib.suppress(FileNotFoundError):
                    owner = (path.read_text().split() or [""])[0]
                    if owner not in sandboxes and now - path.stat().st_mtime >= least:
                        path.unlink()
                        yield f"address {address}"
        for answer in self._answers():
            with contextlib.suppress(FileNotFoundError):
                owner = self._owner(answer)
                if owner not in sandboxes and now - answer.stat().st_mtime >= least:
                    _forget(answer, owner)

    def _mounts(self, now: float, least: float) -> Iterator[str]:
        mounted = self._mounted()
        used = _of_processes() if mounted else frozenset()
        for point in mounted:
            with contextlib.suppress(FileNotFoundError):
                seen = point.stat()
                if seen.st_ino not in used and now - seen.st_ctime >= least:
                    _unmount(point)
                    yield f"namespace {point.name}"

    def _mounted(self) -> list[Path]:
        return [point for point in mount_points(self.namespaces) if point.parent.name == "netns"]

    def _owner(self, answer: Path) -> str:
        """The sandbox's id: the file is called NETWORK-ID-INTERFACE."""
        return answer.name.removeprefix(f"{self.name}-").partition("-")[0]

    def _answers(self) -> list[Path]:
        return list(self.results.glob(f"{self.name}-*")) if self.results.is_dir() else []


def _is_whole(answer: Path) -> bool:
    try:
        msgspec.json.decode(answer.read_bytes())
    except msgspec.DecodeError:
        return False
    return True


def _of_processes() -> frozenset[int]:
    """The numbers of the network namespaces that processes are in."""
    found = set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.add((process / "ns/net").stat().st_ino)
    return frozenset(found)


def _forget(answer: Path, sandbox: str) -> None:
    """Forgets it, with what the runtime's own network `cni-loopback` answered for it."""
    answer.unlink(missing_ok=True)
    (answer.parent / f"cni-loopback-{sandbox}-lo").unlink(missing_ok=True)


def _unmount(point: Path) -> None:
    TmpfsMounter().unmount(point)
    point.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """host-local's own lock."""
    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
