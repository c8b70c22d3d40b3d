"""Builds the admission chain in upstream's order; for a resize, in that of `decide.resize.checks`."""

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.admission.certificates import CertificateAdmission
from podfit.apiserver.admission.chain import AdmissionChain, Plugin, Sort, Turns
from podfit.apiserver.admission.escalation import Escalation
from podfit.apiserver.admission.limits import LimitRanger
from podfit.apiserver.admission.namespace import NamespaceLifecycle
from podfit.apiserver.admission.networking import DefaultIngressClass
from podfit.apiserver.admission.node_restriction import NodeRestriction
from podfit.apiserver.admission.node_taints import TaintNodesByCondition
from podfit.apiserver.admission.pod_resize import NodeDeclaredFeatureValidator, resize_turns
from podfit.apiserver.admission.pod_security import PodSecurity
from podfit.apiserver.admission.pods import DefaultTolerations, PodTopologyLabels, PriorityAdmission
from podfit.apiserver.admission.quota import QuotaAdmission
from podfit.apiserver.admission.runtimes import RuntimeClassAdmission
from podfit.apiserver.admission.service_account import ServiceAccountAdmission
from podfit.apiserver.admission.storage import ClaimResize, DefaultStorageClass, StorageInUseProtection
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.webhooks.admission import MutatingWebhooks, ValidatingWebhooks
from podfit.apiserver.extensions.webhooks.client import WebhookClient
from podfit.decide.resize.checks import MUTATING_WEBHOOKS, NODE_RESTRICTION, VALIDATING_WEBHOOKS

BUILT_IN = (
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccountAdmission,
    NodeRestriction,
    TaintNodesByCondition,
    PodSecurity,
    PriorityAdmission,
    DefaultTolerations,
    DefaultStorageClass,
    StorageInUseProtection,
    ClaimResize,
    RuntimeClassAdmission,
    CertificateAdmission,
    DefaultIngressClass,
    PodTopologyLabels,
    Escalation,
    NodeDeclaredFeatureValidator,
)


def default_chain(context: Context, webhooks: WebhookClient) -> AdmissionChain:
    """Quotas come last: a charge is made only for what nobody else refuses."""
    built_in = {plugin: plugin(context) for plugin in BUILT_IN}
    mutating, validating = MutatingWebhooks(context, webhooks), ValidatingWebhooks(context, webhooks)
    named: dict[str, Plugin] = {
        NODE_RESTRICTION: built_in[NodeRestriction],
        MUTATING_WEBHOOKS: mutating,
        VALIDATING_WEBHOOKS: validating,
    }
    turns: dict[Sort, Turns] = {("UPDATE", Pod, "resize"): resize_turns(context, named)}
    return AdmissionChain((*built_in.values(), mutating, validating), QuotaAdmission(context), turns)
