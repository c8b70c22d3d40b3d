"""The event loop of a process that serves.

uvloop does TLS and sockets in C: a small request over TLS costs the server about a third less CPU than on asyncio's own
loop (`bench/api.py`). Commands that only ask something run on asyncio's, which is there without an import.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
