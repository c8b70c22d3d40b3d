"""Required fields of the schemas.

Upstream derives that from its sources: a field without `omitempty` that is not marked as optional. Here it follows from
what a Struct writes when nothing is given, and two tables name the fields for which that is not so.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.api.meta.base import Object, Struct

_OF_EVERY_OBJECT = ("kind", "apiVersion")
_ALSO: Mapping[str, tuple[str, ...]] = {
    "admissionregistration.v1.MutatingWebhook": ("clientConfig",),
    "admissionregistration.v1.ValidatingWebhook": ("clientConfig",),
    "apps.v1.DaemonSetSpec": ("template",),
    "apps.v1.DeploymentSpec": ("template",),
    "apps.v1.StatefulSetSpec": ("template",),
    "authentication.v1.TokenReview": ("spec",),
    "authentication.v1.TokenReviewSpec": ("token",),
    "authorization.v1.LocalSubjectAccessReview": ("spec",),
    "authorization.v1.SelfSubjectAccessReview": ("spec",),
    "authorization.v1.SelfSubjectRulesReview": ("spec",),
    "authorization.v1.SubjectAccessReview": ("spec",),
    "autoscaling.v1.HorizontalPodAutoscaler": ("spec",),
    "autoscaling.v1.HorizontalPodAutoscalerSpec": ("scaleTargetRef",),
    "autoscaling.v2.ContainerResourceMetricSource": ("target",),
    "autoscaling.v2.ContainerResourceMetricStatus": ("current",),
    "autoscaling.v2.ExternalMetricSource": ("metric", "target"),
    "autoscaling.v2.ExternalMetricStatus": ("current", "metric"),
    "autoscaling.v2.HorizontalPodAutoscaler": ("spec",),
    "autoscaling.v2.HorizontalPodAutoscalerSpec": ("scaleTargetRef",),
    "autoscaling.v2.ObjectMetricSource": ("describedObject", "metric", "target"),
    "autoscaling.v2.ObjectMetricStatus": ("current", "describedObject", "metric"),
    "autoscaling.v2.PodsMetricSource": ("metric", "target"),
    "autoscaling.v2.PodsMetricStatus": ("current", "metric"),
    "autoscaling.v2.ResourceMetricSource": ("target",),
    "autoscaling.v2.ResourceMetricStatus": ("current",),
    "batch.v1.CronJob": ("spec",),
    "batch.v1.CronJobSpec": ("jobTemplate",),
    "batch.v1.JobSpec": ("template",),
    "certificates.v1.CertificateSigningRequest": ("spec",),
    "core.v1.Binding": ("target",),
    "core.v1.CephFSPersistentVolumeSource": ("monitors",),
    "core.v1.CephFSVolumeSource": ("monitors",),
    "core.v1.Event": ("involvedObject", "metadata"),
    "core.v1.NodeAllocatableResourceClaimStatus": ("resources",),
    "core.v1.NodeSelector": ("nodeSelectorTerms",),
    "core.v1.PersistentVolumeClaimTemplate": ("spec",),
    "core.v1.PodExtendedResourceClaimStatus": ("requestMappings",),
    "core.v1.PodSpec": ("containers",),
    "core.v1.PreferredSchedulingTerm": ("preference",),
    "core.v1.RBDPersistentVolumeSource": ("monitors",),
    "core.v1.RBDVolumeSource": ("monitors",),
    "core.v1.ScaleIOVolumeSource": ("secretRef",),
    "core.v1.TopologySelectorLabelRequirement": ("values",),
    "core.v1.WeightedPodAffinityTerm": ("podAffinityTerm",),
    "discovery.v1.Endpoint": ("addresses",),
    "events.v1.Event": ("eventTime",),
    "events.v1.EventSeries": ("lastObservedTime",),
    "networking.v1.HTTPIngressPath": ("backend",),
    "networking.v1.HTTPIngressRuleValue": ("paths",),
    "rbac.v1.ClusterRoleBinding": ("roleRef",),
    "rbac.v1.PolicyRule": ("verbs",),
    "rbac.v1.RoleBinding": ("roleRef",),
    "storage.v1.CSIDriver": ("spec",),
    "storage.v1.CSINode": ("spec",),
    "apiextensions.v1.CustomResourceDefinition": ("spec",),
    "apiextensions.v1.CustomResourceDefinitionSpec": ("names",),
    "meta.v1.Condition": ("lastTransitionTime",),
}
"""Required although nothing is written for them: values that are Structs, lists, times."""
_NOT: Mapping[str, tuple[str, ...]] = {
    "apps.v1.ControllerRevision": ("data",),
    "apps.v1.StatefulSetOrdinals": ("start",),
    "apps.v1.StatefulSetSpec": ("serviceName",),
    "apps.v1.StatefulSetStatus": ("availableReplicas",),
    "autoscaling.v2.HorizontalPodAutoscalerStatus": ("currentMetrics",),
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": ("status",),
    "core.v1.AzureFilePersistentVolumeSource": ("secretNamespace",),
    "core.v1.Event": ("reportingComponent", "reportingInstance"),
    "core.v1.ServicePort": ("targetPort",),
    "core.v1.TypedLocalObjectReference": ("apiGroup",),
    "core.v1.TypedObjectReference": ("apiGroup",),
    "discovery.v1.EndpointSlice": ("endpoints", "ports"),
    "policy.v1.PodDisruptionBudgetStatus": ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    "rbac.v1.ClusterRole": ("rules",),
    "rbac.v1.Role": ("rules",),
    "storage.v1.CSINodeDriver": ("topologyKeys",),
    "apiextensions.v1.CustomResourceDefinitionStatus": ("conditions", "storedVersions"),
}
"""Written always, and not required."""


def required(kind: type[Struct], name: str, written: Mapping[str, Any], times: frozenset[str]) -> list[str]:
    """What is required of the schema `name`, in the order of its fields. `written` is the Struct with nothing given, as
    JSON; the fields that hold `times` are written and not required."""
    short = ".".join(name.split(".")[-3:])
    also, never = _ALSO.get(short, ()), {*_NOT.get(short, ()), *times}
    if issubclass(kind, Object):
        never.update(_OF_EVERY_OBJECT)
    return [
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if field.encode_name in also
        or (
            field.encode_name in written
            and field.encode_name not in never
            and not isinstance(written[field.encode_name], dict)
        )
    ]
