"""The machine's clock behind `core.clock.Clock`; the only place that reads it."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from podfit.core.clock import Timer


class SystemClock:
    """Timers belong to the running event loop."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)
