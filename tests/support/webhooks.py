"""A webhook server of our own on a loopback port, and the configurations that lead to it."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Request, Response
from support.resizing import send
from support.server import Server

HOST = "127.0.0.1"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
Answer = Callable[[dict[str, Any]], dict[str, Any] | Response | Awaitable[Response]]


def _allow(_: dict[str, Any]) -> dict[str, Any]:
    return {}


@dataclass
class Hooks:
    """What was asked, by path, and what is answered: nothing but `allowed` unless `answers` says otherwise."""

    port: int
    bundle: str
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    def requests(self, path: str) -> list[dict[str, Any]]:
        return [review["request"] for where, review in self.asked if where == path]

    async def handler(self, request: Request) -> Response:
        review = json.loads(request.body)
        assert request.headers["content-type"] == "application/json"
        self.asked.append((request.path, review))
        answer = self.answers.get(request.path, _allow)(review["request"])
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, dict):
            return await answer
        body = {
            "kind": "AdmissionReview",
            "apiVersion": review["apiVersion"],
            "response": {"uid": review["request"]["uid"], "allowed": True, **answer},
        }
        return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())

    def client(self, path: str) -> dict[str, Any]:
        return {"url": f"https://{HOST}:{self.port}{path}", "caBundle": self.bundle}

    def webhook(self, path: str, *resources: str, **more: Any) -> dict[str, Any]:
        rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": list(resources)}
        return {
            "name": f"{path.strip('/') or 'root'}.example.com",
            "clientConfig": self.client(path),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """The part of an answer that changes the object."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def setting(path: str, value: Any) -> dict[str, Any]:
    return patch({"op": "replace", "path": path, "value": value})


def denied(**status: Any) -> dict[str, Any]:
    return {"allowed": False, "status": status} if status else {"allowed": False}


async def register(server: Server, kind: str, *webhooks: dict[str, Any], name: str = "hooks") -> None:
    """`kind` is mutating or validating."""
    path = f"{REGISTRATION}/{kind}webhookconfigurations"
    code, made = await send(server, "POST", path, {"metadata": {"name": name}, "webhooks": list(webhooks)})
    assert code == 201, made


@asynccontextmanager
async def serving_hooks(directory: Path) -> AsyncIterator[Hooks]:
    authority = Authority.load(directory, clock=SystemClock())
    hooks = Hooks(0, base64.b64encode(authority.certificate).decode())
    server = HttpsServer(hooks.handler, server_context(authority.server("hook", hosts=(HOST,))))
    hooks.port = await server.listen(HOST, 0)
    try:
        yield hooks
    finally:
        await server.close(deadline=1.0)
