"""The event loop of a server process: uvloop.

uvloop does TLS and sockets in C: a small request over TLS costs the server about a third less CPU than on asyncio's own
loop (`bench/api.py`). Commands that only ask something run on asyncio's, which is there without an import.
"""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

COLLECT = (10_000, 5, 2000)
"""Python looks for cycles after 700 new objects, which is in the middle of every request; few of them are in cycles. Of
10,000 a look takes 2 ms, and the second one, at what five of those have left, 10 ms; of many more it would be a long
turn of the loop."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs as `asyncio.run` does."""
    gc.set_threshold(*COLLECT)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
