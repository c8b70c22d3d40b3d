"""Running `podfit up`: in the foreground, or detached and reporting through a pipe to the command that waits for it."""

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable

from podfit.net.processes import give_back
from podfit.process.foreground import Announce, run_until_stopped
from podfit.process.options import UpOptions

READY_FD = "PODFIT_READY_FD"
SETTLE_SECONDS = 2.0  # after the start, when the first pods have been placed


async def run_cluster(options: UpOptions, *, announce: Announce) -> None:
    """`podfit up`, detached or not."""
    gc.disable()  # what a start makes stays, so looking for garbage in it costs a tenth of the start and finds none
    from podfit.process.up import Cluster

    announce, tell_ready = _reporting(announce)

    def ready(cluster: Cluster) -> None:
        gc.freeze()  # imports and tables, hardly any of it garbage: looking through all of it is a turn of 100 ms
        announce("")
        announce(f"next: {cluster.access.kubectl} get nodes" + ("" if _detached() else "   (Ctrl-C stops everything)"))
        tell_ready()
        asyncio.get_running_loop().call_later(SETTLE_SECONDS, _settle_memory)

    await run_until_stopped(Cluster.start(options, announce=announce), ready=ready, terminated=Cluster.terminated)


def _settle_memory() -> None:
    """What was made until now stays: the collector need not go through it again, which would hold up a resize for
    30 ms every now and then; only what was made since the cluster was ready is looked through. What the start has used
    and given up goes back to the machine."""
    gc.collect()
    gc.freeze()
    gc.enable()
    give_back()


def _detached() -> bool:
    return READY_FD in os.environ


def _reporting(announce: Announce) -> tuple[Announce, Callable[[], None]]:
    """A detached cluster reports through a pipe to the command that waits for it, and closes it when ready."""
    if not _detached():
        return announce, lambda: None
    pipe = int(os.environ[READY_FD])
    return lambda text: _tell(pipe, text), lambda: os.close(pipe)


def _tell(pipe: int, text: str) -> None:
    """To the command that waits; it may have been interrupted, which is no reason to stop."""
    with contextlib.suppress(BrokenPipeError):
        os.write(pipe, f"{text}\n".encode())
