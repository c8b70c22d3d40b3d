"""Defaults of every served kind, with inputs that are in no recording: a value by its path, None where there is none.

Known from upstream's `SetDefaults_*` functions of each group, and from distribution's references for images.
"""

from typing import Any

import pytest

from podfit.api.core.v1.pods.volume_defaults import pull_policy
from podfit.api.meta.codec import to_dict
from podfit.api.registry import resources
from support.rules_of_kinds import made

KINDS = {(info.kind, info.home.group): info.type for info in resources() if info.stored}
CONTAINERS = [{"name": "c", "image": "x:1"}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
SELECTOR = {"matchLabels": {"a": "b"}}
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
DIGEST = "sha256:" + "a" * 64


def _pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": CONTAINERS} | spec}


def _container(**members: Any) -> dict[str, Any]:
    return {"spec": {"containers": [CONTAINERS[0] | members]}}


def _volume(**source: Any) -> dict[str, Any]:
    return _pod(volumes=[{"name": "v"} | source])


@pytest.mark.parametrize(
    ("kind", "given", "path", "value"),
    [
        ("Pod", _pod(), "spec.terminationGracePeriodSeconds", 30),
        ("Pod", _pod(terminationGracePeriodSeconds=0), "spec.terminationGracePeriodSeconds", 0),
        ("Pod", _pod(enableServiceLinks=False), "spec.enableServiceLinks", False),
        ("Pod", _pod(serviceAccount="old"), "spec.serviceAccountName", "old"),
        ("Pod", _pod(serviceAccount="old", serviceAccountName="new"), "spec.serviceAccount", "new"),
        ("Pod", _pod(hostNetwork=True, initContainers=CONTAINERS), "spec.initContainers.0.ports", None),
        ("Pod", _container(ports=[{"containerPort": 1}]), "spec.containers.0.ports.0.hostPort", None),
        ("Pod", _container(ports=[{"containerPort": 1}]), "spec.containers.0.ports.0.protocol", "TCP"),
        ("Pod", _container(livenessProbe={"grpc": {"port": 1}}), "spec.containers.0.livenessProbe.grpc.service", ""),
        ("Pod", _container(startupProbe={"periodSeconds": 3}), "spec.containers.0.startupProbe.failureThreshold", 3),
        (
            "Pod",
            _container(lifecycle={"preStop": {"httpGet": {"port": 1}}}),
            "spec.containers.0.lifecycle.preStop.httpGet.scheme",
            "HTTP",
        ),
        ("Pod", _container(resources={"limits": {"cpu": "0.0001"}}), "spec.containers.0.resources.requests.cpu", "1m"),
        (
            "Pod",
            _container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]),
            "spec.containers.0.env.0.valueFrom.resourceFieldRef.divisor",
            "0",
        ),
        ("Pod", _volume(), "spec.volumes.0.emptyDir", {}),
        ("Pod", _volume(hostPath={"path": "/x"}), "spec.volumes.0.hostPath.type", ""),
        ("Pod", _volume(secret={"secretName": "s"}), "spec.volumes.0.secret.defaultMode", 420),
        ("Pod", _volume(rbd={"monitors": ["m"], "image": "i"}), "spec.volumes.0.rbd.user", "admin"),
        ("Pod", _volume(iscsi={"targetPortal": "p"}), "spec.volumes.0.iscsi.iscsiInterface", "default"),
        ("Pod", _volume(azureDisk={"diskName": "n"}), "spec.volumes.0.azureDisk.kind", "Shared"),
        ("Pod", _volume(image={"reference": f"x@{DIGEST}"}), "spec.volumes.0.image.pullPolicy", "IfNotPresent"),
        (
            "Pod",
            _volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
            "spec.volumes.0.projected.sources.0.serviceAccountToken.expirationSeconds",
            3600,
        ),
        ("PodTemplate", {"template": TEMPLATE}, "template.spec.enableServiceLinks", None),
        ("ReplicationController", {"spec": {"template": TEMPLATE}}, "spec.selector.a", "b"),
        ("ReplicationController", {"spec": {"template": TEMPLATE}}, "metadata.labels.a", "b"),
        ("Service", {"spec": {"type": "ExternalName", "externalName": "a.b"}}, "spec.internalTrafficPolicy", None),
        (
            "Service",
            {"spec": {"sessionAffinity": "ClientIP"}},
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            10800,
        ),
        ("Service", {"spec": {"sessionAffinityConfig": {"clientIP": {}}}}, "spec.sessionAffinityConfig", None),
        ("Service", {"spec": {"externalIPs": ["1.2.3.4"]}}, "spec.externalTrafficPolicy", "Cluster"),
        ("Service", {"spec": {"type": "LoadBalancer"}}, "spec.allocateLoadBalancerNodePorts", True),
        ("Service", {"spec": {"ports": [{"port": 7, "targetPort": ""}]}}, "spec.ports.0.targetPort", 7),
        ("EndpointSlice", {"addressType": "IPv4", "ports": [{"port": 1}]}, "ports.0.name", ""),
        ("Endpoints", {"subsets": [{"ports": [{"port": 1}]}]}, "subsets.0.ports.0.protocol", "TCP"),
        ("PersistentVolume", {"spec": VOLUME}, "spec.persistentVolumeReclaimPolicy", "Retain"),
        ("PersistentVolume", {"spec": VOLUME | {"scaleIO": {"gateway": "g"}}}, "spec.scaleIO.fsType", "xfs"),
        ("PersistentVolumeClaim", {"spec": {}}, "spec.volumeMode", "Filesystem"),
        ("Secret", {"stringData": {"a": "b"}}, "data.a", "Yg=="),
        ("Node", {"status": {"capacity": {"cpu": "1"}}}, "status.allocatable.cpu", "1"),
        ("Node", {"spec": {"podCIDRs": ["10.0.0.0/24"]}}, "spec.podCIDR", "10.0.0.0/24"),
        (
            "LimitRange",
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": 1}}]}},
            "spec.limits.0.defaultRequest.cpu",
            "1",
        ),
        ("LimitRange", {"spec": {"limits": [{"type": "Container", "min": {"cpu": 1}}]}}, "spec.limits.0.default", None),
        ("LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": 1}}]}}, "spec.limits.0.default", None),
        (
            "Deployment",
            {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
            "spec.strategy.rollingUpdate.maxSurge",
            "25%",
        ),
        ("Deployment", {"spec": {"strategy": {"type": "Recreate"}}}, "spec.strategy.rollingUpdate", None),
        ("Deployment", {"spec": {"replicas": 0}}, "spec.replicas", 0),
        ("DaemonSet", {"spec": {"updateStrategy": {"type": "OnDelete"}}}, "spec.updateStrategy.rollingUpdate", None),
        ("DaemonSet", {"spec": {}}, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1),
        ("StatefulSet", {"spec": {}}, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain"),
        (
            "StatefulSet",
            {"spec": {"volumeClaimTemplates": [{}]}},
            "spec.volumeClaimTemplates.0.status.phase",
            "Pending",
        ),
        ("Job", {"spec": {"template": TEMPLATE}}, "spec.completions", 1),
        ("Job", {"spec": {"parallelism": 2, "template": TEMPLATE}}, "spec.completions", None),
        ("Job", {"spec": {"backoffLimitPerIndex": 1, "template": TEMPLATE}}, "spec.backoffLimit", 2147483647),
        ("Job", {"spec": {"template": TEMPLATE}}, "metadata.labels.a", "b"),
        ("CronJob", {"spec": {"schedule": "@daily"}}, "spec.successfulJobsHistoryLimit", 3),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"maxReplicas": 2, "scaleTargetRef": TARGET}},
            "spec.targetCPUUtilizationPercentage",
            80,
        ),
        ("PriorityClass", {"value": 1}, "preemptionPolicy", "PreemptLowerPriority"),
        (
            "RoleBinding",
            {"roleRef": {"name": "r"}, "subjects": [{"kind": "User"}]},
            "subjects.0.apiGroup",
            "rbac.authorization.k8s.io",
        ),
        ("ClusterRoleBinding", {"subjects": [{"kind": "ServiceAccount"}]}, "subjects.0.apiGroup", None),
        ("ValidatingWebhookConfiguration", {"webhooks": [{"name": "a"}]}, "webhooks.0.timeoutSeconds", 10),
        ("MutatingWebhookConfiguration", {"webhooks": [{"rules": [{}]}]}, "webhooks.0.rules.0.scope", "*"),
        ("CustomResourceDefinition", {"spec": {"names": {"kind": "Foo"}}}, "spec.names.listKind", "FooList"),
        ("APIService", {"spec": {"service": {"name": "s"}}}, "spec.service.port", 443),
        ("NetworkPolicy", {"spec": {"egress": [{"ports": [{}]}]}}, "spec.egress.0.ports.0.protocol", "TCP"),
        ("NetworkPolicy", {"spec": {"egress": [{}]}}, "spec.policyTypes", ["Ingress", "Egress"]),
        ("IngressClass", {"spec": {"parameters": {"kind": "k"}}}, "spec.parameters.scope", "Cluster"),
        ("StorageClass", {"provisioner": "x"}, "volumeBindingMode", "Immediate"),
        ("CSIDriver", {"spec": {}}, "spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("Namespace", {"metadata": {"generateName": "x"}}, "metadata.labels", None),
    ],
)
def test_defaults(kind: str, given: dict[str, Any], path: str, value: Any) -> None:
    found = next(known for (name, group), known in KINDS.items() if name == kind and group != "events.k8s.io")
    document: Any = to_dict(made({"metadata": {"name": "x"}} | given, found))
    for step in path.split("."):
        document = document[int(step)] if step.isdigit() else document.get(step) if document else None
    assert document == value


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("reg:5000/nginx", "Always"),
        ("reg:5000/a/b:v1", "IfNotPresent"),
        ("localhost/x", "Always"),
        (f"x@{DIGEST}", "IfNotPresent"),
        (f"x:latest@{DIGEST}", "Always"),
        ("NGINX", "IfNotPresent"),
        ("Registry/x", "Always"),
        ("a/B", "IfNotPresent"),
        ("x@sha256:ab", "IfNotPresent"),
        ("nginx:", "IfNotPresent"),
        (" nginx", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
        ("a--b/c__d", "Always"),
        ("a_-b", "IfNotPresent"),
        ("a..b/c", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("x/" + "y" * 250, "IfNotPresent"),
    ],
)
def test_when_an_image_is_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
