"""Pods that run on spare capacity: what others on the node have requested and do not use (docs/spare.md).

They ask for it by two extended resources, and for nothing else of CPU and memory: whoever has a request of its own
keeps what it has, and cannot give way as one that was lent it.
"""

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import ZERO
from podfit.core.resources import CPU, MEMORY
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.system_priority import is_critical

SPARE_CPU, SPARE_MEMORY = "podfit.dev/spare-cpu", "podfit.dev/spare-memory"
"""In millicores and MiB: extended resources are whole numbers."""
SPARE = (SPARE_CPU, SPARE_MEMORY)
MIB = 1 << 20
CONDITION, REASON = "podfit.dev/Spare", "RunsOnSpareCapacity"
REFUSED = "UnfitForSpare"


def is_spare(pod: Pod) -> bool:
    """Whether a container asks for some of it."""
    return bool([container for container in all_containers(pod.spec) if _asks(container.resources.requests)])


def memory_limit(pod: Pod) -> int:
    """The limit of all its containers together, in bytes."""
    return pod_requests(pod).get(SPARE_MEMORY, ZERO).value() * MIB


def refusal(pod: Pod) -> str:
    """Why a node does not run a pod that asks for spare capacity; empty where it may, and for all other pods."""
    if not is_spare(pod):
        return ""
    level = pod.spec.resources
    sides = [container.resources for container in all_containers(pod.spec)] + ([level] if level is not None else [])
    if any(_own(side.requests) or _own(side.limits) for side in sides):
        return f"a pod that asks for {SPARE_CPU} or {SPARE_MEMORY} has no request or limit of cpu and memory"
    if is_critical(pod):
        return "a static pod or one of system priority is not ended for others, so it cannot give back what it was lent"
    if not memory_limit(pod):
        return f"a pod that asks for {SPARE_CPU} asks for {SPARE_MEMORY} too, which is the limit of its memory"
    return ""


def foretold(pod: Pod) -> str:
    """What a node of podfit's makes of a pod that it is given; empty where it runs it. Other nodes lend nothing, so the
    scheduler gives them none."""
    why = refusal(pod)
    return f"its node ends it ({REFUSED}): {why}" if why else ""


def told(pod: Pod) -> str:
    """For the condition in its status."""
    return (
        "runs on what others have requested and do not use: lowest CPU weight, "
        f"at most {memory_limit(pod) // MIB}Mi of memory, the first to go when they need it again"
    )


def _asks(amounts: ResourceList) -> bool:
    return not amounts.keys().isdisjoint(SPARE) and any(amounts.get(name, ZERO) > ZERO for name in SPARE)


def _own(amounts: ResourceList) -> bool:
    return any(amounts.get(name, ZERO) > ZERO for name in (CPU, MEMORY))
