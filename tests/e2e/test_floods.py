"""Many of what is small: watchers with a slow one among them, events, requests in a row, deletions of a collection."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.attacks import OBJECTS
from support.bounded import Figures, Victim, bounded
from support.eventually import PATIENCE
from support.slow_clients import secured

Figure = Callable[[str, object], None]
DEFAULT = "/api/v1/namespaces/default"
MAPS, EVENTS, PODS = (f"{DEFAULT}/{resource}" for resource in ("configmaps", "events", "pods"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("flood") / "cluster") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def tell(figure: Figure, figures: Figures, stored_mib: float = 0.0) -> None:
    figure(
        figures.attack,
        f"turn {figures.turn_ms:.0f} ms, second client p99 {figures.p99_ms:.0f} ms, "
        f"grew {figures.peak_mib:.0f} MiB, kept {figures.kept_mib:.0f} MiB;",
    )
    figures.check(peak_mib=256 + stored_mib, kept_mib=64 + stored_mib)


def send(victim: Victim, method: str, path: str, bodies: Iterator[object], expected: int) -> None:
    """One after the other on one connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", victim.port, context=victim.tls(), timeout=120)
    for body in bodies:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"content-type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == expected, said[:500]
        victim.requests += 1
    connection.close()


def config_maps(count: int, name: str) -> Iterator[object]:
    return ({"metadata": {"name": f"{name}{number}"}, "data": {"a": "x" * 1000}} for number in range(count))


def pods(count: int) -> Iterator[object]:
    return (
        {"metadata": {"name": f"p{number}"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        for number in range(count)
    )


def events(count: int) -> Iterator[object]:
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    return (
        {
            "metadata": {"name": f"e{number}"},
            "involvedObject": about,
            "reason": "A",
            "message": f"{number}",
            "lastTimestamp": "2020-01-01T00:00:00Z",
            "type": "Normal",
        }
        for number in range(count)
    )


def watch(victim: Victim, watchers: int, changes: int, name: str) -> None:
    """All but the first see each change; that one reads nothing."""
    opened = [secured(victim, anonymous=False, room=4096 if number == 0 else 0) for number in range(watchers)]
    for sock in opened:
        sock.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    victim.requests += watchers
    seen: list[bool] = []

    def read(sock: socket.socket) -> None:
        heard, last = b"", f'"name":"{name}{changes - 1}"'.encode()
        while last not in heard:
            read = sock.recv(1 << 16)
            assert read
            heard = heard[-len(last) :] + read
        seen.append(True)

    readers = [threading.Thread(target=read, args=(sock,)) for sock in opened[1:]]
    for reader in readers:
        reader.start()
    send(victim, "POST", MAPS, config_maps(changes, name), 201)
    for reader in readers:
        reader.join(60 * PATIENCE)
    for sock in opened:
        sock.close()
    assert len(seen) == watchers - 1


def files(victim: Victim) -> int:
    return len(list(Path(f"/proc/{victim.process.pid}/fd").iterdir()))


def delete_pods(victim: Victim, figure: Figure, count: int) -> None:
    send(victim, "POST", PODS, pods(count), 201)
    began = time.monotonic()
    tell(
        figure,
        victim.measure(f"{count} pods deleted together", lambda: send(victim, "DELETE", PODS, iter([None]), 200)),
    )
    figure("in", f"{time.monotonic() - began:.1f} s;")
    assert victim.ask("GET", PODS).json()["items"] == []


def test_floods(victim: Victim, figure: Figure) -> None:
    tell(figure, victim.measure("20 watchers", lambda: watch(victim, 20, 50, "s")))
    tell(figure, victim.measure("500 events", lambda: send(victim, "POST", EVENTS, events(500), 201)))
    delete_pods(victim, figure, 100)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_floods_many_times(victim: Victim, figure: Figure) -> None:
    """200 watchers, one of whom reads nothing, see 500 changes; 10,000 events of one source; 20,000 requests in a row,
    after which no file more is open; 300 and 2,400 pods deleted by deletecollection.
    """
    tell(figure, victim.measure("200 watchers", lambda: watch(victim, 200, 500, "w")))
    tell(figure, victim.measure("10,000 events", lambda: send(victim, "POST", EVENTS, events(10_000), 201)), 40)
    before = files(victim)
    requests = (None for _ in range(20_000))
    tell(figure, victim.measure("20,000 gets", lambda: send(victim, "GET", f"{MAPS}/w1", requests, 200)))
    figure("files more after them", files(victim) - before)
    assert files(victim) <= before + 2
    for count in (300, 2400):
        delete_pods(victim, figure, count)


def assert_all(answered: tuple[int, ...], status: int) -> None:
    assert set(answered) == {status}


@pytest.mark.campaign
@pytest.mark.timeout(300)
def test_the_largest_pods_across_a_restart(tmp_path: Path, figure: Figure) -> None:
    """Ten pods of the most values that a pod may have, on a simulated node: the process grows by 256 MiB at most, also
    after a restart beside an empty cluster.
    """
    most, created = OBJECTS["ten pods of most volumes"]
    with bounded(tmp_path / "cluster", node="simulated") as victim:
        victim.ask("GET", "/api/v1/pods")
        empty = victim.rss_mib()
        tell(figure, victim.measure("ten pods", lambda: assert_all(most(victim), created), settle=3.0), 32)
    with bounded(tmp_path / "cluster", node="simulated") as victim:
        tell(figure, victim.measure("read after a restart", lambda: victim.ask("GET", "/api/v1/pods"), settle=3.0), 32)
        grown = victim.rss_mib() - empty
    figure("beside an empty cluster", f"{grown:.0f} MiB more")
    assert grown <= 256
