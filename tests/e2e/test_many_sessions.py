"""A thousand exec sessions at once, on a real node: whom they keep from theirs, and what they leave."""

import os
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from podfit.apiserver.handlers.subresources.connect import MOST_OF_ONE
from podfit.client.kubeconfig import load
from podfit.kubelet.server.streaming import MOST_OF_ONE as MOST_OF_A_SERVER
from podfit.kubelet.server.streaming import MOST_OF_POD
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from support.eventually import eventually
from support.machine import Snapshot
from support.up import Up, manifest
from support.websocket import HANDSHAKE

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
Figure = Callable[[str, object], None]
EXEC = "/api/v1/namespaces/default/pods/box{}/exec?command=cat&stdin=true&stdout=true"
GROUP = "system:masters"
MANY, TENANTS, PODS, AT_ONCE = 1000, 4, 10, 50
AWAIT_SECONDS = 60.0
P99_MS, GROWTH_MIB = 1000.0, 256.0


class Tenants:
    """Each opens sessions as a user of its own; `close` ends all of them at once."""

    def __init__(self, up: Up, directory: Path) -> None:
        self._port = int(load([up.kubeconfig]).server.rpartition(":")[2])
        self._directory, self._open = directory, list[socket.socket]()
        self._authority = Authority.load(up.root / "pki", clock=SystemClock())

    def tls(self, user: str) -> ssl.SSLContext:
        pair = self._authority.client(user, user=user, groups=(GROUP,))
        certificate, key = self._directory / f"{user}.pem", self._directory / f"{user}.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context = ssl.create_default_context(cadata=self._authority.certificate.decode())
        context.load_cert_chain(certificate, key)
        return context

    def ask(self, user: str, count: int, pods: int = PODS) -> Counter[str]:
        """How many of so many sessions in so many pods, begun side by side, run (`begun`), and what was answered to the
        others."""
        context = self.tls(user)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return Counter(threads.map(lambda number: self._begin(context, number % pods), range(count)))

    def _begin(self, context: ssl.SSLContext, pod: int) -> str:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=AWAIT_SECONDS)
        sock = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self._open.append(sock)
        headers = {"Host": "x", **HANDSHAKE, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
        lines = (f"GET {EXEC.format(pod)} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", "")
        sock.sendall("\r\n".join(lines).encode())
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += (read := sock.recv(4096))
            if not read:
                return "closed"
        status = heard.split()[1].decode()
        if status != "101":
            return status
        told = heard.partition(b"\r\n\r\n")[2] or sock.recv(4096)
        if b"which is the limit" in told:  # others have begun since
            return "429"
        return "begun" if told[2:3] == b"\x01" else f"refused: {told[:80]!r}"

    def close(self) -> None:
        for sock in self._open:
            sock.close()
        self._open.clear()


@contextmanager
def tenants(up: Up, directory: Path) -> Iterator[Tenants]:
    made = Tenants(up, directory)
    try:
        yield made
    finally:
        made.close()


def memory_mib(up: Up) -> float:
    return int(Path(f"/proc/{up.state()['pid']}/statm").read_text().split()[1]) * 4096 / 2**20


def descriptors(up: Up) -> int:
    return len(os.listdir(f"/proc/{up.state()['pid']}/fd"))


def beside(up: Up, tenants: Tenants, seconds: float) -> float:
    """The p99 in milliseconds of another user who gets the pod, one request after the other."""
    context, took = tenants.tls("beside"), list[float]()
    end = time.monotonic() + seconds
    port = int(load([up.kubeconfig]).server.rpartition(":")[2])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as sock:
        while time.monotonic() < end:
            begun = time.monotonic()
            sock.sendall(b"GET /api/v1/namespaces/default/pods/none HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 404 " in sock.recv(65536)
            took.append(1000 * (time.monotonic() - begun))
    return sorted(took)[int(0.99 * (len(took) - 1))]


def _ended(before: Snapshot) -> bool:
    return not Snapshot.take().since(before).get("processes", [])


def attacked(up: Up, directory: Path, each: int, others: int, figure: Figure) -> None:
    boxes = [f"box{number}" for number in range(PODS if each > MOST_OF_ONE else 1)]
    up.apply(*(manifest(box, {"name": "c"}) for box in boxes))
    up.ok("wait", "--for=condition=Ready", *(f"pod/{box}" for box in boxes), "--timeout=60s")
    runs = ("exec", "box0", "-c", "c", "--", "true")
    assert up.kubectl(*runs).code == 0
    before, held, machine = descriptors(up), memory_mib(up), Snapshot.take()
    try:
        with tenants(up, directory) as clients:
            began = time.monotonic()
            if each > MOST_OF_ONE:
                of_one_pod = clients.ask("tenant0", each, 1)
                assert of_one_pod == {"begun": MOST_OF_POD, "429": each - MOST_OF_POD}
                clients.close()
                eventually(lambda: _ended(machine), within=AWAIT_SECONDS, what="processes end")
            first = clients.ask("tenant0", each, len(boxes))
            took = time.monotonic() - began
            assert set(first) <= {"begun", "429"}, first
            assert first["begun"] == min(each, MOST_OF_ONE)
            assert up.kubectl(*runs).code == 0, "another user has a session beside"
            rest = sum((clients.ask(f"tenant{number}", MOST_OF_ONE) for number in range(1, others)), Counter[str]())
            assert first["begun"] + rest["begun"] <= MOST_OF_A_SERVER
            p99, grown = beside(up, clients, 5.0), memory_mib(up) - held
        figure("of one user", f"{first['begun']} begun, {first['429']} refused, in {took:.0f} s")
        figure("of others", f"{rest['begun']} begun, {sum(rest.values()) - rest['begun']} refused")
        figure("grew", f"{grown:.0f} MiB")
        figure("another's p99", f"{p99:.0f} ms")
        assert (grown <= GROWTH_MIB, p99 <= P99_MS) == (True, True), (grown, p99)
        eventually(lambda: _ended(machine), within=AWAIT_SECONDS, what="processes end")
        eventually(partial(descriptors, up), lambda now: now <= before + 4, within=AWAIT_SECONDS, what="they close")
        assert up.kubectl(*runs).code == 0
    finally:
        with suppress(AssertionError):
            up.ok("delete", "pod", *boxes, "--now", "--ignore-not-found")


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_thousand_sessions_at_once(cluster: Up, tmp_path: Path, figure: Figure) -> None:
    """1,000 exec sessions at once of one user, on a node with containerd: in one pod 100 begin, in ten pods 200, the
    others are refused (429), and another user has one beside them. Then three more users ask for 200 each. Another
    user's requests are answered within a second (p99), and when all have left no process and no connection is left."""
    attacked(cluster, tmp_path, MANY, TENANTS, figure)


def test_some_sessions_at_once(cluster: Up, tmp_path: Path, figure: Figure) -> None:
    attacked(cluster, tmp_path, 12, 1, figure)
