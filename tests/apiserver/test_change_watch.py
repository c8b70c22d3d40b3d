"""What a server keeps in its process misses nothing when the store's watch breaks, or the store for a while."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.registry.change_watch import RETRY, refresh_on_change
from podfit.core.errors import ApiError
from podfit.store.protocol import Change, Store, StoreUnavailable
from support.clock import FakeClock
from support.server import Server


class Broken:
    """A watch that ends at once, as one whose store went away."""

    revision = 0

    def __aiter__(self) -> AsyncIterator[Sequence[Change]]:
        return self

    async def __anext__(self) -> Sequence[Change]:
        raise StoreUnavailable("gone")

    def close(self) -> None:
        pass


class Once:
    """The store, whose first watch breaks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.watches = 0

    def watch(self, prefix: str, *, after: int) -> Any:
        self.watches += 1
        return Broken() if self.watches == 1 else self._store.watch(prefix, after=after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_what_happened_while_the_watch_was_broken_is_looked_at(server: Server) -> None:
    clock, looks = server.context.clock, 0
    assert isinstance(clock, FakeClock)

    async def refresh() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise StoreUnavailable("still gone")
        if looks == 3:
            raise ApiError(404, "NotFound", "what was looked at is gone")

    store = Once(server.context.store)
    context = replace(server.context, store=cast(Store, store))
    following = asyncio.create_task(
        refresh_on_change(context.store, context.clock, info_for(ConfigMap), refresh, after=context.store.revision)
    )
    await clock.advance(RETRY)
    assert looks == 1, "after the break, and in vain"
    await clock.advance(RETRY)
    assert (looks, store.watches) == (2, 2)
    await server.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    await clock.advance(0)
    assert looks == 3, "a write, while another object was deleted"
    await clock.advance(RETRY)
    assert looks == 4
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
