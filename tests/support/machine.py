"""What a cluster could leave behind on a machine: processes, mounts, cgroups, network namespaces, bridges, rules.

Sessions of pytest run beside each other (scripts/test.py), and each of them only counts its own processes: those that
inherited the number of the session, and those that carry none, as what runs in containers. Only one session makes
anything else on the machine; the others, which are told so (`BESIDE`), count nothing else. They do mount disks below
their own files, which are where `FILES` says, and are not counted by the one. That one has two workers, whose machines
are apart (scripts/apart): neither has what the other makes, but for the files of the disk.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

RUNTIME_PROCESSES = ("containerd", "podfit", "pause", "catatonit")
SESSION = "PODFIT_TEST_SESSION"
BESIDE, FILES = "PODFIT_TESTS_BESIDE_NODE", "PODFIT_TESTS_FILES"
APART = "/tests-apart-"
NAMESPACES = "/run/netns"
"""The folder of network namespaces: the first `ip netns add` on a machine mounts it for good."""


def begin_session() -> None:
    """Processes that are started from here on are this session's; workers of xdist belong to that of their parent."""
    os.environ.setdefault(SESSION, str(os.getpid()))


@dataclass(frozen=True)
class Snapshot:
    processes: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    namespaces: frozenset[str]
    links: frozenset[str]
    rules: frozenset[str]
    run: frozenset[str]
    switches: frozenset[str]

    @staticmethod
    def take() -> "Snapshot":
        if os.environ.get(BESIDE):
            return Snapshot(frozenset(_processes()), *[frozenset[str]()] * (len(fields(Snapshot)) - 1))
        return Snapshot(
            processes=frozenset(_processes()),
            mounts=frozenset(_mounts()),
            cgroups=frozenset(_cgroups()),
            namespaces=frozenset(_names(Path("/var/run/netns"))),
            links=frozenset(_names(Path("/sys/class/net"))),
            rules=frozenset(_rules()),
            run=frozenset(name for name in _names(Path("/run")) if "podfit" in name),
            switches=frozenset({f"ip_forward {Path('/proc/sys/net/ipv4/ip_forward').read_text().strip()}"}),
        )

    def since(self, before: "Snapshot") -> dict[str, list[str]]:
        """What is there now and was not before, by kind; nothing is the only good answer."""
        added = {field.name: sorted(getattr(self, field.name) - getattr(before, field.name)) for field in fields(self)}
        return {kind: names for kind, names in added.items() if names}


def _processes() -> list[str]:
    """Without copies that have just been forked, which have not yet become the program that they are for."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environment = path.with_name("environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        sessions = [value for name, _, value in (line.partition("=") for line in environment) if name == SESSION]
        if sessions != [os.environ[SESSION]] and (sessions or os.environ.get(BESIDE)):
            continue
        program = command.split(" ")[0].rpartition("/")[2]
        if not sessions and " -m podfit.cli " in command and " --data " in command:
            continue  # somebody's own cluster, beside which the tests may run
        if (program.startswith(RUNTIME_PROCESSES) or " -m podfit.cli " in command) and not _is_copy(path):
            found.append(f"{path.parent.name} {command}")
    return found


def _is_copy(command: Path) -> bool:
    """Whether the process of this `cmdline` runs what its parent runs, word for word."""
    try:
        parent = command.with_name("stat").read_text().rpartition(")")[2].split()[1]
        return command.read_bytes() == Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return False


def _cgroups() -> Iterator[str]:
    """Without those of tests that run apart (scripts/apart)."""
    for path in Path("/sys/fs/cgroup").rglob("*podfit*"):
        if path.is_dir() and APART not in str(path):
            yield str(path)


def _mounts() -> set[str]:
    return counted_mounts(Path("/proc/mounts").read_text(), os.environ.get(FILES, ""))


def counted_mounts(text: str, files: str) -> set[str]:
    """Of the lines of /proc/mounts; `files` is the folder of this session, beside those of the others, if there are."""
    places = {line.split()[1] for line in text.splitlines()} - {NAMESPACES}
    if not files:
        return places
    beside, own = f"{Path(files).parent}/", f"{files}/"
    return {place for place in places if place.startswith(own) or not place.startswith(beside)}


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()] if directory.is_dir() else []


def _rules() -> list[str]:
    try:
        saved = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return saved.splitlines()
