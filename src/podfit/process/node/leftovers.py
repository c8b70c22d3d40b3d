"""Finds what a cluster has outside of its data directory: processes, mounts, cgroups, networks.

Everything is found by what only this data directory's cluster can have: its containerd's configuration and socket, its
part of the cgroup tree, its mounts. Network namespaces carry no such mark; they are known by the processes in them, so
one has to look before the processes end.
"""

import contextlib
import logging
import os
import signal
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import msgspec
from msgspec.structs import fields

from podfit.core.clock import Clock
from podfit.kubelet.disk.mounter import mount_points
from podfit.kubelet.network.machine import routes
from podfit.kubelet.runtime.containerd import Places
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import ClusterError, MachineError
from podfit.process.node.pod_network import network_traces, remove_network, shared_network
from podfit.process.node.runtime import cgroup_layout

NAMESPACES = Path("/run/netns")
MADE = "cni-*"  # by containerd; one of another name was there before, such as that which this node itself is in
WAIT_SECONDS = 3.0  # the last shim ends a moment after its container
STEP = 0.05
NAMED = 3
log = logging.getLogger(__name__)


class LeftBehind(ClusterError):
    """Something of a stopped cluster is still there."""

    exit_code = 1


class Leftovers(msgspec.Struct, frozen=True):
    """Lines for people, by kind."""

    processes: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    cgroups: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    """Of pods: ranges and addresses that are taken, interfaces that they are routed to."""

    def __bool__(self) -> bool:
        return any(getattr(self, kind.name) for kind in fields(self))

    def lines(self) -> tuple[str, ...]:
        kinds = {kind.name: getattr(self, kind.name) for kind in fields(self)}
        return tuple(f"{kind}: {trace}" for kind, traces in kinds.items() for trace in traces)


def counted(lines: Iterable[str]) -> tuple[str, ...]:
    """`Leftovers.lines()` with one of each kind: `processes: 14: 9 sleep, 5 containerd-shim-runc-v2`."""
    kinds: dict[str, list[str]] = {}
    for line in lines:
        kind, _, trace = line.partition(": ")
        kinds.setdefault(kind, []).append(trace)
    return tuple(f"{kind}: {_named(kind, traces)}" for kind, traces in kinds.items())


def _named(kind: str, traces: list[str]) -> str:
    if len(traces) == 1:
        return traces[0]
    names = traces
    if kind == "processes":
        programs = Counter(Path(words[1]).name if len(words := trace.split()) > 1 else trace for trace in traces)
        names = [f"{number} {program}" for program, number in programs.most_common()]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(traces)}: {', '.join(names[:NAMED])}{more}"


class Traces:
    """Knows the marks of one data directory. `look` says what is there now.

    Network namespaces that its processes are in are remembered from every look, so that one which outlives them is
    recognised.
    """

    def __init__(self, data: DataDir) -> None:
        self._data = data
        self._places = Places(data.containerd)
        self._trees = cgroup_layout(data).trees
        self._known: set[int] = set()

    def look(self) -> Leftovers:
        processes = dict(self._processes())
        self._known |= {namespace for pid in processes if (namespace := _namespace(pid))} - {_namespace(os.getpid())}
        return Leftovers(
            tuple(f"{pid} {command}" for pid, command in sorted(processes.items())),
            tuple(sorted(self._mounts())),
            tuple(sorted(map(str, self._cgroups()))),
            tuple(sorted(self._namespaces())),
            tuple(sorted(self._network())),
        )

    def end_processes(self) -> None:
        """End what still runs, to be called when its containerd has ended: one that was killed while it made a sandbox
        may say later that it removed it, and leave the shim and what runs below."""
        for pid, command in self._processes():
            log.warning("ending what the runtime has left pid=%d command=%s", pid, command)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def verify(self, clock: Clock) -> None:
        """Raises LeftBehind when something stays."""
        deadline = clock.monotonic() + WAIT_SECONDS
        while left := self.look():
            if clock.monotonic() >= deadline:
                raise LeftBehind(
                    f"not everything of the cluster on {self._data.root} is gone",
                    evidence=counted(left.lines()),
                    fix=(f"try again:  {self._data.command('down')}",),
                )
            await clock.sleep(STEP)

    def _processes(self) -> Iterator[tuple[int, str]]:
        """containerd, its shims, and whatever runs in our cgroups; never this process."""
        marks = {str(self._places.config), str(self._places.socket)}
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                words = (directory / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
                groups = (directory / "cgroup").read_text()
            except OSError:
                continue
            program = Path(words[0]).name
            is_runtime = program.startswith("containerd") and not marks.isdisjoint(words)
            is_contained = any(f":{tree}/" in groups for tree in self._trees)
            if int(directory.name) != os.getpid() and (is_runtime or is_contained):
                yield int(directory.name), " ".join(words) or program

    def _mounts(self) -> Iterator[str]:
        """At the directories themselves somebody else may have mounted; below them only we do."""
        for root in (self._data.root, self._places.run):
            yield from (str(point) for point in mount_points(root) if point != root)

    def _cgroups(self) -> Iterator[Path]:
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, where, kind, *_ = line.split()
            groups = [Path(where, tree.strip("/")) for tree in self._trees]
            if kind in ("cgroup", "cgroup2"):
                yield from (group for group in groups if group.is_dir())

    def _network(self) -> Iterator[str]:
        claimed = shared_network(self._data).claimed()
        yield from claimed
        yield from network_traces(self._data).lines()
        ours = [IPv4Network(network) for network in claimed]
        for route in routes() if ours else ():
            if any(route.network.subnet_of(network) for network in ours):
                yield f"{route.interface} {route.network}"

    def _namespaces(self) -> Iterator[str]:
        for path in NAMESPACES.glob(MADE) if self._known else ():
            found = path.stat()
            if stat.S_ISREG(found.st_mode) and found.st_ino in self._known:
                yield str(path)


def _namespace(pid: int) -> int:
    """The number of a process's network namespace; 0 when the process is gone."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return 0


async def forget_network(data: DataDir) -> None:
    """After a start that failed: where nothing runs on the directory, nothing has an address or a rule either."""
    if Traces(data).look().processes:
        return
    try:
        await remove_network(data)
    except MachineError as error:
        log.warning("the start has failed, and the pods' network stays error=%s", error)
