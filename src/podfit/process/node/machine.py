"""Facts about this machine, as `decide.machine` judges them. Looking changes nothing; a port is bound for a moment."""

import errno
import importlib.util
import os
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from podfit.decide.machine import PLUGINS, Cgroups, Disk, Facts
from podfit.decide.node.packet_filter import BASE, NEEDS, check_text
from podfit.net.processes import CNI_FOLDERS, MissingProgram, static_busybox
from podfit.process.data.data_dir import DataDir

PROGRAMS = {
    "containerd": ("--version",),
    "runc": ("--version",),
    "nft": ("--version",),
    "ip": ("-Version",),
    "catatonit": ("--version",),
    "conntrack": ("--version",),
}
VERSION_SECONDS = 5.0
AHEAD_SECONDS = 60.0
NO_PORTS: Mapping[str, tuple[str, int]] = {}
PROC = Path("/proc")


def look(
    data: DataDir,
    now: datetime,
    *,
    ports: Mapping[str, tuple[str, int]] = NO_PORTS,
    versions: bool = True,
    rules: bool = True,
) -> Facts:
    """All facts. `ports` are addresses to listen on, by name; without `versions` no program is asked for its own
    (50 ms), without `rules` nft is not asked what the kernel has (10 ms).
    """
    status = _status()
    return Facts(
        system=os.uname().sysname,
        release=os.uname().release,
        user=os.geteuid(),
        capabilities=int(status.get("CapEff", "0"), 16),
        programs=_programs(versions=versions),
        static_busybox=_has_static_busybox(),
        hosts_file=Path("/etc/hosts").exists(),
        plugins=next((folder for folder in CNI_FOLDERS if _has_plugins(folder)), ""),
        modules=frozenset(name for name in ("grpc", "google.protobuf", "duckdb") if _importable(name)),
        cgroups=_cgroups(),
        filter_lacks=filter_lacks() if rules and os.geteuid() == 0 else (),
        switches=_writable(str(PROC / "sys/net/ipv4/ip_forward")),
        overlay=_overlay(),
        namespaces=_namespaces(),
        seccomp="Seccomp" in status,
        pressure=(PROC / "pressure/cpu").exists(),
        disk=_disk(data.root),
        ports={name: _taken(host, port) for name, (host, port) in ports.items()},
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        inotify_instances=int(next(iter(_lines("sys/fs/inotify/max_user_instances")), "128")),
        random_ready=_random_ready(),
        clock_behind=_made_in_the_future(data, now),
        clock_step=time.get_clock_info("monotonic").resolution,
    )


def _lines(name: str) -> list[str]:
    """The lines of a file below /proc; none where it is missing."""
    try:
        return [line for line in (PROC / name).read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []


def _status() -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in _lines("self/status"))}


def _overlay() -> bool:
    """The kernel has it, or loads it with the first mount."""
    if any(line.split()[-1] == "overlay" for line in _lines("filesystems")):
        return True
    modules = Path("/lib/modules", os.uname().release)
    lists = [modules / name for name in ("modules.builtin", "modules.dep") if (modules / name).exists()]
    return any("/overlay.ko" in path.read_text(errors="replace") for path in lists)


def filter_lacks() -> tuple[str, ...]:
    """Options of the kernel without which nft refuses rules of Services; none where there is no nft to ask."""
    program = shutil.which("nft")
    if program is None or _takes(program, check_text(NEEDS)):
        return ()
    if not _takes(program, check_text((BASE,))):
        return (BASE,)
    return tuple(name for name in NEEDS if not _takes(program, check_text((name,))))


def _takes(nft: str, rules: str) -> bool:
    try:
        done = subprocess.run(
            [nft, "--check", "-f", "-"], check=False, capture_output=True, input=rules.encode(), timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _namespaces() -> frozenset[str]:
    try:
        return frozenset(os.listdir(PROC / "self/ns"))
    except OSError:
        return frozenset()


def _programs(*, versions: bool) -> dict[str, str]:
    places = {name: place for name in PROGRAMS if (place := shutil.which(name))}
    if not versions:
        return places
    with ThreadPoolExecutor(len(PROGRAMS)) as beside:
        told = beside.map(lambda name: _version(places[name], PROGRAMS[name]), places)
        return dict(zip(places, told, strict=True))


def _version(program: str, arguments: tuple[str, ...]) -> str:
    """The first line that it prints, or the place where it lies."""
    try:
        command = [program, *arguments]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return f"{program}, which does not run"
    return (done.stdout.strip() or done.stderr.strip() or program).splitlines()[0][:200]


def _has_plugins(folder: str) -> bool:
    return all(os.access(f"{folder}/{plugin}", os.X_OK) for plugin in PLUGINS)


def _has_static_busybox() -> bool:
    try:
        static_busybox()
    except MissingProgram:
        return False
    return True


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _cgroups() -> Cgroups:
    """From the mounts, as `kubelet.cgroup.detect` reads them."""
    first, second = dict[str, str](), ""
    for line in _lines("self/mounts"):
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            first |= dict.fromkeys(options.split(","), where)
        elif kind == "cgroup2":
            second = second or where
    if first.keys() & {"cpu", "memory"}:
        writable = all(_writable(first[name]) for name in ("cpu", "memory") if name in first)
        return Cgroups("v1 (hybrid)" if second else "v1", tuple(sorted(first)), writable)
    if not second:
        return Cgroups()
    try:
        controllers = Path(second, "cgroup.controllers").read_text().split()
    except OSError:
        controllers = []
    return Cgroups("v2", tuple(controllers), _writable(second))


def _writable(folder: str) -> bool:
    return os.access(folder, os.W_OK)


def _disk(root: Path) -> Disk:
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    if not there.is_dir():
        return Disk(str(root), error=f"{there} is no directory")
    try:
        status = os.statvfs(there)
    except OSError as error:
        return Disk(str(root), error=str(error.strerror).lower())
    denied = "" if os.access(there, os.W_OK | os.X_OK) else f"no right to write to {there}"
    if status.f_flag & os.ST_RDONLY:
        denied = f"{there} is read-only"
    block = status.f_frsize
    return Disk(
        str(root),
        kind=_kind_of(there),
        free=status.f_bavail * block,
        size=status.f_blocks * block,
        free_inodes=status.f_favail if status.f_files else None,
        error=denied,
    )


def _kind_of(folder: Path) -> str:
    """The type of the file system, by the longest mount that holds the folder."""
    mounts = [(line.split()[1], line.split()[2]) for line in _lines("self/mounts")]
    place = folder.resolve()
    holding = [(where, kind) for where, kind in mounts if place.is_relative_to(where)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _taken(host: str, port: int) -> str:
    """Why nothing can listen there; empty where it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            what = "in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
            return f"{host}:{port} is {what}"
    return ""


def _random_ready() -> bool:
    try:
        os.getrandom(1, os.GRND_NONBLOCK)
    except BlockingIOError:
        return False
    return True


def _made_in_the_future(data: DataDir, now: datetime) -> str:
    """The first of podfit's own files and this cluster's authority of which the clock says so."""
    latest = now.timestamp() + AHEAD_SECONDS
    files = (Path(__file__), data.pki / "ca.crt")
    return next((str(file) for file in files if file.exists() and file.stat().st_mtime > latest), "")
