"""Memory QoS on cgroup v2 (gate MemoryQoS): memory.min and memory.high from a memory request.

    memory.min, memory.low   the request, kept from reclaim hard (Guaranteed) or as far as possible (Burstable), where
                             the policy is TieredReservation; else 0
    memory.high              between request and limit: from here on the kernel slows a container down and reclaims,
                             before the limit kills it

A container that has no memory.high of its own is given `max`, not nothing: otherwise one that was resized to request =
limit would stay throttled at what it had.
"""

from collections.abc import Iterable

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.pod.requests import pod_requests

PAGE = 4096
THROTTLING_FACTOR = 0.9


class MemoryQoS(msgspec.Struct, frozen=True, kw_only=True):
    """`reserve` is the policy TieredReservation; `factor` places memory.high between request and limit; `allocatable`
    is the node's memory in bytes, which takes the place of a missing limit.
    """

    allocatable: int
    reserve: bool = False
    factor: float = THROTTLING_FACTOR

    def high(self, request: int, limit: int) -> int | None:
        """Bytes; None where it would not lie above the request, or request and limit are the same."""
        if request == limit:
            return None
        high = int((request + self.factor * ((limit or self.allocatable) - request)) // PAGE) * PAGE
        return high if high > request else None

    def container(self, qos: str, request: int, limit: int) -> dict[str, str]:
        """For CRI's `unified`."""
        kept, high = self.kept(qos, request), self.high(request, limit)
        return {
            "memory.min": str(kept.min),
            "memory.low": str(kept.low),
            "memory.high": "max" if high is None else str(high),
        }

    def kept(self, qos: str, request: int) -> "Kept":
        """What is kept of a container's request, or of a pod's."""
        if not self.reserve:
            return Kept()
        return Kept(min=request if qos == "Guaranteed" else 0, low=request if qos == "Burstable" else 0)

    def tiers(self, active: Iterable[Pod]) -> dict[str, "Kept"]:
        """What each tier passes on to its pods: a request is kept only as far as every level above keeps it."""
        if not self.reserve:
            return {"Guaranteed": Kept(), "Burstable": Kept()}
        sums = {"Guaranteed": 0, "Burstable": 0}
        for pod in active:
            if pod.status.qos_class in sums and (asked := pod_requests(pod).get("memory")):
                sums[pod.status.qos_class] += asked.value()
        return {
            "Guaranteed": Kept(min=sums["Guaranteed"] + sums["Burstable"]),
            "Burstable": Kept(low=sums["Burstable"]),
        }


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of memory.min and memory.low."""

    min: int = 0
    low: int = 0
