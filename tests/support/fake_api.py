"""As much of an API server as a client needs to meet: one collection with revisions, history and faults.

It is a `Handler`, so it stands behind `Local` or behind a real HTTPS server. `requests` records what was asked.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from podfit.core.errors import ApiError, already_exists, bad_request, gone, not_found
from podfit.net.wire import Request, Response

Document = dict[str, Any]


class FakeApi:
    """Serves `…/namespaces/NS/<resource>[/NAME]`; what the kind is, it does not care."""

    def __init__(self, resource: str = "configmaps") -> None:
        self.resource = resource
        self.revision = 0
        self.oldest = 0
        self.objects: dict[tuple[str, str], Document] = {}
        self.history: list[tuple[int, str, Document]] = []
        self.requests: list[Request] = []
        self.down = False
        self._changed = asyncio.Event()
        self._cut = 0

    def put(self, name: str, namespace: str = "default", **more: Any) -> Document:
        """Create or change an object, telling the watchers."""
        self.revision += 1
        known = self.objects.get((namespace, name))
        uid = known["metadata"]["uid"] if known else f"uid-{self.revision}"
        labels = more.pop("labels", {})
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(self.revision),
            "labels": labels,
        }
        obj = {"metadata": metadata, **more}
        self.objects[namespace, name] = obj
        self._tell("MODIFIED" if known else "ADDED", obj)
        return obj

    def remove(self, name: str, namespace: str = "default") -> None:
        self.revision += 1
        last = self.objects.pop((namespace, name))
        self._tell("DELETED", {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.revision)}})

    def bookmark(self) -> None:
        self._tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}})

    def compact(self) -> None:
        """Refuse to continue from before now; watches that are running still get what they are owed."""
        self.oldest = self.revision

    def cut(self) -> None:
        """End every watch that is running."""
        self._cut += 1
        self._wake()

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "the server is down")
        namespace, name = self._place(request.path)
        if request.param("watch"):
            return Response(200, {}, self._watch(int(request.param("resourceVersion")), request))
        if request.method == "POST":
            return self._create(json.loads(request.body))
        if not name:
            return self._list(namespace, request)
        if (namespace, name) not in self.objects:
            raise not_found(self.resource, name)
        if request.method == "DELETE":
            self.remove(name, namespace)
            return _json({"kind": "Status", "status": "Success"})
        if request.method == "PATCH":
            more = {k: v for k, v in self.objects[namespace, name].items() if k != "metadata"}
            return _json(self.put(name, namespace, **more | json.loads(request.body)))
        return _json(self.objects[namespace, name])

    def _place(self, path: str) -> tuple[str, str]:
        before, _, name = path.partition(f"/{self.resource}")
        return before.partition("/namespaces/")[2], name.removeprefix("/").partition("/")[0]

    def _create(self, obj: Document) -> Response:
        metadata = obj.pop("metadata")
        if (metadata["namespace"], metadata["name"]) in self.objects:
            raise already_exists(self.resource, metadata["name"])
        return _json(self.put(metadata["name"], metadata["namespace"], **obj))

    def _list(self, namespace: str, request: Request) -> Response:
        found = [obj for key, obj in sorted(self.objects.items()) if not namespace or key[0] == namespace]
        limit, start = int(request.param("limit", "0")), 0
        if token := request.param("continue"):
            start, revision = map(int, token.split("@"))
            if revision < self.oldest:
                raise gone("the continue token is too old")
        metadata: Document = {"resourceVersion": str(self.revision)}
        if limit and start + limit < len(found):
            metadata["continue"] = f"{start + limit}@{self.revision}"
        return _json({"metadata": metadata, "items": found[start : start + limit] if limit else found[start:]})

    async def _watch(self, after: int, request: Request) -> AsyncIterator[bytes]:
        if after < self.oldest:
            yield _line("ERROR", gone(f"too old resource version: {after}").status())
            return
        if after > self.revision:
            raise bad_request("resource version from the future")
        cut, sent = self._cut, 0
        while self._cut == cut:
            for number, (revision, kind, obj) in enumerate(self.history):
                if number >= sent and revision > after:
                    yield _line(kind, obj)
            sent = len(self.history)
            await self._changed.wait()

    def _tell(self, kind: str, obj: Document) -> None:
        self.history.append((self.revision, kind, obj))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _line(kind: str, obj: Document) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _json(obj: Document) -> Response:
    return Response(200, {"content-type": "application/json"}, json.dumps(obj).encode())
