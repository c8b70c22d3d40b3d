"""The kinds of the core group."""

from typing import Any

from podfit.api.core.v1.component_status import HEALTHY, ComponentStatus
from podfit.api.core.v1.config.types import ConfigMap, Secret, ServiceAccount
from podfit.api.core.v1.events.columns import EVENT, event_row
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.columns import NODE, node_row
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.columns import CLAIM, VOLUME, claim_row, volume_row
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.columns import POD, pod_row, pod_row_conditions
from podfit.api.core.v1.pods.templates import PodTemplate
from podfit.api.core.v1.pods.types import Binding, Pod
from podfit.api.core.v1.replication.columns import POD_TEMPLATE, REPLICAS, pod_template_row, replication_row
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.columns import ENDPOINTS, SERVICE, endpoints_row, service_row
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.kinds.policy import EVICTION
from podfit.api.kinds.scale import SCALE
from podfit.api.meta.columns import AGE, DATED, NAME, NAMED, age, dated_row, name_of, named_row
from podfit.api.meta.resource_info import STATUS, Column, ResourceInfo, Subresource
from podfit.core.quantity import ZERO

CONFIG_MAP = (NAME, Column("Data", description="How many entries it has."), AGE)


def config_map_row(config: ConfigMap, now: str) -> list[Any]:
    return [name_of(config), len(config.data) + len(config.binary_data), age(config, now)]


SECRET = (
    NAME,
    Column("Type", description="What the secret is for."),
    Column("Data", description="How many entries it has."),
    AGE,
)


def secret_row(secret: Secret, now: str) -> list[Any]:
    return [name_of(secret), secret.type, len(secret.data), age(secret, now)]


NAMESPACE = (NAME, Column("Status", description="Active, or Terminating while its contents are deleted."), AGE)


def namespace_row(namespace: Namespace, now: str) -> list[Any]:
    return [name_of(namespace), namespace.status.phase, age(namespace, now)]


QUOTA = (
    NAME,
    Column("Request", description="Used and allowed, of everything but limits."),
    Column("Limit", description="Used and allowed, of limits."),
    AGE,
)


def quota_row(quota: ResourceQuota, now: str) -> list[Any]:
    status = quota.status
    cells = {name: f"{name}: {status.used.get(name, ZERO)}/{hard}" for name, hard in sorted(status.hard.items())}
    limits = [text for name, text in cells.items() if name.startswith("limits.")]
    requests = [text for name, text in cells.items() if not name.startswith("limits.")]
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


COMPONENT = (
    NAME,
    Column("Status", description="Healthy, Unhealthy, or Unknown."),
    Column("Message", description="What it says of itself, or why it does not."),
    Column("Error", description="Why it could not be asked."),
)


def component_row(component: ComponentStatus, now: str) -> list[Any]:
    health = next((condition for condition in component.conditions if condition.type == HEALTHY), None)
    if health is None:
        return [name_of(component), "Unknown", "", ""]
    status = "Healthy" if health.status == "True" else "Unhealthy"
    return [name_of(component), status, health.message, health.error]


PROXIED = ("create", "delete", "get", "patch", "update")

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(type=Binding, resource="bindings", singular="binding", verbs=("create",)),
    ResourceInfo(
        type=ComponentStatus,
        resource="componentstatuses",
        singular="componentstatus",
        short_names=("cs",),
        namespaced=False,
        verbs=("get", "list"),
        columns=COMPONENT,
        row=component_row,
        warning="v1 ComponentStatus is deprecated in v1.19+",
    ),
    ResourceInfo(
        type=Namespace,
        resource="namespaces",
        singular="namespace",
        short_names=("ns",),
        namespaced=False,
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        subresources=(Subresource("finalize", ("update",)), STATUS),
        columns=NAMESPACE,
        row=namespace_row,
        fields={"status.phase": lambda o: o.status.phase},
    ),
    ResourceInfo(
        type=Node,
        resource="nodes",
        upstream_key="minions",
        singular="node",
        short_names=("no",),
        namespaced=False,
        subresources=(Subresource("proxy", PROXIED, "NodeProxyOptions"), STATUS),
        columns=NODE,
        row=node_row,
        fields={"spec.unschedulable": lambda o: str(o.spec.unschedulable).lower()},
    ),
    ResourceInfo(
        type=Pod,
        resource="pods",
        singular="pod",
        short_names=("po",),
        categories=("all",),
        columns=POD,
        row=pod_row,
        row_conditions=pod_row_conditions,
        subresources=(
            Subresource("binding", ("create",), "Binding"),
            Subresource("ephemeralcontainers"),
            EVICTION,
            Subresource("log", ("get",)),
            Subresource("attach", ("create", "get"), "PodAttachOptions"),
            Subresource("exec", ("create", "get"), "PodExecOptions"),
            Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
            Subresource("proxy", PROXIED, "PodProxyOptions"),
            Subresource("resize"),
            STATUS,
        ),
        fields={
            "spec.nodeName": lambda o: o.spec.node_name,
            "spec.restartPolicy": lambda o: o.spec.restart_policy,
            "spec.schedulerName": lambda o: o.spec.scheduler_name,
            "spec.serviceAccountName": lambda o: o.spec.service_account_name,
            "spec.hostNetwork": lambda o: str(o.spec.host_network).lower(),
            "status.phase": lambda o: o.status.phase,
            "spec.host": lambda o: o.spec.node_name,  # as it was called once
            "status.podIP": lambda o: o.status.pod_ip,
            "status.podIPs": lambda _: "",  # taken, but no pod has it
            "status.nominatedNodeName": lambda o: o.status.nominated_node_name,
        },
    ),
    ResourceInfo(
        type=Event,
        created_by_update=True,
        resource="events",
        singular="event",
        short_names=("ev",),
        columns=EVENT,
        row=event_row,
        fields={
            "involvedObject.kind": lambda o: o.involved_object.kind,
            "involvedObject.namespace": lambda o: o.involved_object.namespace,
            "involvedObject.name": lambda o: o.involved_object.name,
            "involvedObject.uid": lambda o: o.involved_object.uid,
            "involvedObject.apiVersion": lambda o: o.involved_object.api_version,
            "involvedObject.resourceVersion": lambda o: o.involved_object.resource_version,
            "involvedObject.fieldPath": lambda o: o.involved_object.field_path,
            "reason": lambda o: o.reason,
            "reportingComponent": lambda o: o.reporting_component,
            "source": lambda o: o.source.component or o.reporting_component,
            "type": lambda o: o.type,
        },
    ),
    ResourceInfo(
        type=ServiceAccount,
        resource="serviceaccounts",
        singular="serviceaccount",
        short_names=("sa",),
        columns=NAMED,
        row=named_row,
        subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),),
    ),
    ResourceInfo(
        type=ConfigMap,
        resource="configmaps",
        singular="configmap",
        short_names=("cm",),
        columns=CONFIG_MAP,
        row=config_map_row,
    ),
    ResourceInfo(
        type=Secret,
        resource="secrets",
        singular="secret",
        columns=SECRET,
        row=secret_row,
        fields={"type": lambda o: o.type},
    ),
    ResourceInfo(
        type=PodTemplate,
        resource="podtemplates",
        singular="podtemplate",
        counted=lambda o: o.template,
        columns=POD_TEMPLATE,
        row=pod_template_row,
    ),
    ResourceInfo(
        type=ReplicationController,
        resource="replicationcontrollers",
        upstream_key="controllers",
        singular="replicationcontroller",
        short_names=("rc",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        propagation="Orphan",
        counted=lambda o: o.spec,
        columns=REPLICAS,
        row=replication_row,
        fields={"status.replicas": lambda o: str(o.status.replicas)},
    ),
    ResourceInfo(
        type=LimitRange,
        created_by_update=True,
        resource="limitranges",
        singular="limitrange",
        short_names=("limits",),
        columns=DATED,
        row=dated_row,
    ),
    ResourceInfo(
        type=ResourceQuota,
        resource="resourcequotas",
        singular="resourcequota",
        short_names=("quota",),
        subresources=(STATUS,),
        columns=QUOTA,
        row=quota_row,
    ),
    ResourceInfo(
        type=Service,
        created_by_update=True,
        resource="services",
        upstream_key="services/specs",
        singular="service",
        short_names=("svc",),
        categories=("all",),
        subresources=(Subresource("proxy", PROXIED, "ServiceProxyOptions"), STATUS),
        columns=SERVICE,
        row=service_row,
        fields={"spec.clusterIP": lambda o: o.spec.cluster_ip, "spec.type": lambda o: o.spec.type},
    ),
    ResourceInfo(
        type=Endpoints,
        created_by_update=True,
        warning="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        resource="endpoints",
        upstream_key="services/endpoints",
        singular="endpoints",
        short_names=("ep",),
        columns=ENDPOINTS,
        row=endpoints_row,
    ),
    ResourceInfo(
        type=PersistentVolumeClaim,
        resource="persistentvolumeclaims",
        singular="persistentvolumeclaim",
        short_names=("pvc",),
        subresources=(STATUS,),
        columns=CLAIM,
        row=claim_row,
    ),
    ResourceInfo(
        type=PersistentVolume,
        resource="persistentvolumes",
        singular="persistentvolume",
        short_names=("pv",),
        namespaced=False,
        subresources=(STATUS,),
        columns=VOLUME,
        row=volume_row,
    ),
)
