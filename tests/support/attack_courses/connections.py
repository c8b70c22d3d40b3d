"""Clients in number, slow ones, and watchers."""

import socket
import threading
from contextlib import suppress

from support.attack_courses.course import DEFAULT, MAPS, PODS, Course, Scene, config_map
from support.attack_courses.requests import kept
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

MIB = 1 << 20


def silent(scene: Scene) -> None:
    flood(scene.victim, scene.count(6000), b"")
    idle(scene.victim, scene.count(1000))
    half_closed(scene.victim, scene.count(100))


def handshakes(scene: Scene) -> None:
    begun = hello(scene.victim)
    flood(scene.victim, scene.count(4000), begun)
    flood(scene.victim, scene.count(2000), begun[: scene.chance.randrange(1, len(begun))])
    flood(scene.victim, scene.count(1000), scene.chance.randbytes(500))


def slow(scene: Scene) -> None:
    """No handshake, half of one, headers and a body of a byte a second, nothing behind a request."""
    took: dict[str, float] = {}

    def wait(name: str, sock: socket.socket, every: float) -> None:
        with sock:
            took[name] = seconds_until_closed(sock, every)

    def said(what: bytes) -> socket.socket:
        sock = secured(scene.victim)
        sock.sendall(what)
        return sock

    half = connect(scene.victim)
    half.sendall(hello(scene.victim)[: scene.chance.randint(1, 100)])
    clients = {
        "no handshake": (connect(scene.victim), 0.0),
        "half a handshake": (half, 0.0),
        "headers": (said(b"GET / HTTP/1.1\r\nX: "), 1.0),
        "body": (said(POST), 1.0),
        "idle": (said(GET), 0.0),
    }
    waits = [threading.Thread(target=wait, args=(name, *client)) for name, client in clients.items()]
    for waiting in waits:
        waiting.start()
    for waiting in waits:
        waiting.join()
    limits = {"no handshake": 12, "half a handshake": 12, "headers": 32, "body": 67, "idle": 92}
    assert all(took[name] <= limit for name, limit in limits.items()), took


def unread_answers(scene: Scene) -> None:
    """A list of 12 MB and a watch of 40 MB that nobody reads."""
    with kept(scene, [MIB - 2000] * 12) as (path, *_):
        sockets = [unread(scene.victim, path), unread(scene.victim, f"{path}?watch=1")]
        for number in range(30):
            scene.send("POST", path, config_map(f"w{number}", MIB - 2000, scene.chance), {201})
        for sock in sockets:
            with sock:
                assert closed_by_the_server(scene.victim, sock) <= 80


def large_lists(scene: Scene) -> None:
    with kept(scene, [MIB - 2000] * 10) as (path, *_):
        listed = scene.send("GET", path, None, {200})
        assert len(listed.body) > 10 * (MIB - 2000)
        scene.send("GET", f"{path}?pretty=true", None, {200})
        assert scene.victim.ask("GET", path, headers={"Accept": "application/yaml"}).status == 406
        with unread(scene.victim, path) as sock:
            sock.recv(1)  # and goes


def watches(scene: Scene) -> None:
    """From the beginning, from long ago, and of one who does not read."""
    with kept(scene, [3000] * scene.count(1500)) as (path, *names):
        sockets = [secured(scene.victim, anonymous=False) for _ in range(scene.count(60))]
        for sock in sockets:
            since = scene.chance.choice(("", "&resourceVersion=0", f"&resourceVersion={_revision(scene, names[0])}"))
            sock.sendall(f"GET {path}?watch=1{since} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for _ in range(3):
            scene.send("PATCH", names[0], {"data": {"b": scene.name()}}, {200}, "application/merge-patch+json")
        last = scene.send("POST", path, config_map("last", 100, scene.chance), {201}).json()["metadata"]["uid"]
        for sock in sockets[1:]:
            heard = b""
            while last.encode() not in heard:
                read = sock.recv(1 << 16)
                assert read, heard[-300:]
                heard = heard[-100:] + read
        for sock in sockets:
            sock.close()


def _revision(scene: Scene, path: str) -> str:
    return str(scene.send("GET", path, None, {200}).json()["metadata"]["resourceVersion"])


def behind(scene: Scene) -> None:
    """One watcher falls further behind than what is kept for it."""
    with kept(scene, [100]) as (path, _), unread(scene.victim, f"{path}?watch=1"):
        for number in range(30):
            scene.send("POST", path, config_map(f"w{number}", MIB - 2000, scene.chance), {201})


def deletions(scene: Scene) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"no": "where"}}
    count = scene.count(600)
    for number in range(count):
        scene.send("POST", PODS, {"metadata": {"name": f"d{number}"}, "spec": spec}, {201})
    with secured(scene.victim, anonymous=False) as sock:
        sock.sendall(f"DELETE {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())  # and goes
    scene.send("DELETE", PODS, None, {200})

    def gone() -> bool:
        return not scene.send("GET", PODS, None, {200}).json()["items"]

    scene.until(gone, "the pods are deleted")


def events(scene: Scene) -> None:
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    for number in range(scene.count(3000)):
        time = scene.chance.choice(("2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"))
        event = {"involvedObject": about, "reason": "A", "message": f"{number}", "lastTimestamp": time}
        scene.send("POST", f"{DEFAULT}/events", {"metadata": {"name": f"{scene.name()}-{number}"}, **event}, {201})
    scene.send("DELETE", f"{DEFAULT}/events", None, {200})


def clock(scene: Scene) -> None:
    """The time of day is set, by up to ten years, while objects are made, watched and deleted."""
    decade = 10 * 365 * 86400
    try:
        for _ in range(max(4, scene.count(40))):
            scene.victim.set_clock(scene.chance.choice((3600, 86400, decade)) * scene.chance.choice((-1, 1)))
            name = scene.name()
            scene.send("POST", MAPS, {"metadata": {"name": name}}, {201})
            scene.send("POST", f"{DEFAULT}/serviceaccounts/default/token", {})
            scene.send("GET", f"{MAPS}?watch=1&timeoutSeconds=1", None, {200})
            scene.send("DELETE", f"{MAPS}/{name}", None, {200})
            scene.send("GET", "/readyz", None, {200})
    finally:
        scene.victim.set_clock(0)


def nonsense(scene: Scene) -> None:
    """Bytes by chance, before and after TLS."""
    for _ in range(scene.count(300)):
        noise = scene.chance.randbytes(scene.chance.choice((1, 100, 70_000)))
        with connect(scene.victim) as sock, suppress(OSError):
            sock.sendall(noise)
        with suppress(OSError), secured(scene.victim) as sock:
            sock.sendall(noise)


COURSES = (
    Course("silent and idle connections", ("connections", "idle connection"), silent),
    Course("handshakes begun", ("connections whose TLS",), handshakes),
    Course("nonsense on connections", ("headers",), nonsense),
    Course("slow clients", ("handshake", "first request", "idle connection", "body"), slow, long=True),
    Course("answers that nobody reads", ("an answer or a watch",), unread_answers, stored_mib=60, long=True),
    Course("large lists", ("a list of more than 128 KiB",), large_lists, stored_mib=20),
    Course("watches", ("what a watch begins with", "history that a watch"), watches, stored_mib=20),
    Course("a watcher behind", ("a watcher that does not keep up",), behind, stored_mib=60),
    Course("deletions together", ("deletecollection",), deletions, stored_mib=30),
    Course("events", ("events",), events, stored_mib=30),
    Course("the time of day", ("the time of day is set",), clock),
)
