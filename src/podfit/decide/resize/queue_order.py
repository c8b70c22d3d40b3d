"""The order of the queue of pending resizes: those that ask for no more, then priority, QoS class and waiting time.

A sort key, where upstream has a comparator that contradicts itself when two resizes both ask for no more.
"""

from datetime import UTC, datetime

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.decide.pod.requests import pod_requests

QueueKey = tuple[bool, int, bool, datetime, str]
_LAST = datetime.max.replace(tzinfo=UTC)


def queue_key(desired: Pod, allocated: Pod, since: datetime | None) -> QueueKey:
    """Sorts first what asks for no more, then the higher priority, then Guaranteed, then who has waited longest.

    `since` is when the pod's PodResizePending condition last changed, in whole seconds; a pod without one goes last
    (R-104 to R-107). Within a second names decide, so that whoever reads the API comes to the same order as the node.
    """
    return (
        increases(desired, allocated),
        -(desired.spec.priority or 0),
        desired.status.qos_class != "Guaranteed",
        since or _LAST,
        f"{desired.metadata.namespace}/{desired.metadata.name}",
    )


def increases(desired: Pod, allocated: Pod) -> bool:
    """Whether the pod as a whole would ask for more CPU or memory than it is allocated; status is not looked at."""
    new, old = pod_requests(desired), pod_requests(allocated)
    return any(new.get(name, ZERO) > old.get(name, ZERO) for name in ("cpu", "memory"))
