"""The phase of a pod, as everybody reads it: has it ended, is it active, or is it going.

has_ended        Succeeded or Failed: nothing of it runs again, and it counts for nothing
is_active        neither ended nor asked to go
is_terminating   asked to go, and not ended yet
"""

from podfit.api.core.v1.pods.types import Pod

SUCCEEDED, FAILED = "Succeeded", "Failed"
ENDED = (SUCCEEDED, FAILED)


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in ENDED


def is_active(pod: Pod) -> bool:
    return pod.status.phase not in ENDED and not pod.metadata.deletion_timestamp


def is_terminating(pod: Pod) -> bool:
    return bool(pod.metadata.deletion_timestamp) and pod.status.phase not in ENDED
