"""Removing the cgroup of a pod: its containers were just killed, or the runtime has forgotten what runs in it."""

import logging
from collections.abc import Awaitable, Callable

from podfit.kubelet.cgroup.protocol import Busy, Cgroups, Missing

log = logging.getLogger(__name__)

BUSY_SECONDS = 0.05
BUSY_TRIES = 40


async def remove_cgroup(
    cgroups: Cgroups, path: str, sleep: Callable[[float], Awaitable[None]], *, kill: bool = False
) -> None:
    """The kernel needs a moment to let go of the processes of a container that was just killed. With `kill` the
    processes inside are ended first. Raises CgroupError."""
    for left in reversed(range(BUSY_TRIES)):
        try:
            if kill and (killed := cgroups.kill(path)):
                log.warning("ended processes that the runtime does not know path=%s number=%d", path, len(killed))
            cgroups.remove(path)
        except Missing:
            return
        except Busy:
            if not left:
                raise
            await sleep(BUSY_SECONDS)
        else:
            return
