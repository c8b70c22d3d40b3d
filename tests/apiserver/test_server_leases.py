"""Several API servers on one store: where the service `kubernetes` leads as they come, die, stop and lose the store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podfit.api.core.v1.services.types import Endpoints
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.apiserver.context import Context
from podfit.apiserver.housekeeping.server_leases import DEAD_SECONDS, LOOK_SECONDS, PREFIX, Servers
from podfit.apiserver.server import ApiServer
from podfit.core.features import FeatureGates
from podfit.process.control.stores import passing_store
from podfit.store.protocol import Page, Store, StoreUnavailable
from support.clock import FakeClock

A, B, C = "192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.1:7443"
SIX = "[2001:db8::1]:6443"


class Flaky:
    """A server's way to the store, which can break."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.broken = False
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []
        """What happens between a look at the keys and what the server makes of it."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def list(self, prefix: str) -> Page:
        if self.broken:
            raise StoreUnavailable("away")
        seen = await self._store.list(prefix)
        while prefix == PREFIX and self.meanwhile:
            await self.meanwhile.pop()()
        return seen


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = passing_store()
    yield made
    await made.close()


@pytest.fixture
def context(store: Store, clock: FakeClock) -> Context:
    return Context(store, clock, FeatureGates(), lambda _: None)


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def begun(closing: AsyncExitStack, context: Context, name: str) -> Servers:
    server = Servers(context, name)
    await server.begin()
    closing.push_async_callback(server.end)
    return server


def kill(server: Servers) -> None:
    assert server._task is not None
    server._task.cancel()


async def told(context: Context) -> set[str]:
    """Whom Endpoints and slices name, which has to be the same."""
    endpoints = await context.find(Endpoints, "kubernetes", "default")
    assert endpoints is not None
    named = {f"{address.ip}:{subset.ports[0].port}" for subset in endpoints.subsets for address in subset.addresses}
    sliced = {
        f"{address}:{(endpoint_slice.ports or ())[0].port}"
        for endpoint_slice in await context.all(EndpointSlice, "default")
        for one in (endpoint_slice.endpoints or ())
        for address in one.addresses
    }
    assert named == sliced
    return named


async def test_all_that_live_are_named_and_who_dies_leaves(
    context: Context, clock: FakeClock, closing: AsyncExitStack
) -> None:
    await begun(closing, context, A)
    second = await begun(closing, context, B)
    assert await told(context) == {A, B}
    await clock.advance(60)
    assert await told(context) == {A, B}
    kill(second)
    await clock.advance(DEAD_SECONDS - 2 * LOOK_SECONDS)
    assert await told(context) == {A, B}
    await clock.advance(DEAD_SECONDS + LOOK_SECONDS)
    assert await told(context) == {A}
    assert await context.store.get(PREFIX + B) is None


async def test_one_that_was_taken_for_dead_comes_back(
    context: Context, clock: FakeClock, closing: AsyncExitStack
) -> None:
    await begun(closing, context, A)
    await begun(closing, context, B)
    record = await context.store.get(PREFIX + B)
    assert record is not None
    await context.store.delete(PREFIX + B, expected=record.mod_revision)
    await clock.advance(LOOK_SECONDS)
    await clock.advance(20)
    assert await told(context) == {A, B}


async def test_who_stops_leaves_at_once(context: Context, clock: FakeClock, closing: AsyncExitStack) -> None:
    await begun(closing, context, A)
    second = await begun(closing, context, B)
    await second.end()
    assert await told(context) == {A}
    await clock.advance(60)
    assert await told(context) == {A}


async def test_other_ports_and_families_have_slices_of_their_own(
    context: Context, clock: FakeClock, closing: AsyncExitStack
) -> None:
    await begun(closing, context, A)
    more = [await begun(closing, context, address) for address in (B, C, SIX)]
    slices = {
        endpoint_slice.metadata.name: endpoint_slice for endpoint_slice in await context.all(EndpointSlice, "default")
    }
    assert {
        name: (endpoint_slice.address_type, (endpoint_slice.ports or ())[0].port)
        for name, endpoint_slice in slices.items()
    } == {"kubernetes": ("IPv4", 6443), "kubernetes-ipv4-7443": ("IPv4", 7443), "kubernetes-ipv6-6443": ("IPv6", 6443)}
    assert [one.addresses for one in slices["kubernetes"].endpoints or ()] == [("192.0.2.1",), ("192.0.2.2",)]
    for servers in more:
        await servers.end()
    assert [endpoint_slice.metadata.name for endpoint_slice in await context.all(EndpointSlice, "default")] == [
        "kubernetes"
    ]


async def test_while_the_store_is_away_nobody_is_dead(
    store: Store, context: Context, clock: FakeClock, closing: AsyncExitStack
) -> None:
    flaky = Flaky(store)
    await begun(closing, Context(flaky, clock, FeatureGates(), lambda _: None), A)  # type: ignore[arg-type]  # a fake
    second = await begun(closing, context, B)
    kill(second)
    await clock.advance(LOOK_SECONDS)
    flaky.broken = True
    await clock.advance(120)
    flaky.broken = False
    await clock.advance(LOOK_SECONDS)
    assert await told(context) == {A, B}, "it may have been kept from renewing, too"
    await clock.advance(DEAD_SECONDS + LOOK_SECONDS)
    assert await told(context) == {A}


async def test_servers_that_begin_together_are_all_named_at_once(
    store: Store, context: Context, clock: FakeClock, closing: AsyncExitStack
) -> None:
    flaky = Flaky(store)
    flaky.meanwhile.append(lambda: begun(closing, context, B))
    await begun(closing, Context(flaky, clock, FeatureGates(), lambda _: None), A)  # type: ignore[arg-type]  # a fake
    assert await told(context) == {A, B}


async def test_a_server_begins_when_it_is_published_and_ends_when_it_stops(
    context: Context, clock: FakeClock, closing: AsyncExitStack, tmp_path: Path
) -> None:
    await begun(closing, context, B)
    server = ApiServer(context, signing_key=tmp_path / "key", shared=True)
    await server.start()
    await server.publish(f"https://{A}")
    assert await told(context) == {A, B}
    await server.stop()
    assert await told(context) == {B}
