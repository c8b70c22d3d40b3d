"""The declarations: one entry a kind, one module an API group, in the order in which discovery lists them.

Columns and rows come from `api.columns`; defaults and rules are in the tables of `api.defaults` and `api.validation`.
"""

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
    reviews,
    scheduling,
    storage,
)
from podfit.api.registry import ResourceInfo

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
