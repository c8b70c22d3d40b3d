"""The declarations: one entry a kind, one module an API group, in the order in which discovery lists them.

Columns and rows come from `columns` of the folders; defaults and rules are in the tables of `api.defaults` and
`api.validation`.
"""

from podfit.api.admissionregistration.v1 import resources as admissionregistration
from podfit.api.apiextensions.v1 import resources as apiextensions
from podfit.api.apiregistration.v1 import resources as apiregistration
from podfit.api.apps.v1 import resources as apps
from podfit.api.authorization.v1 import resources as reviews
from podfit.api.autoscaling import resources as autoscaling
from podfit.api.batch.v1 import resources as batch
from podfit.api.certificates.v1 import resources as certificates
from podfit.api.coordination.v1 import resources as coordination
from podfit.api.core.v1 import resources as core
from podfit.api.discovery.v1 import resources as discovery
from podfit.api.events.v1 import resources as events
from podfit.api.networking.v1 import resources as networking
from podfit.api.node.v1 import resources as node
from podfit.api.policy.v1 import resources as policy
from podfit.api.rbac.v1 import resources as rbac
from podfit.api.registry import ResourceInfo
from podfit.api.scheduling.v1 import resources as scheduling
from podfit.api.storage.v1 import resources as storage

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
