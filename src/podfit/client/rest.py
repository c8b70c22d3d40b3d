"""The API's verbs over any transport, typed by the kind that is asked for.

client = Client(transport, user_agent="podfit-scheduler")
pod = await client.get(Pod, "web", "default")
await client.patch(Pod, "web", "default", {"spec": …}, subresource="resize")
async for event in client.watch(Pod, resource_version=page.resource_version): …

what can go wrong
  ApiError          the server refused; the status it sent
  ConnectionError   no answer (`net.reachability.Unreachable`), or one that cannot be read (`Unreadable`)
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from copy import copy
from typing import Any, Generic, TypeVar

import msgspec

from podfit.api.core.v1.pods.types import Binding, Pod
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta import codec
from podfit.api.meta.base import Struct
from podfit.api.meta.v1.types import DeleteOptions, ListMeta, ObjectMeta, Preconditions
from podfit.api.policy.v1.types import Eviction
from podfit.client.rate_limit import Rate, RateLimited
from podfit.client.resource import Kind, identify, resource_of
from podfit.client.transport import Transport
from podfit.client.watch_events import WatchEvent, decoded, event_of, lines_of, object_of
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.core.randomness import Random
from podfit.net.streams import close, write_to
from podfit.net.system import SystemRandom
from podfit.net.wire import Request, Response, Sink

T = TypeVar("T")


class Listed(Struct):
    items: tuple[msgspec.Raw, ...] = ()
    metadata: ListMeta = ListMeta()


def refusal(code: int, body: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return ApiError(code, "", body[:500].decode(errors="replace").strip() or f"HTTP status {code}")
    return ApiError.from_status(status, code=code)


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Part of a collection. `continue_` asks for the next part and is empty on the last."""

    items: tuple[T, ...]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


class Client:
    """`random` is what those who use it spread their retries with."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "podfit",
        random: Random = SystemRandom(),  # noqa: B008  (no state)
    ) -> None:
        self._transport, self.random = transport, random
        self._headers = {"user-agent": user_agent, "accept": "application/json"}

    @property
    def near(self) -> bool:
        """Whether the server is in this process."""
        return self._transport.near

    def limited(self, rate: Rate, clock: Clock) -> "Client":
        """The same, asking no faster than that."""
        client = copy(self)
        client._transport = RateLimited(self._transport, rate, clock)
        return client

    async def close(self) -> None:
        await self._transport.close()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        resource = resource_of(kind)
        return object_of(await self.request("GET", resource.info.path(namespace, name)), resource.type)

    async def list(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
    ) -> Page[T]:
        """One page of a collection, of every namespace when none is given; `limit` 0 means all of it."""
        resource = resource_of(kind)
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            limit=limit,
            resourceVersion=resource_version,
            **{"continue": continue_},
        )
        body = await self.request("GET", resource.info.path(namespace), query=query)
        found = decoded(body, Listed)
        items: list[T] = []
        for item in found.items:
            items.append(decoded(item, resource.type))
            if len(items) % OBJECTS == 0:
                await asyncio.sleep(0)  # others of this process have their turn while a large answer is read
        meta = found.metadata
        return Page(tuple(items), meta.resource_version, meta.continue_, meta.remaining_item_count)

    async def create(self, obj: T, namespace: str = "", *, dry_run: bool = False) -> T:
        """Create in `namespace`, or else in the object's own."""
        return await self.create_in(type(obj), obj, namespace, dry_run=dry_run)

    async def create_in(self, kind: Kind[T], obj: T, namespace: str = "", *, dry_run: bool = False) -> T:
        """The same for a dict, which does not know its resource."""
        resource = resource_of(kind)
        path = resource.info.path(namespace or identify(obj)[0])
        return object_of(
            await self.request("POST", path, codec.encode(obj), query=_query(dryRun=dry_run)), resource.type
        )

    async def update(self, obj: T, *, kind: Kind[T] | None = None, subresource: str = "", dry_run: bool = False) -> T:
        """Replace an object; its resource version, if it has one, must be the current one (else 409 Conflict)."""
        resource = resource_of(kind or type(obj))
        path = resource.info.path(*identify(obj), subresource)
        return object_of(
            await self.request("PUT", path, codec.encode(obj), query=_query(dryRun=dry_run)), resource.type
        )

    async def update_status(self, obj: T, *, kind: Kind[T] | None = None) -> T:
        return await self.update(obj, kind=kind, subresource="status")

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        namespace: str,
        patch: Any,
        *,
        content_type: str = STRATEGIC_PATCH,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Change part of an object. `patch` is JSON as bytes, or what `codec.encode` makes JSON of."""
        resource = resource_of(kind)
        body = await self.request(
            "PATCH",
            resource.info.path(namespace, name, subresource),
            patch if isinstance(patch, bytes) else codec.encode(patch),
            query=_query(dryRun=dry_run, fieldManager=field_manager, force=force),
            content_type=content_type,
        )
        return object_of(body, resource.type)

    async def delete(
        self,
        kind: Kind[T],
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> None:
        """Ask for deletion; a pod goes after `grace` seconds. `uid` and `resource_version` are preconditions (409)."""
        conditions = Preconditions(uid=uid, resource_version=resource_version) if uid or resource_version else None
        options = DeleteOptions(
            kind="DeleteOptions",
            api_version="v1",
            grace_period_seconds=grace,
            preconditions=conditions,
            propagation_policy=propagation,
        )
        path = resource_of(kind).info.path(namespace, name)
        await self.request("DELETE", path, codec.encode(options), query=_query(dryRun=dry_run))

    async def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Place a pod on a node; with `uid`, only if it is still that pod."""
        binding = Binding(
            metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
            target=ObjectReference(api_version="v1", kind="Node", name=node),
        )
        await self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", codec.encode(binding))

    async def evict(
        self, pod: Pod, *, unchanged: bool = False, dry_run: bool = False, grace: int | None = None
    ) -> None:
        """End this very pod, as far as disruption budgets let it go (429 otherwise); 409 when another bears its name.

        `unchanged`: only in the version that is given. `grace` in seconds, where it is not to be the pod's own.
        """
        meta = pod.metadata
        version = meta.resource_version if unchanged else None
        eviction = Eviction(
            metadata=ObjectMeta(name=meta.name, namespace=meta.namespace),
            delete_options=DeleteOptions(
                grace_period_seconds=grace,
                preconditions=Preconditions(uid=meta.uid, resource_version=version),
                dry_run=("All",) if dry_run else (),
            ),
        )
        path = resource_of(Pod).info.path(meta.namespace, meta.name, "eviction")
        await self.request("POST", path, codec.encode(eviction), query=_query(dryRun=dry_run))

    async def watch(
        self,
        kind: Kind[T],
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout: int = 0,
        bookmarks: bool = True,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after `resource_version` until the server ends the watch (`timeout` in seconds).

        Raises ApiError 410 when that version is too old to continue from.
        """
        resource = resource_of(kind)
        query = _watching(resource_version, labels, fields, timeout, bookmarks=bookmarks)
        response = await self.send("GET", resource.info.path(namespace), query=query)
        async with aclosing(lines_of(response)) as lines:
            async for line in lines:
                yield event_of(line, resource.type)

    async def follow(
        self,
        kind: Kind[T],
        sink: Sink,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout: int = 0,
        bookmarks: bool = True,
    ) -> None:
        """The same, its lines written to `sink`, until all are taken; by a server of this process as it commits."""
        query = _watching(resource_version, labels, fields, timeout, bookmarks=bookmarks)
        body = (await self.send("GET", resource_of(kind).info.path(namespace), query=query)).body
        if isinstance(body, bytes):
            sink.write(body + b"\n")
        else:
            try:
                await write_to(body, sink)
            finally:
                await close(body)
        await sink.drained()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Any request; the whole body of the answer."""
        return await (await self.send(method, path, body, query=query, content_type=content_type)).read()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Response:
        """Any request; the answer as it comes, which may be a stream. Raises ApiError for a status of 400 or more."""
        headers = {**self._headers, "content-type": content_type} if body else self._headers
        response = await self._transport.send(
            Request(method, path, {name: (value,) for name, value in (query or {}).items()}, headers, body)
        )
        if response.status >= 400:
            raise refusal(response.status, await response.read())
        return response


def _query(**parameters: str | int | bool) -> dict[str, str]:
    """Parameters that are set; a flag becomes `true`, and `dryRun` the only value it has."""
    if parameters.get("dryRun"):
        parameters["dryRun"] = "All"
    return {name: "true" if value is True else str(value) for name, value in parameters.items() if value}


def _watching(resource_version: str, labels: str, fields: str, timeout: int, *, bookmarks: bool) -> dict[str, str]:
    return _query(
        watch=True,
        allowWatchBookmarks=bookmarks,
        resourceVersion=resource_version,
        labelSelector=labels,
        fieldSelector=fields,
        timeoutSeconds=timeout,
    )
