"""APIService objects for the group versions that this server serves itself."""

import asyncio

from podfit.api.apiregistration.v1.types import APIService, APIServiceCondition, APIServiceSpec, APIServiceStatus
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for, resources
from podfit.apiserver.context import Context
from podfit.apiserver.registry.stored import Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time

MANAGED = "kube-aggregator.kubernetes.io/automanaged"
OWN = "apiregistration.k8s.io"
_PRIORITIES = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
}
_LOWEST = 15000


async def publish(context: Context) -> None:
    """Make those that are missing, together, so that it costs one write to the disk."""
    known = {api_service.metadata.name for api_service in await context.all(APIService)}
    versions = dict.fromkeys((info.group, info.version) for info in resources() if info.group != OWN)
    missing = [pair for pair in versions if f"{pair[1]}.{pair[0]}" not in known]
    await asyncio.gather(*(_create(context, group, version) for group, version in missing))


async def _create(context: Context, group: str, version: str) -> None:
    now = format_time(context.clock.now())
    meta = ObjectMeta(
        name=f"{version}.{group}", uid=context.random.uuid(), creation_timestamp=now, labels={MANAGED: "onstart"}
    )
    spec = APIServiceSpec(
        group=group,
        version=version,
        group_priority_minimum=_PRIORITIES.get(group, _LOWEST),
        version_priority=1 if not group else 15 * int(version.removeprefix("v")),
    )
    condition = APIServiceCondition(
        type="Available",
        status="True",
        last_transition_time=now,
        reason="Local",
        message="Local APIServices are always available",
    )
    made = APIService(metadata=meta, spec=spec, status=APIServiceStatus(conditions=(condition,)))
    try:
        await Stored[APIService](context.store, info_for(APIService)).create(made)
    except ApiError as error:
        if error.reason != "AlreadyExists":  # another server was quicker
            raise
