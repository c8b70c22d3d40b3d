"""The real API server on a store in memory, as a kubelet meets it, with what others do to the objects as plain calls.

`put`, `remove`, `change` and `delete` write into the store at once, as others have written: the server is not asked,
so that a kubelet meets objects of other ages, too. What the kubelet asks goes through the whole server. `down` is the
layer of faults: nothing is answered then.
"""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from podfit.api.meta import codec
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import resources
from podfit.apiserver.context import Context
from podfit.apiserver.housekeeping.bootstrap import bootstrap
from podfit.apiserver.registry import stored
from podfit.apiserver.server import ApiServer
from podfit.core.features import FeatureGates
from podfit.decide.node.drive import at_once
from podfit.net.inline_executor import InlineExecutor
from podfit.net.system import SeededRandom
from podfit.net.wire import Request, Response
from podfit.store.log import Loaded
from podfit.store.logged import LoggedStore
from podfit.store.memory import MemoryLog
from podfit.store.protocol import Record
from support.clock import FakeClock
from support.server import ADMIN

Document = dict[str, Any]
KINDS: dict[str, ResourceInfo] = {info.resource: info for info in reversed(resources())}
"""By resource; of two groups the first that discovery names."""


class SteppedStore(LoggedStore):
    """Its writes are done when they are asked for, without a turn of the event loop."""

    def commit(self) -> None:
        self._commit()


class NodeApi:
    """A wire handler that speaks for an administrator. `patches` has what was sent for pods; made in a running loop."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self._store = SteppedStore(self._log, Loaded((), revision=1, compacted=0), InlineExecutor)
        clock = FakeClock()  # of its own, that stands still: what a test's clock wakes is the kubelet's
        self._context = Context(self._store, clock, FeatureGates(), lambda _: None, random=SeededRandom(1))
        self._server = ApiServer(self._context, signing_key=Path("/nowhere"))
        self._begun: asyncio.Task[None] | None = None
        self.patches: list[Document] = []
        self.down = False

    # ------------------------------------------------------------------ for the test

    def put(self, resource: str, obj: Document) -> Document:
        """Create or replace."""
        info, meta = KINDS[resource], obj["metadata"]
        key = stored.key(info, meta.get("namespace", ""), meta["name"])
        record = at_once(self._store.get(key))
        known = self._shown(info, record) if record is not None else None
        fresh = {"uid": f"uid-{meta['name']}-{self.revision + 1}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        metadata = {**(known["metadata"] if known else fresh), **meta}
        metadata.pop("resourceVersion", None)
        document = {**obj, "kind": info.kind, "apiVersion": info.group_version, "metadata": metadata}
        value = codec.encode(codec.convert(document, info.type))
        if record is None:
            record = self._written(self._store.create(key, value))
        else:
            record = self._written(self._store.update(key, value, expected=record.mod_revision))
        return self._shown(info, record)

    def remove(self, resource: str, name: str, namespace: str = "default") -> None:
        key = stored.key(KINDS[resource], namespace, name)
        record = at_once(self._store.get(key))
        assert record is not None, f"there is no {resource}/{name}"
        self._written(self._store.delete(key, expected=record.mod_revision))

    def get(self, resource: str, name: str, namespace: str = "default") -> Document | None:
        info = KINDS[resource]
        record = at_once(self._store.get(stored.key(info, namespace, name)))
        return self._shown(info, record) if record is not None else None

    def status(self, name: str) -> Document:
        pod = self.get("pods", name)
        return pod.get("status", {}) if pod else {}

    def change(self, name: str, **spec: Any) -> Document:
        """A new generation of a pod."""
        pod = self.get("pods", name)
        assert pod is not None
        meta = {**pod["metadata"], "generation": pod["metadata"].get("generation", 1) + 1}
        return self.put("pods", {**pod, "metadata": meta, "spec": {**pod["spec"], **spec}})

    def delete(self, name: str, grace: int) -> None:
        """What `kubectl delete` leads to."""
        pod = self.get("pods", name)
        assert pod is not None
        meta = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
        self.put("pods", {**pod, "metadata": meta})

    def events(self, of: str = "") -> list[str]:
        """`reason message` of each, in the order of their first; a repeated one once. `of` is a kind, or any."""
        return [
            f"{event['reason']} {event['message']}"
            for event in self.listed("events")
            if of in ("", event["involvedObject"]["kind"])
        ]

    def listed(self, resource: str) -> list[Document]:
        """In the order in which they were made."""
        info = KINDS[resource]
        page = at_once(self._store.list(stored.prefix(info)))
        return [self._shown(info, record) for record in sorted(page.records, key=lambda one: one.create_revision)]

    def history(self, resource: str) -> Iterator[tuple[str, Document]]:
        """Each write of an object of the kind: `ADDED`, `MODIFIED` or `DELETED`, and what it was then."""
        info = KINDS[resource]
        for change in self._log.changes(stored.prefix(info), 0, self.revision, 1 << 30):
            kind = "DELETED" if change.deleted else "ADDED" if change.previous is None else "MODIFIED"
            yield kind, self._shown(info, change.record)

    @property
    def revision(self) -> int:
        return self._store.revision

    # ------------------------------------------------------------------ the handler

    async def __call__(self, request: Request) -> Response:
        if self.down:
            raise ConnectionError("the API is down")
        if self._begun is None:
            self._begun = asyncio.create_task(bootstrap(self._context))
        await self._begun
        if request.method == "PATCH" and "/pods/" in request.path:
            self.patches.append(json.loads(request.body))
        return await self._server.handler(request.with_identity(ADMIN))

    # ------------------------------------------------------------------ inside

    def _written(self, write: Coroutine[Any, Any, Record]) -> Record:
        write.send(None)
        self._store.commit()
        return at_once(write)

    def _shown(self, info: ResourceInfo, record: Record) -> Document:
        document: Document = json.loads(stored.unended(info, record))
        return document
