"""Tells who creates something that nobody in this cluster acts on."""

from podfit.api.base import Object
from podfit.api.coordination import Lease
from podfit.api.core.pods import Pod
from podfit.api.registry import ResourceInfo
from podfit.apiserver.context import Context
from podfit.decide.unattended import MANAGER_LEASE, attended, makes_pods, probes_warnings, unattended_warning


async def unattended(context: Context, info: ResourceInfo, obj: Object) -> list[str]:
    """Warnings for a new object."""
    if isinstance(obj, Pod):
        return probes_warnings(obj)
    if not makes_pods(obj):
        return []
    namespace, name = MANAGER_LEASE
    if attended(await context.find(Lease, name, namespace), context.clock.now()):
        return []
    return [unattended_warning(info.resource)]
