"""As much of an API server as a kubelet meets: several kinds, watches with a field selector, strategic status patches.

A pod is deleted as the API does it: with grace first, for good when its node asks with grace 0.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from podfit.core.errors import already_exists, conflict, not_found
from podfit.net.wire import Request, Response

Document = dict[str, Any]


class NodeApi:
    """A wire handler. `put`, `remove`, `pod` and `events` are for the test; `patches` counts status writes by pod."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Document] = {}
        self.history: list[tuple[int, str, str, Document]] = []
        self.revision = 0
        self.patches: list[Document] = []
        self.down = False
        self._changed = asyncio.Event()

    # ------------------------------------------------------------------ for the test

    def put(self, resource: str, obj: Document) -> Document:
        """Create or replace."""
        meta = obj["metadata"]
        key = (resource, meta.get("namespace", ""), meta["name"])
        known = self.objects.get(key)
        self.revision += 1
        fresh = {"uid": f"uid-{meta['name']}-{self.revision}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        metadata = {**(known["metadata"] if known else fresh), **meta, "resourceVersion": str(self.revision)}
        obj = {**obj, "metadata": metadata}
        self.objects[key] = obj
        self._tell("MODIFIED" if known else "ADDED", resource, obj)
        return obj

    def remove(self, resource: str, name: str, namespace: str = "default") -> None:
        self.revision += 1
        last = self.objects.pop((resource, namespace, name))
        metadata = {**last["metadata"], "resourceVersion": str(self.revision)}
        self._tell("DELETED", resource, {**last, "metadata": metadata})

    def get(self, resource: str, name: str, namespace: str = "default") -> Document | None:
        return self.objects.get((resource, namespace, name))

    def status(self, name: str) -> Document:
        found = self.get("pods", name)
        return found.get("status", {}) if found else {}

    def change(self, name: str, **spec: Any) -> Document:
        """A new generation of a pod."""
        pod = self.objects["pods", "default", name]
        meta = {**pod["metadata"], "generation": pod["metadata"].get("generation", 1) + 1}
        return self.put("pods", {**pod, "metadata": meta, "spec": {**pod["spec"], **spec}})

    def delete(self, name: str, grace: int) -> None:
        """What `kubectl delete` leads to."""
        pod = self.objects["pods", "default", name]
        meta = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
        self.put("pods", {**pod, "metadata": meta})

    def events(self, of: str = "") -> list[str]:
        """`reason message` of each, in order; a repeated one once. `of` is a kind, or any."""
        found = [obj for (resource, _, _), obj in self.objects.items() if resource == "events"]
        return [
            f"{event['reason']} {event['message']}" for event in found if of in ("", event["involvedObject"]["kind"])
        ]

    # ------------------------------------------------------------------ the handler

    async def __call__(self, request: Request) -> Response:  # noqa: C901  (a list of paths)
        if self.down:
            raise ConnectionError("the API is down")
        resource, namespace, name = _place(request.path)
        body = json.loads(request.body) if request.body else {}
        if request.param("watch"):
            return Response(200, {}, self._watch(resource, int(request.param("resourceVersion")), request))
        if request.method == "POST":
            if (resource, namespace, body["metadata"]["name"]) in self.objects:
                raise already_exists(resource, body["metadata"]["name"])
            return _json(self.put(resource, body))
        if not name:
            items = [o for (r, _, _), o in self.objects.items() if r == resource and _selected(o, request)]
            return _json({"metadata": {"resourceVersion": str(self.revision)}, "items": items})
        known = self.objects.get((resource, namespace, name))
        if known is None:
            raise not_found(resource, name)
        wanted_uid = (body.get("preconditions") or body.get("metadata") or {}).get("uid")
        if wanted_uid not in (None, known["metadata"]["uid"]):
            raise conflict(resource, name, "the UID differs")
        if request.method == "DELETE":
            if not known["metadata"].get("finalizers"):
                self.remove(resource, name, namespace)
            return _json({"kind": "Status", "status": "Success"})
        if request.method == "PATCH":
            if resource == "pods":
                self.patches.append(body)
            changed = {**known, **merge({k: v for k, v in known.items() if k != "metadata"}, without_meta(body))}
            extra = {k: v for k, v in body.get("metadata", {}).items() if k in ("labels", "annotations")}
            return _json(self.put(resource, {**changed, "metadata": {**known["metadata"], **extra}}))
        return _json(known)

    async def _watch(self, resource: str, after: int, request: Request) -> AsyncIterator[bytes]:
        sent = 0
        while True:
            for number, (revision, type_, kind, obj) in enumerate(self.history):
                if number >= sent and revision > after and kind == resource and _selected(obj, request):
                    yield json.dumps({"type": type_, "object": obj}).encode() + b"\n"
            sent = len(self.history)
            await self._changed.wait()

    def _tell(self, type_: str, resource: str, obj: Document) -> None:
        self.history.append((self.revision, type_, resource, obj))
        self._changed.set()
        self._changed = asyncio.Event()


def without_meta(body: Document) -> Document:
    return {key: value for key, value in body.items() if key != "metadata"}


def merge(old: Any, patch: Any) -> Any:
    """A strategic merge for what a kubelet sends: maps by member, conditions by type, other lists as a whole."""
    if not isinstance(old, dict) or not isinstance(patch, dict):
        return patch
    result = dict(old)
    for key, value in patch.items():
        if key.startswith("$setElementOrder"):
            continue
        if key == "conditions":
            result[key] = _conditions(old.get(key, []), value, patch.get("$setElementOrder/conditions") or value)
        elif isinstance(value, list):
            result[key] = [item for item in value if item != {"$patch": "replace"}]
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = merge(old.get(key, {}), value)
    return result


def _conditions(old: list[Document], patch: list[Document], order: list[Document]) -> list[Document]:
    found = {item["type"]: item for item in old}
    for item in patch:
        if item.get("$patch") == "delete":
            found.pop(item["type"], None)
        else:
            found[item["type"]] = merge(found.get(item["type"], {}), item)
    ranks = {item["type"]: place for place, item in enumerate(order)}
    return sorted(found.values(), key=lambda item: ranks.get(item["type"], -1))


def _place(path: str) -> tuple[str, str, str]:
    """Resource, namespace, name."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    return parts[0], namespace, parts[1] if len(parts) > 1 else ""


def _selected(obj: Document, request: Request) -> bool:
    field, _, value = request.param("fieldSelector").partition("=")
    part, _, name = field.partition(".")
    return not field or obj.get(part, {}).get(name) == value


def _json(obj: Document) -> Response:
    return Response(200, {"content-type": "application/json"}, json.dumps(obj).encode())
