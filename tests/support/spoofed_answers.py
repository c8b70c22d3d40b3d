"""What a webhook or an aggregated backend may answer that it should not, and the objects that lead to it."""

import gzip
import json
import threading
import time
from typing import Any

from support.backends import endpoint_slice, service
from support.bounded import Victim
from support.eventually import eventually
from support.spoofed import Answer, Send, Spoofed

DEFAULT = "/api/v1/namespaces/default"
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


def hooks(victim: Victim, server: Spoofed, name: str, *, where: str = HOOKS) -> None:
    """One webhook of this answer, for ConfigMaps; before it had another."""
    webhook = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        "clientConfig": {"url": f"https://127.0.0.1:{server.port}/{name}", "caBundle": server.bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    }
    victim.ask("DELETE", f"{where}/spoofed")
    made = victim.ask("POST", where, {"metadata": {"name": "spoofed"}, "webhooks": [webhook]})
    assert made.status == 201, made.body


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
    what = f"the APIService has the reason {reason}"
    return eventually(lambda: condition(victim), lambda told: told[0] == reason, within=60, what=what)[1]


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
"""What a client gets, by what the backend answers."""
