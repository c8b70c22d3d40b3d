"""`Clock`: time handed in as an argument.

Nothing in podfit reads the machine's clock directly: components are handed a `Clock`, so a test can move hours in
milliseconds and no test has to sleep. The real one is `podfit.net.system.SystemClock`.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None:
        """Forget the callback; harmless when it already ran."""


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...
