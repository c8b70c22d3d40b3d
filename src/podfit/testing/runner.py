"""Runs the cluster's event loop in a thread, so that tests may be functions, coroutines, or blocking clients."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from podfit.testing.loop import TestLoop

T = TypeVar("T")


class Runner:
    """Runs coroutines for a thread that waits for them."""

    def __init__(self) -> None:
        self._loop = TestLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="podfit-cluster", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], *, seconds: float = 60.0) -> T:
        """Its result or exception. Raises TimeoutError when it takes longer in real time."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
