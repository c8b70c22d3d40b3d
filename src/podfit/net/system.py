"""The system clock and system randomness, behind `core.clock.Clock` and `core.randomness.Random`."""

import asyncio
import os
import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from podfit.core.clock import Timer

POOL = 1024  # bytes, far more than a number or a UUID takes


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


_FIXED = 0xF000_C000_0000_0000_0000
_VERSION_4 = 0x4000_8000_0000_0000_0000
"""The bits of a UUID that say which version it is (RFC 9562, 5.4), and what they are for random ones."""


class SystemRandom:
    """Nobody can foretell it. For one thread.

    The kernel is asked for POOL bytes at once: each time Python lets go of its lock, and a busy event loop gets it back
    only when the store's thread has had its turn.
    """

    def __init__(self) -> None:
        self._pool, self._taken = b"", 0

    def below(self, bound: int) -> int:
        bits = (bound - 1).bit_length()
        while (number := self._bits(bits)) >= bound:
            pass
        return number

    def uuid(self) -> str:
        text = f"{self._bits(128) & ~_FIXED | _VERSION_4:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _bits(self, count: int) -> int:
        length = (count + 7) // 8
        start, end = self._taken, self._taken + length
        if end > len(self._pool):
            self._pool, start, end = os.urandom(POOL), 0, length
        self._taken = end
        return int.from_bytes(self._pool[start:end], "big") >> (8 * length - count)


class SeededRandom:
    """The same numbers and UUIDs for the same seed. Not for secrets."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._generator.getrandbits(128), version=4))
