"""Waiting for what a test cannot move: another process, the kernel, a server that lives on the machine's own time.

    pod = eventually(lambda: up.get("pod", "web"), running, within=30, what="the pod runs", told=up.log)

Time inside of a test's own process is a clock's, which the test moves and settles (`support.clock`). Beside these
functions no test sleeps, which `test_no_sleeps.py` keeps.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from pprint import pformat
from typing import TypeVar

T = TypeVar("T")
LOOK_SECONDS = 0.05
SHARE, SELDOM_SECONDS = 2.0, 0.5
"""Between two looks passes so many times what one takes, and no more than this for it: a look is often a process of its
own, and a wait with one behind the other would take a core from what is waited for."""
PATIENCE = float(os.environ.get("PODFIT_TESTS_PATIENCE", "1"))
"""So many times as long as it says a wait goes on before it is given up. It asserts that something comes to be and not
how soon: `make test`, which fills the machine, has 4."""
SHOWN = 5000
"""So much of what was last seen, and of what is told of it, stands in a failure: characters, the last ones."""


def eventually(
    look: Callable[[], T | None],
    holds: Callable[[T], object] = bool,
    *,
    within: float,
    what: str,
    told: Callable[[], str] = str,
    every: float = LOOK_SECONDS,
) -> T:
    """What `look` sees, as soon as that holds; None never does. It looks every so many seconds, or more seldom: between
    two looks passes twice what one takes. After `within` seconds it fails, and says what never came to be, what was
    last seen and what `told` has to tell."""
    deadline = _Deadline(within, what, told)
    while True:
        began = time.monotonic()
        seen = look()
        took = time.monotonic() - began
        if seen is not None and holds(seen):
            return seen
        deadline.check(seen)
        time.sleep(max(every, min(SHARE * took, SELDOM_SECONDS)))


async def eventually_async(
    look: Callable[[], Awaitable[T | None]],
    holds: Callable[[T], object] = bool,
    *,
    within: float,
    what: str,
    told: Callable[[], str] = str,
    every: float = LOOK_SECONDS,
) -> T:
    """`eventually`, for what is asked in the event loop and goes on in it meanwhile."""
    deadline = _Deadline(within, what, told)
    while True:
        began = time.monotonic()
        seen = await look()
        took = time.monotonic() - began
        if seen is not None and holds(seen):
            return seen
        deadline.check(seen)
        await asyncio.sleep(max(every, min(SHARE * took, SELDOM_SECONDS)))


class Steady:
    """Holds when the same was seen so many times in a row: for what comes to rest without saying so."""

    def __init__(self, times: int) -> None:
        self._times, self._count, self._last = times, 0, object()

    def __call__(self, seen: object) -> bool:
        self._count = self._count + 1 if seen == self._last else 1
        self._last = seen
        return self._count >= self._times


def logged(
    log: Path, process: "subprocess.Popen[str] | subprocess.Popen[bytes]", *texts: str, within: float, after: int = 0
) -> str:
    """The last line with one of the texts in the log of a process, once it is there behind so many characters; fails
    also when the process ends."""

    def line() -> str | None:
        ended = process.poll()
        lines = log.read_text()[after:].splitlines()
        if matching := [line for line in lines if any(text in line for text in texts)]:
            return matching[-1]
        assert ended is None, f"ended with {ended} before it said {' or '.join(texts)}:\n{log.read_text()}"
        return None

    return eventually(line, within=within, what=f"said {' or '.join(texts)}", told=log.read_text, every=0.02)


def process_ended(pid: int, *, within: float, told: Callable[[], str] = str) -> None:
    """Return when a process that need not be ours has ended; nobody need have asked for its exit code."""
    stat = Path(f"/proc/{pid}/stat")

    def ended() -> bool:
        try:
            return stat.read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    eventually(ended, within=within, what=f"process {pid} ended", told=told, every=0.02)


class _Deadline:
    def __init__(self, within: float, what: str, told: Callable[[], str]) -> None:
        self._end = time.monotonic() + within * PATIENCE
        self._within, self._what, self._told = within, what, told

    def check(self, seen: object) -> None:
        if time.monotonic() < self._end:
            return
        shown = seen if isinstance(seen, str) else pformat(seen, width=120)
        told = self._told()
        raise AssertionError(
            f"never within {self._within:g} s: {self._what}; last seen: {shown[-SHOWN:]}\n{told[-SHOWN:]}".rstrip()
        )
