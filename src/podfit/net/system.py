"""The system clock and system randomness, behind `core.clock.Clock` and `core.randomness.Random`."""

import asyncio
import random
import secrets
import time
import uuid
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


class SystemRandom:
    """Nobody can foretell it."""

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def uuid(self) -> str:
        return str(uuid.uuid4())


class SeededRandom:
    """The same numbers and UUIDs for the same seed. Not for secrets."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._generator.getrandbits(128), version=4))
