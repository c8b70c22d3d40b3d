"""Removing the cgroup of a pod whose containers were just killed."""

from collections.abc import Awaitable, Callable

from podfit.kubelet.cgroup.protocol import Busy, Cgroups, Missing

BUSY_SECONDS = 0.05
BUSY_TRIES = 40


async def remove_cgroup(cgroups: Cgroups, path: str, sleep: Callable[[float], Awaitable[None]]) -> None:
    """The kernel needs a moment to let go of the processes of a container that was just killed. Raises CgroupError."""
    for left in reversed(range(BUSY_TRIES)):
        try:
            cgroups.remove(path)
        except Missing:
            return
        except Busy:
            if not left:
                raise
            await sleep(BUSY_SECONDS)
        else:
            return
