"""Follows the store's changes of a kind, since other servers may write to the same store."""

import logging
from collections.abc import Awaitable, Callable

from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry.stored import prefix
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.store.protocol import Store, StoreError

log = logging.getLogger(__name__)

RETRY = 1.0  # seconds, after the store could not be read


async def refresh_on_change(
    store: Store,
    clock: Clock,
    info: ResourceInfo,
    refresh: Callable[[], Awaitable[None]],
    *,
    after: int,
    namespace: str = "",
) -> None:
    """Call `refresh` whenever an object of the kind (in the namespace) was written, for ever; `after` is the revision
    it last saw.

    When the watch breaks, what happened until the next one begins is looked at, too.
    """
    while True:
        watch = store.watch(prefix(info, namespace), after=after)
        try:
            async for _ in watch:
                await refresh()
        except (StoreError, ApiError) as error:
            log.warning("objects are looked at anew resource=%s reason=%s", info.resource, error)
            await clock.sleep(RETRY)
        finally:
            watch.close()
        after = store.revision
        await _look(clock, refresh)


async def _look(clock: Clock, refresh: Callable[[], Awaitable[None]]) -> None:
    """Until the store can be read."""
    while True:
        try:
            return await refresh()
        except (StoreError, ApiError) as error:
            log.warning("the store cannot be read reason=%s", error)
            await clock.sleep(RETRY)
