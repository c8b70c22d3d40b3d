"""The chain in upstream's order."""

from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.admission.escalation import Escalation
from podfit.apiserver.admission.limits import LimitRanger
from podfit.apiserver.admission.namespace import NamespaceLifecycle
from podfit.apiserver.admission.node import NodeDeclaredFeatures, PodResizeValidator
from podfit.apiserver.admission.node_restriction import NodeRestriction
from podfit.apiserver.admission.pods import DefaultTolerations, PriorityAdmission, ServiceAccountAdmission
from podfit.apiserver.admission.quota import ResourceQuotaAdmission
from podfit.apiserver.context import Context

ORDER = (
    NamespaceLifecycle, LimitRanger, ServiceAccountAdmission, NodeRestriction, PriorityAdmission, DefaultTolerations,
    Escalation, NodeDeclaredFeatures, PodResizeValidator, ResourceQuotaAdmission,
)  # fmt: skip


def default_chain(context: Context) -> Chain:
    return Chain(tuple(plugin(context) for plugin in ORDER))
