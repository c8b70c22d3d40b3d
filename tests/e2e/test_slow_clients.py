"""Clients that take their time or all connections: each is given up, and others are served meanwhile.

How long each is waited for: docs/bounds.md, "Store, watches and connections".
"""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from support.bounded import Figures, Victim, bounded
from support.slow_clients import (
    GET,
    POST,
    closed_by_the_server,
    connect,
    flood,
    half_closed,
    hello,
    idle,
    seconds_until_closed,
    secured,
    unread,
)

Figure = Callable[[str, object], None]
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("slow") / "cluster") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def tell(figure: Figure, figures: Figures, more: str = "") -> None:
    figure(
        figures.attack,
        f"turn {figures.turn_ms:.0f} ms, second client p99 {figures.p99_ms:.0f} ms, "
        f"grew {figures.peak_mib:.0f} MiB, kept {figures.kept_mib:.0f} MiB{more};",
    )
    figures.check()


def test_floods_of_connections(victim: Victim, figure: Figure) -> None:
    tell(figure, victim.measure("600 handshakes begun", lambda: flood(victim, 600, hello(victim))))
    tell(figure, victim.measure("200 idle connections", lambda: idle(victim, 200)))
    tell(figure, victim.measure("half-closed", lambda: half_closed(victim, 5)))


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_floods_of_many_connections(victim: Victim, figure: Figure) -> None:
    """6,000 silent sockets at once, 6,000 that begin a handshake and do not end it, 1,500 connections that are idle
    after a request, 300 half-closed in the middle of a request. A second client is served meanwhile.
    """
    tell(figure, victim.measure("6,000 silent", lambda: flood(victim, 6000, b"")))
    tell(figure, victim.measure("6,000 handshakes begun", lambda: flood(victim, 6000, hello(victim))))
    tell(figure, victim.measure("1,500 idle", lambda: idle(victim, 1500)))
    tell(figure, victim.measure("300 half-closed", lambda: half_closed(victim, 100)))


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_slow_clients(victim: Victim, figure: Figure) -> None:
    """At once: no handshake, half a handshake, headers and a body of a byte a second, nothing behind a request, a
    reader of a list of 10 MB and a watcher of 40 MB of changes that do not read. Each is given up; a second client is
    served meanwhile.
    """

    def write(count: int, name: str) -> None:
        chance = random.Random(3)
        for number in range(count):
            text = f"{chance.getrandbits(64):016x}" * 62_500
            made = {"metadata": {"name": f"{name}{number}"}, "data": {"a": text}}
            assert victim.ask("POST", MAPS, made).status == 201

    write(10, "l")
    took: dict[str, float] = {}

    def wait(name: str, sock: socket.socket, every: float = 0.0) -> None:
        with sock:
            took[name] = seconds_until_closed(sock, every)

    def unread_until_closed(name: str, path: str) -> None:
        with unread(victim, path) as sock:
            took[name] = closed_by_the_server(victim, sock)

    def said(what: bytes) -> socket.socket:
        sock = secured(victim)
        sock.sendall(what)
        return sock

    def attack() -> None:
        half = connect(victim)
        half.sendall(hello(victim)[:50])
        waits = [
            threading.Thread(target=wait, args=("no handshake", connect(victim))),
            threading.Thread(target=wait, args=("half a handshake", half)),
            threading.Thread(target=wait, args=("headers", said(b"GET / HTTP/1.1\r\nX: "), 1.0)),
            threading.Thread(target=wait, args=("body", said(POST), 1.0)),
            threading.Thread(target=wait, args=("idle", said(GET))),
            threading.Thread(target=unread_until_closed, args=("unread list", MAPS)),
            threading.Thread(target=unread_until_closed, args=("unread watch", f"{MAPS}?watch=1")),
        ]
        for waiting in waits:
            waiting.start()
        write(40, "w")
        listed = json.loads(victim.ask("GET", f"{MAPS}?limit=3").body)
        assert len(listed["items"]) == 3
        for waiting in waits:
            waiting.join()

    found = victim.measure("all at once", attack, stored_mib=40)
    figure(
        "all at once",
        f"turn {found.turn_ms:.0f} ms, second client p99 {found.p99_ms:.0f} ms, "
        f"grew {found.peak_mib:.0f} MiB with 40 MiB stored; closed after",
    )
    figure("", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()))
    found.check(peak_mib=296, kept_mib=104)
    limits = {
        "no handshake": 12,
        "half a handshake": 12,
        "headers": 32,
        "body": 67,
        "idle": 92,
        "unread list": 65,
        "unread watch": 70,
    }
    assert set(took) == set(limits)
    assert all(took[name] <= limit for name, limit in limits.items()), took
