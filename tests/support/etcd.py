"""Real etcd members on loopback, their data in memory where possible: one for a session, or a cluster to kill."""

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from podfit.net.tls import KeyPair
from podfit.store.etcd.options import EtcdOptions
from support.eventually import eventually

if TYPE_CHECKING:
    from podfit.store.etcd.store import EtcdStore
    from podfit.store.logged import LoggedStore

AnyStore: TypeAlias = "LoggedStore | EtcdStore"

UNPACKED = Path(__file__).parents[2] / ".etcd" / "usr" / "bin" / "etcd"
START_SECONDS = 20.0
_prefixes = count(1)


@cache
def program() -> str:
    return shutil.which("etcd") or (str(UNPACKED) if UNPACKED.exists() else "")


def missing_etcd() -> str:
    """Why no etcd can run here; empty when one can."""
    return "" if program() else "no etcd (scripts/setup-etcd fetches one)"


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [socket.getsockname()[1] for socket in sockets]
    for listener in sockets:
        listener.close()
    return ports


@dataclass
class Member:
    """One etcd process; `stop` kills it, `start` brings it back on what it had."""

    name: str
    directory: Path
    client: str
    peer: str
    cluster: str
    flags: Sequence[str] = ()
    trust: ssl.SSLContext | None = None  # to ask a member behind TLS
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        command = [
            program(),
            "--name",
            self.name,
            "--data-dir",
            str(self.directory / self.name),
            "--listen-client-urls",
            self.client,
            "--advertise-client-urls",
            self.client,
            "--listen-peer-urls",
            self.peer,
            "--initial-advertise-peer-urls",
            self.peer,
            "--initial-cluster",
            self.cluster,
            "--max-request-bytes",
            str(8 * 2**20),
            "--log-level",
            "error",
            "--heartbeat-interval",
            "100",
            "--election-timeout",
            "1000",
            *self.flags,
        ]
        with (self.directory / f"{self.name}.log").open("ab") as log:
            environment = {**os.environ, "GOMAXPROCS": "2", "ETCD_UNSUPPORTED_ARCH": "arm64"}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.client}/health", timeout=1, context=self.trust) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False

    def await_health(self) -> None:
        log = self.directory / f"{self.name}.log"

        def healthy() -> bool:
            assert self.process is None or self.process.poll() is None, log.read_text()
            return self.healthy()

        eventually(healthy, within=START_SECONDS, what=f"etcd {self.name} is healthy", told=log.read_text, every=0.02)


@contextmanager
def etcd_cluster(
    size: int = 1, *flags: str, tls: KeyPair | None = None, ca: Path | None = None
) -> Iterator[list[Member]]:
    """Members that run and have a leader. `tls` is what the test itself asks them with, `ca` who signed theirs."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="podfit-etcd-", dir=memory if os.access(memory, os.W_OK) else None) as name:
        ports = free_ports(2 * size)
        scheme, trust = ("https", _trust(tls, ca)) if tls else ("http", None)
        peers = [f"http://127.0.0.1:{port}" for port in ports[size:]]
        cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        members = [
            Member(f"m{number}", Path(name), f"{scheme}://127.0.0.1:{ports[number]}", peer, cluster, flags, trust)
            for number, peer in enumerate(peers)
        ]
        try:
            for member in members:
                member.start()
            for member in members:
                member.await_health()
            yield members
        finally:
            for member in members:
                member.stop()


def _trust(pair: KeyPair, ca: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    return context


def fresh_prefix() -> str:
    """Each store of a test has keys of its own, in an etcd that the session shares."""
    return f"/test-{os.getpid()}-{next(_prefixes)}"


async def open_etcd(*urls: str, prefix: str = "") -> "EtcdStore":
    from podfit.store.etcd.opening import etcd_store  # loads gRPC, which every test session need not

    return await etcd_store(EtcdOptions(servers=urls, prefix=prefix or fresh_prefix()))
