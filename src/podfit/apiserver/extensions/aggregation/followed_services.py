"""Follows the services and endpoints behind APIServices: one whose backend moves is checked again at once.

Nothing is watched while nothing is registered, and nothing of other namespaces.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.registry.change_watch import refresh_on_change

KINDS = (Service, EndpointSlice, Endpoints, Pod)


class Neighbours:
    """`moved` is called with a namespace in which something was written."""

    def __init__(self, context: Context, moved: Callable[[str], Awaitable[None]]) -> None:
        self._context, self._moved = context, moved
        self._tasks: dict[str, list[asyncio.Task[object]]] = {}

    def follow(self, namespaces: set[str]) -> None:
        """These, and no others, from now on."""
        for gone in [known for known in self._tasks if known not in namespaces]:
            for task in self._tasks.pop(gone):
                task.cancel()
        for new in sorted(namespaces - self._tasks.keys()):
            after, look = self._context.store.revision, partial(self._moved, new)
            watches = (
                refresh_on_change(self._context, info_for(kind), look, after=after, namespace=new) for kind in KINDS
            )
            run = self._context.supervisor.run
            self._tasks[new] = [run(watch, name=f"neighbours in {new}") for watch in watches]
