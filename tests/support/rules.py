"""Tables of requests and what upstream answers to them: code, reason, the fields that causes name, objects in part.

How the answer is known stands beside each table: upstream's function that decides it.
"""

import asyncio
import json
from typing import Any, NamedTuple

from support.clock import FakeClock
from support.server import Server

NAMESPACE = "rules"
CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
JSON = "application/json"


class Answer(NamedTuple):
    """`fields` are those that the causes of a refusal name."""

    code: int
    reason: str
    fields: list[str]
    body: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


async def asked(
    server: Server, method: str, path: str, body: Any = b"", *, content_type: str = JSON, accept: str = ""
) -> Answer:
    """A request's answer; bodies that are no bytes are sent as JSON, streams are read for a second."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await server.ask(method, path, data, content_type=content_type, accept=accept)
    if isinstance(answer.body, bytes):
        text = answer.body.decode()
    else:
        reading = asyncio.ensure_future(answer.read())
        assert isinstance(server.context.clock, FakeClock)
        await server.context.clock.advance(1)
        text = (await reading).decode()
    try:
        found = json.loads(text)
    except ValueError:
        found = {"text": text}
    details = found.get("details") or {} if found.get("kind") == "Status" else {}
    fields = [cause.get("field", "") for cause in details.get("causes", ())]
    reason = found.get("reason", "") if found.get("kind") == "Status" else ""
    return Answer(answer.status, reason, fields, found)


def configmap(name: str = "a", *, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta} | ({"data": data} if data is not None else {})


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "nginx"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers} | spec}


def deployment(name: str = "d", *containers: dict[str, Any]) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": list(containers) or [{"name": "c", "image": "nginx"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def made(server: Server, path: str, *objects: dict[str, Any]) -> list[dict[str, Any]]:
    """These objects, created."""
    answers = [await asked(server, "POST", path, document) for document in objects]
    for answer in answers:
        assert answer.code == 201, answer
    return [answer.body for answer in answers]
