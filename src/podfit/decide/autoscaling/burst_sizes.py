"""From what a pod says to what the burst rule moves, and back (docs/burst.md)."""

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.burst import Bounds, Size
from podfit.decide.pod.burst_ceiling import BurstRange


def size_of(amounts: ResourceList) -> Size:
    cpu, memory = amounts.get(CPU), amounts.get(MEMORY)
    return Size(cpu=cpu.milli() if cpu else None, memory=memory.value() if memory else None)


def bounds_of(own: ResourceRequirements, allowed: BurstRange, *, guaranteed: bool) -> Bounds:
    """The bounds of a container that has `own` resources now. A limit never comes below its request, which stays in a
    pod that is not Guaranteed."""
    floor = dict(allowed.floor)
    for name, least in own.requests.items() if not guaranteed else ():
        if name in floor:
            floor[name] = max(floor[name], least)
    return Bounds(limit=size_of(own.limits), floor=size_of(floor), ceiling=size_of(allowed.ceiling))


def written_limits(size: Size) -> ResourceList:
    """Those that are to be set."""
    limits = {}
    if size.cpu is not None:
        limits[CPU] = Quantity.of_milli(size.cpu)
    if size.memory is not None:
        limits[MEMORY] = Quantity.of_bytes(size.memory)
    return limits


def told(name: str, pod: Pod, size: Size, why: str) -> str:
    """One move in words; `pod` has the limits from before."""
    own = next((container.resources.limits for container in pod.spec.containers if container.name == name), {})
    moved = ", ".join(
        f"{resource} limit {own.get(resource)} to {amount}" for resource, amount in written_limits(size).items()
    )
    return f"{name}: {moved}, since {why}"
