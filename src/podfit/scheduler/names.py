"""The names by which pods ask for a scheduler."""

from podfit.api.core.v1.pods.types import Pod

NAME = "default-scheduler"


def scheduler_of(pod: Pod) -> str:
    """The name of the one that the pod asks for."""
    return pod.spec.scheduler_name or NAME
