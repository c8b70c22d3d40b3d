"""Pods and resizes over the wire, in the words of the API: `await resize(server, asking(c="2"))`."""

import json
from typing import Any

from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.net.wire import Identity
from support.server import ADMIN, Server, document

NAMESPACE = "/api/v1/namespaces/default"
PODS = f"{NAMESPACE}/pods"
POD, RESIZE = f"{PODS}/p", f"{PODS}/p/resize"
Answer = tuple[int, Any]


async def send(
    server: Server,
    method: str,
    path: str,
    body: Any = None,
    kind: str = "application/json",
    *,
    who: Identity = ADMIN,
    **headers: str,
) -> Answer:
    raw = b"" if body is None else json.dumps(body).encode()
    answer = await server.ask(method, path, raw, content_type=kind, identity=who, **headers)
    text = await answer.read()
    return answer.status, document(text) if text.startswith(b"{") else text


def container(
    name: str = "c", requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"name": name, "image": "busybox", "resources": resources, **more}


def policy(resource: str, restart: str) -> dict[str, str]:
    return {"resourceName": resource, "restartPolicy": restart}


def spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": list(containers), **more}


BURSTABLE = spec(container("c", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}))


async def create(server: Server, wanted: dict[str, Any], **metadata: Any) -> Answer:
    return await send(server, "POST", PODS, {"metadata": {"name": "p", **metadata}, "spec": wanted})


async def stored(
    server: Server, wanted: dict[str, Any] = BURSTABLE, *, status: dict[str, Any] | None = None, **metadata: Any
) -> Any:
    """The pod `p` as the server keeps it, with a node's report of its status."""
    code, made = await create(server, wanted, **metadata)
    assert code == 201, made
    if status is not None:
        code, made = await send(server, "PATCH", f"{POD}/status", {"status": status}, MERGE_PATCH)
        assert code == 200, made
    return made


async def read(server: Server) -> Any:
    code, found = await send(server, "GET", POD)
    assert code == 200, found
    return found


def asking(**requests: str) -> dict[str, Any]:
    """A strategic patch of CPU requests by container: `asking(c="2")`."""
    changed = [{"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in requests.items()]
    return {"spec": {"containers": changed}}


async def resize(server: Server, patch: dict[str, Any], kind: str = STRATEGIC_PATCH, query: str = "") -> Answer:
    return await send(server, "PATCH", RESIZE + query, patch, kind)


async def refusal(server: Server, patch: dict[str, Any], kind: str = STRATEGIC_PATCH) -> str:
    """Why a resize is refused, after `is invalid:` or `is forbidden:`; the pod has to be as it was."""
    before = await read(server)
    code, body = await resize(server, patch, kind)
    assert code in (403, 422), body
    assert await read(server) == before
    word, reason = ("invalid", "Invalid") if code == 422 else ("forbidden", "Forbidden")
    assert body["reason"] == reason
    text: str = body["message"]
    return text.partition(f" is {word}: ")[2]


def cpu(pod: Any, name: str = "c", side: str = "requests") -> str:
    amount: str = next(container for container in pod["spec"]["containers"] if container["name"] == name)["resources"][
        side
    ]["cpu"]
    return amount
