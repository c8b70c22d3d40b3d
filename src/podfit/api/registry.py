"""The one table of resources: the declarations of `api.kinds`, in the order in which discovery lists them.

Discovery, routing, tables and clients read this table; behaviour that needs decisions (validation, what an update may
change) is attached to it by the API server. It takes a tenth of a second to load, with the columns of each kind: what
starts often names its kinds by itself (`client.resource.known`).
"""

from functools import cache

from podfit.api.kinds import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    events,
    networking,
    node,
    policy,
    rbac,
    scheduling,
    storage,
)
from podfit.api.kinds import authorization as reviews
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo

DECLARED: tuple[ResourceInfo, ...] = (
    *core.KINDS,
    *coordination.KINDS,
    *scheduling.KINDS,
    *rbac.KINDS,
    *reviews.KINDS,
    *admissionregistration.KINDS,
    *apiextensions.KINDS,
    *discovery.KINDS,
    *apps.KINDS,
    *batch.KINDS,
    *policy.KINDS,
    *autoscaling.KINDS,
    *storage.KINDS,
    *node.KINDS,
    *apiregistration.KINDS,
    *events.KINDS,
    *networking.KINDS,
    *certificates.KINDS,
)


def resources() -> tuple[ResourceInfo, ...]:
    """Every kind, in discovery order."""
    return DECLARED


@cache
def _by_type() -> dict[type[Object], ResourceInfo]:
    return {info.type: info for info in resources()}


@cache
def _by_resource() -> dict[tuple[str, str, str], ResourceInfo]:
    return {(info.group, info.version, info.resource): info for info in resources()}


def info_for(kind: type[Object]) -> ResourceInfo:
    return _by_type()[kind]


def find(group: str, version: str, resource: str) -> ResourceInfo | None:
    return _by_resource().get((group, version, resource))
