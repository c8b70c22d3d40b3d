"""Webhooks and aggregated backends that answer what they should not, to a server in a process of its own.

What is told of each is in tests/apiserver/test_spoofed_backends.py and test_aggregation.py; here is what they cost.
"""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.backends import endpoint_slice, own_address, service
from support.bounded import Figures, Victim, bounded
from support.spoofed import Answer, Send, Spoofed, spoofed

Figure = Callable[[str, object], None]
MAPS, DEFAULT = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
GROUP = "spoofed.example"
MIB = 2**20
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LISTED = json.dumps(
    {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/v1",
        "resources": [{"name": "things", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]}],
    }
).encode()


def whole(body: bytes, head: bytes = OK) -> Answer:
    return lambda send: send(head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)


def endless(send: Send) -> None:
    send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        send(b"10000\r\n" + b" " * 65536 + b"\r\n")


def large(send: Send) -> None:
    send(OK + b"Content-Length: %d\r\n\r\n" % (100 * MIB))
    for _ in range(100):
        send(b" " * MIB)


def endless_headers(send: Send) -> None:
    send(OK)
    while True:
        send(b"X-A: " + b"y" * 1000 + b"\r\n")


def endless_header(send: Send) -> None:
    send(OK + b"X-A: ")
    while True:
        send(b"y" * 65536)


def interim(send: Send) -> None:
    while True:
        send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def slow(send: Send) -> None:
    for byte in OK * 10:
        send(bytes([byte]))
        time.sleep(0.5)


def silent(_: Send) -> None:
    threading.Event().wait(90)


def bomb(send: Send) -> None:
    whole(gzip.compress(bytes(200 * MIB), 9), OK + b"Content-Encoding: gzip\r\n")(send)


ANSWERS: dict[str, Answer] = {
    "endless": endless,
    "large": large,
    "bomb": bomb,
    "headers": endless_headers,
    "header": endless_header,
    "interim": interim,
    "slow": slow,
    "silent": silent,
    "redirect": whole(b"", b"HTTP/1.1 307 X\r\nLocation: https://169.254.169.254/\r\n"),
    "upgrade": lambda send: send(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    "status": lambda send: send(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"),
    "framing": whole(b"5\r\nabcde\r\n0\r\n\r\n", OK + b"Transfer-Encoding: chunked\r\n"),
    "garbage": lambda send: send(b"\0\xff" * 50_000),
    "cut": lambda send: send(OK + b"Content-Length: 100\r\n\r\nabc"),
}


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with bounded(tmp_path_factory.mktemp("spoofed") / "cluster") as victim:
        victim.ask("GET", "/api/v1/pods")  # what the first request loads stays
        yield victim


def tell(figure: Figure, found: Figures) -> None:
    figure(
        found.attack,
        f"turn {found.turn_ms:.0f} ms, second client p99 {found.p99_ms:.0f} ms, "
        f"grew {found.peak_mib:.0f} MiB, kept {found.kept_mib:.0f} MiB;",
    )
    found.check()


def hooks(victim: Victim, server: Spoofed, name: str) -> None:
    """One webhook of this answer, for ConfigMaps; before it had another."""
    webhook = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        "clientConfig": {"url": f"https://127.0.0.1:{server.port}/{name}", "caBundle": server.bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    }
    victim.ask("DELETE", f"{HOOKS}/spoofed")
    made = victim.ask("POST", HOOKS, {"metadata": {"name": "spoofed"}, "webhooks": [webhook]})
    assert made.status == 201, made.body


def refused(victim: Victim, times: int) -> None:
    for _ in range(times):
        began = time.monotonic()
        answer = victim.ask("POST", MAPS, {"metadata": {"name": "a"}})
        assert answer.status == 500
        assert b"failed calling webhook" in answer.body
        assert time.monotonic() - began < 10


def webhooks(victim: Victim, directory: Path, figure: Figure, names: tuple[str, ...], times: int) -> None:
    try:
        with spoofed(directory, "127.0.0.1") as server:
            server.answers |= ANSWERS | {"first": ANSWERS["cut"]}
            hooks(victim, server, "first")
            refused(victim, 1)  # what the first call of a process loads: about 0.1 s, once
            for name in names:
                hooks(victim, server, name)
                tell(figure, victim.measure(f"webhook, {name}", lambda: refused(victim, times)))
                asked = [head for head in server.heads if head.startswith(b"POST /%b?" % name.encode())]
                assert 1 <= len(asked) <= times  # on a busy machine the time of a call may be over before it is sent
    finally:
        victim.ask("DELETE", f"{HOOKS}/spoofed")


def test_webhooks(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    webhooks(victim, tmp_path, figure, ("endless", "bomb", "headers", "interim"), 1)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_webhooks_many_times(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    """Webhooks that answer without an end, 100 MB, 200 MB in gzip, headers without an end, interim answers without an
    end, a byte every half second, nothing; a redirect to a link-local address, a protocol switch, status 999, two
    framings, garbage, half a body. Each is refused as a failed call, within its 2 s, and asked once.
    """
    webhooks(victim, tmp_path, figure, tuple(ANSWERS), 4)


def registered(victim: Victim, server: Spoofed, host: str) -> Any:
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "s"},
        "caBundle": server.bundle,
    }
    victim.ask("POST", f"{DEFAULT}/services", service("s"))
    victim.ask(
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        endpoint_slice("s", host, port=server.port),
    )
    made = victim.ask(
        "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec}
    )
    assert made.status == 201, made.body


def condition(victim: Victim) -> tuple[str, str]:
    found = victim.ask("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}").json()
    told = found["status"].get("conditions", [{"reason": "", "message": ""}])[0]
    return told["reason"], told["message"]


def until(victim: Victim, reason: str) -> str:
    end = time.monotonic() + 60
    while (told := condition(victim))[0] != reason:
        assert time.monotonic() < end, told
        time.sleep(0.1)
    return told[1]


def unregister(victim: Victim) -> None:
    for path in (
        f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}",
        f"{DEFAULT}/services/s",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/s-1",
    ):
        victim.ask("DELETE", path)


EXPECTED = {
    "redirect": 502,
    "upgrade": 502,
    "headers": 503,
    "header": 503,
    "interim": 503,
    "silent": 504,
    "garbage": 503,
    "framing": 503,
}


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_aggregated_backends(victim: Victim, tmp_path: Path, figure: Figure) -> None:
    """An aggregated backend's list of what it serves is 100 MB, without an end, or cut; then it answers requests with
    redirects, protocol switches, headers and interim answers without an end, two framings, garbage, nothing. A client
    gets 502, 503 or 504, and headers of a client that say who it is are not passed on.
    """
    host = own_address()
    with spoofed(tmp_path, host, "s.default.svc") as server:
        for name in ("large", "endless", "bomb", "cut", "garbage"):
            server.default = ANSWERS[name]
            registered(victim, server, host)
            tell(figure, victim.measure(f"discovery, {name}", lambda: until(victim, "FailedDiscoveryCheck")))
            unregister(victim)
        server.default = None
        server.answers["apis"] = whole(LISTED)
        registered(victim, server, host)
        until(victim, "Passed")
        spoofing = {
            "X-Remote-User": "root",
            "X-Remote-Group": "system:masters",
            "X-Remote-Extra-A": "b",
            "Connection": "X-Secret",
            "X-Secret": "1",
            "TE": "trailers",
            "Proxy-Authorization": "a",
        }
        for name, status in EXPECTED.items():
            given = ANSWERS[name]
            before = len(server.heads)

            def answer(send: Send, given: Answer = given, head: list[bytes] = server.heads) -> None:
                (whole(LISTED) if head[-1].startswith(b"GET /apis/spoofed.example/v1 ") else given)(send)

            server.answers["apis"] = answer
            got: list[int] = []
            path = f"/apis/{GROUP}/v1/things/{name}"
            tell(
                figure,
                victim.measure(
                    f"backend, {name}",
                    lambda path=path, got=got: got.append(  # type: ignore[misc]
                        victim.ask("GET", path, headers=spoofing).status
                    ),
                ),
            )
            assert got == [status], name
            heads = [head.lower() for head in server.heads[before:] if b"/things/" in head]
            assert heads
            for head in heads:
                assert b"x-remote-user: root" not in head
                assert b"x-secret" not in head
                assert b"proxy-authorization" not in head
        unregister(victim)
