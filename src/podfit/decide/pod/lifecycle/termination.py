"""The end of a pod: what is stopped in which order, and how many seconds it gets."""

from podfit.api.core.v1.pods.types import Pod

DEFAULT_GRACE = 30  # as the API defaults terminationGracePeriodSeconds


def spec_grace(pod: Pod) -> int:
    """Seconds between SIGTERM and SIGKILL when nobody has asked for less."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace
