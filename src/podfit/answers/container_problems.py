"""Problems of containers whatever their sizes: waiting to restart, not starting, killed. `why` shows them."""

from collections.abc import Iterator

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod

STARTING = ("", "ContainerCreating", "PodInitializing")
"""Reasons to wait that are no trouble."""


def troubles(pod: Pod) -> Iterator[str]:
    """A line for each container of a pod that waits to be started again, cannot be started, or was killed."""
    if pod.metadata.deletion_timestamp:
        return
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in STARTING:
            why = ": ".join(filter(None, (waiting.reason, waiting.message)))
            yield f'container "{status.name}": {why}{_last(status)}'
        elif ran_out_of_memory(status):
            yield f'container "{status.name}" was killed: OOMKilled{_counted(status)}'


def ran_out_of_memory(status: ContainerStatus) -> bool:
    """Whether that is how it ended the last time."""
    ended = status.state.terminated or status.last_state.terminated
    return ended is not None and ended.reason == "OOMKilled"


def _last(status: ContainerStatus) -> str:
    """Of one that has run: how it ended."""
    ended = status.last_state.terminated
    if ended is None:
        return ""
    why = f"; it ended with {ended.reason or 'Error'} (exit code {ended.exit_code})"
    return why + (f": {ended.message.strip()}" if ended.message.strip() else "") + _counted(status)


def _counted(status: ContainerStatus) -> str:
    return f", {status.restart_count} restarts" if status.restart_count > 1 else ""
