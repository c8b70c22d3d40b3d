"""Thousands of connections that do not send the rest, or do not read: what they cost the server and other clients."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from support import bounded_neighbour, hostile_connections
from support.bounded import Victim, bounded
from support.hostile_connections import MAPS

Figure = Callable[[str, object], None]
MANY, FEW = 4096, 384
GROWTH_MIB, KEPT_MIB, P99_MS = 160.0, 32.0, 1000.0
HOLD_SECONDS, RELEASE_SECONDS = 5.0, 60.0
SIZE, MAPS_KEPT = 1_000_000, 7
OBJECTS = 7
IDENTITIES = 256
NOBODY, ONE, EVERYBODY = "nobody", "one identity", "many identities"
SORTS = (
    ("large body", NOBODY),
    ("small body", NOBODY),
    ("head", NOBODY),
    ("large body", ONE),
    ("large body", EVERYBODY),
    ("unread list", ONE),
    ("unread list", EVERYBODY),
    ("unread table", ONE),
    ("unread object", EVERYBODY),
    ("body behind an unread list", ONE),
)
SHORT = (("large body", NOBODY), ("unread list", ONE), ("large body", EVERYBODY))


class Clients:
    """Who may edit in the namespace default, each with a certificate of its own."""

    def __init__(self, victim: Victim, count: int) -> None:
        self._victim = victim
        authority = Authority.load(victim.root / "data" / "pki", clock=SystemClock())
        self.files: list[str] = []
        for number in range(count):
            pair = authority.client(f"tenant{number}", user=f"tenant{number}", groups=("tenants",))
            for name, text in ((f"tenant{number}.pem", pair.certificate), (f"tenant{number}.key", pair.key)):
                path = victim.root / name
                path.write_bytes(text)
                self.files.append(str(path))
        binding = {
            "metadata": {"name": "tenants"},
            "subjects": [{"kind": "Group", "name": "tenants", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "edit", "apiGroup": "rbac.authorization.k8s.io"},
        }
        bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
        assert victim.ask("POST", bindings, binding).status == 201
        for number in range(OBJECTS):
            made = {"metadata": {"name": f"big{number}"}, "data": {"a": f"{number:08x}" * (SIZE // 8)}}
            assert victim.ask("POST", MAPS, made).status == 201

    def of(self, who: str) -> list[str]:
        """The last one is nobody's attacker, but the client beside them."""
        return {NOBODY: [], ONE: self.files[:2], EVERYBODY: self.files[:-2]}[who]

    @contextmanager
    def neighbour(self) -> Iterator[list[float]]:
        """Milliseconds (p99, worst) and answers of another client meanwhile: an ordinary user who gets one object."""
        path = f"{MAPS}/kube-root-ca.crt"
        command = [sys.executable, bounded_neighbour.__file__, str(self._victim.port), self._victim.files[0]]
        command += [*self.files[-2:], path]
        figures: list[float] = []
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield figures
                assert process.stdin
                assert process.stdout
                process.stdin.write("\n")
                process.stdin.flush()
                figures.extend(json.loads(process.stdout.readline()))
            finally:
                process.kill()


@contextmanager
def attacked(victim: Victim, sort: str, count: int, files: list[str]) -> Iterator[None]:
    """While they are connected."""
    command = [
        sys.executable,
        hostile_connections.__file__,
        str(victim.port),
        victim.files[0],
        sort,
        str(count),
        *files,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("begun")
            time.sleep(HOLD_SECONDS if count == MANY else 0.5)
            yield
        finally:
            process.kill()


class Measured:
    def __init__(self, victim: Victim) -> None:
        self.victim = victim
        self.start = victim.rss_mib()

    def grown(self, sort: str, count: int, files: list[str]) -> float:
        """MiB that the process is larger than at the start, at most."""
        peak, done = [0.0], threading.Event()

        def look() -> None:
            while not done.wait(0.02):
                with suppress(OSError, IndexError):
                    peak[0] = max(peak[0], self.victim.rss_mib() - self.start)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            with attacked(self.victim, sort, count, files):
                assert self.victim.process.poll() is None, self.victim.log()
        finally:
            done.set()
            looking.join()
        return peak[0]

    def kept(self) -> float:
        end = time.monotonic() + RELEASE_SECONDS
        while (kept := self.victim.rss_mib() - self.start) > KEPT_MIB and time.monotonic() < end:
            time.sleep(0.25)
        return kept


@contextmanager
def victim(root: Path) -> Iterator[tuple[Victim, Clients]]:
    with bounded(root, memory=8 << 30) as made:
        clients = Clients(made, 8 if os.environ.get("PODFIT_FEW") else IDENTITIES)
        made.ask("GET", MAPS)
        yield made, clients


def course(root: Path, count: int, sorts: tuple[tuple[str, str], ...], figure: Figure) -> None:
    with victim(root) as (server, clients):
        measured = Measured(server)
        idle = measured.grown("idle", count, [])
        figure(f"{count} idle", f"grew {idle:.0f} MiB, kept {measured.kept():.0f} MiB;")
        measured.start = server.rss_mib()  # what the first connections load stays
        bad = []
        for sort, who in sorts:
            with clients.neighbour() as beside:
                grown = measured.grown(sort, count, clients.of(who))
            p99, _, answers = beside
            kept = measured.kept()
            told = f"grew {grown:.0f} MiB, kept {kept:.0f} MiB, another's p99 {p99:.0f} ms of {answers:.0f} answers;"
            figure(f"{sort}, {who}", told)
            if grown > idle + GROWTH_MIB or kept > KEPT_MIB or p99 > P99_MS:
                bad.append(f"{sort}, {who}: {told}")
        assert not bad, bad


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_four_thousand_hostile_connections_of_each_sort(tmp_path: Path, figure: Figure) -> None:
    """4,096 connections of each hostile sort: bodies and heads whose end does not come, and lists, tables and objects
    that nobody reads, from nobody, one identity and 255 of them. The process grows by what as many idle ones take and
    160 MiB at most, has given it back a minute later, and another user is answered within a second (p99)."""
    course(tmp_path, MANY, SORTS, figure)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_some_hostile_connections(tmp_path: Path, figure: Figure) -> None:
    course(tmp_path, FEW, SHORT, figure)
