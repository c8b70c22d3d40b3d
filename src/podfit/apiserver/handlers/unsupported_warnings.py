"""Warns whoever creates an object of a kind that no controller of this cluster acts on."""

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.base import Object
from podfit.api.registry import ResourceInfo
from podfit.apiserver.context import Context
from podfit.decide.workload.unsupported_kinds import MANAGER_LEASE, attended, makes_pods, unattended_warning


async def unattended(context: Context, info: ResourceInfo, obj: Object) -> list[str]:
    """Warnings for a new object."""
    if not makes_pods(obj) or info.resource in context.attended:
        return []
    namespace, name = MANAGER_LEASE
    if attended(await context.find(Lease, name, namespace), context.clock.now()):
        return []
    return [unattended_warning(info.resource)]
