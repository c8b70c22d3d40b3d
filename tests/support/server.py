"""An API server in this process, on a store in memory, with an administrator's client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from podfit.api.core.v1.config.types import ConfigMap, ServiceAccount
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.context import Components, Context, NodeConnection, Services
from podfit.apiserver.registry.service_allocation import ServiceRanges
from podfit.apiserver.request.legacy_options import OFF, Legacy
from podfit.apiserver.server import ApiServer
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.core.randomness import Random
from podfit.net.guard import answer
from podfit.net.inline_executor import InlineExecutor
from podfit.net.system import SystemRandom
from podfit.net.wire import Identity, Request, Response
from podfit.store.log import Loaded
from podfit.store.logged import LoggedStore
from podfit.store.memory import MemoryLog
from podfit.store.protocol import Change, Store
from support.clock import FakeClock

ADMIN = Identity("admin", ("system:masters",))


@dataclass(frozen=True)
class Server:
    api: ApiServer
    client: Client
    context: Context

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        content_type: str = "application/json",
        identity: Identity | None = ADMIN,
        **headers: str,
    ) -> Response:
        """A raw request; what follows `?` in the path is its query."""
        path, _, text = path.partition("?")
        query: dict[str, tuple[str, ...]] = {}
        for part in filter(None, text.split("&")):
            name, _, value = part.partition("=")
            query[name] = (*query.get(name, ()), unquote_plus(value))
        all_headers = {"content-type": content_type} | {key.replace("_", "-"): value for key, value in headers.items()}
        return await answer(self.api.handler, Request(method, path, query, all_headers, body, identity=identity))

    async def namespace(self, name: str, *, certificate: bool = True) -> None:
        """A namespace with what its controllers would give it."""
        await self.client.create(convert({"metadata": {"name": name}}, Namespace))
        await self.account(name, certificate=certificate)

    async def account(self, namespace: str, *, certificate: bool = False) -> None:
        """The account that pods run as, and the certificate that they mount."""
        await self.client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace)))
        if certificate:
            meta = ObjectMeta(name="kube-root-ca.crt", namespace=namespace)
            await self.client.create(ConfigMap(metadata=meta, data={"ca.crt": "CA"}))

    def as_user(self, user: str, *groups: str) -> Client:
        return self.as_identity(Identity(user, groups))

    def as_identity(self, identity: Identity) -> Client:
        return Client(Local(self.api.handler, identity))


@lru_cache(maxsize=4)
def _bootstrapped(now: datetime) -> list[Change]:
    """What a server writes in its first start at this time, kept from the first that did: two thirds of a start."""
    return []


def _new_store(log: MemoryLog, begun: list[Change]) -> LoggedStore:
    """With this history."""
    log.append(begun)
    revision = begun[-1].record.mod_revision if begun else 1
    return LoggedStore(log, Loaded([change.record for change in begun], revision, compacted=0), InlineExecutor)


@asynccontextmanager
async def running_server(
    directory: Path,
    *,
    clock: Clock | None = None,
    gates: FeatureGates | None = None,
    kubelet: NodeConnection | None = None,
    legacy: Legacy = OFF,
    services: Services = lambda _: None,
    certificate: bool = False,
    ranges: ServiceRanges = ServiceRanges(),  # noqa: B008  (frozen)
    store: Store | None = None,
    random: Random | None = None,
    own_nodes: bool = False,
    routes_services: bool = False,
    components: Components | None = None,
) -> AsyncIterator[Server]:
    """On an empty store, or on `store` as it is. Where nothing about the server is special, the store has what an
    earlier one of this process wrote in its start."""
    clock = clock or FakeClock()
    plain = isinstance(clock, FakeClock) and gates is None and random is None and legacy is OFF and not own_nodes
    begun = _bootstrapped(clock.now()) if plain else []
    log, empty = MemoryLog(), store is None
    store = store or _new_store(log, begun)
    context = Context(
        store,
        clock,
        gates or FeatureGates(),
        kubelet or (lambda _: None),
        legacy,
        services,
        ranges=ranges,
        random=random or SystemRandom(),
        own_nodes=own_nodes,
        routes_services=routes_services,
        components=components or {},
    )
    api = ApiServer(context, signing_key=directory / "sa.key")
    await api.start()
    if empty and plain and not begun:
        begun += log.changes("", 0, store.revision, store.revision)
    server = Server(api, Client(Local(api.handler, ADMIN)), context)
    if empty:
        await server.account("default", certificate=certificate)
    try:
        yield server
    finally:
        await api.stop()
        await store.close()


def document(response_body: bytes) -> dict[str, Any]:
    import msgspec

    decoded: dict[str, Any] = msgspec.json.decode(response_body)
    return decoded
