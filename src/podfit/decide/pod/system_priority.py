"""Critical pods, which a node does not end for others: static and mirror pods, and those of system priority."""

from podfit.api.core.v1.pods.static_pods import API, SOURCE, is_mirror
from podfit.api.core.v1.pods.types import Pod

SYSTEM_CRITICAL = 2_000_000_000
NODE_CRITICAL = 2_000_001_000


def is_critical(pod: Pod) -> bool:
    """Static and mirror pods, and those of system priority."""
    from_elsewhere = pod.metadata.annotations.get(SOURCE, API) != API
    return is_mirror(pod) or from_elsewhere or (pod.spec.priority or 0) >= SYSTEM_CRITICAL
