"""What every controller is: informers that name keys, a queue, and one `reconcile`.

A reconcile reads the informers' copies and writes through the client. It is called again after a failure, with growing
pauses, so it may simply raise.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from podfit.client.informer import Informer
from podfit.client.workqueue import WorkQueue
from podfit.core.clock import Clock

K = TypeVar("K", bound=Hashable)


class Controller(ABC, Generic[K]):
    """Subclasses create their informers in `__init__`, hand them to `super().__init__`, and add keys in handlers."""

    def __init__(self, clock: Clock, *informers: Informer[Any]) -> None:
        self.queue: WorkQueue[K] = WorkQueue(clock)
        self._informers = informers

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Bring one key to its desired state; seconds after which to look again, or None."""

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            await asyncio.gather(*(informer.synced.wait() for informer in self._informers))
            await self.queue.run(self.reconcile)
