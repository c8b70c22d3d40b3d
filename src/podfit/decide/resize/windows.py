"""Resources of a Windows container, in its runtime's words. A Windows container is never resized."""

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.decide.cgroup.container_resources import cpu, memory
from podfit.decide.resize.reported_status import Enforced

SHARE_OF_MACHINE = 10_000
"""CPU limits are parts of this of the whole machine."""


def cpu_maximum(resources: ResourceRequirements, cpus: int) -> int:
    """On a machine of `cpus` CPUs; 0 = no limit."""
    limit = cpu(resources.limits)
    return min(max(10 * limit // cpus, 1), SHARE_OF_MACHINE) if limit else 0


def memory_limit(resources: ResourceRequirements) -> int:
    """Bytes; 0 = no limit."""
    return memory(resources.limits)


def enforced(*, maximum: int, memory: int, cpus: int) -> Enforced:
    """What a runtime that reports these values holds a container to. Requests are nowhere in them."""
    return Enforced(cpu_limit=maximum * cpus // 10, memory_limit=memory)
