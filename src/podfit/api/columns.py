"""What `kubectl get` shows of each kind but the pod: columns, and the cells of one object under them."""

from typing import Any

from podfit.api.admissionregistration.v1.types import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.api.core.v1.events.types import Event, EventSource
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import Object
from podfit.api.rbac.v1.types import ClusterRoleBinding, RoleBinding
from podfit.api.registry import Column
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.core.durations import human_duration
from podfit.core.quantity import ZERO
from podfit.core.times import parse_time

NONE, UNKNOWN = "<none>", "<unknown>"
NAME = Column("Name", format="name", description="Name of the object, unique among its kind in its namespace.")
AGE = Column("Age", description="Time since the object was created.")
CREATED = Column("Created At", "date", description="When the object was created.")


def since(moment: str | None, now: str) -> str:
    """The age of a moment; of none, or of a day that no calendar has, nobody knows."""
    try:
        return human_duration((parse_time(now) - parse_time(moment)).total_seconds()) if moment else UNKNOWN
    except ValueError:
        return UNKNOWN


def age(obj: Any, now: str) -> str:
    return since(obj.metadata.creation_timestamp, now)


def wide(name: str, description: str, sort: str = "string") -> Column:
    return Column(name, sort, description=description, priority=1)


NAMED = (NAME, AGE)


def named_row(obj: Object, now: str) -> list[Any]:
    return [_name(obj), age(obj, now)]


def _name(obj: Any) -> str:
    name: str = obj.metadata.name
    return name


NAMESPACE = (NAME, Column("Status", description="Active, or Terminating while its contents are deleted."), AGE)


def namespace_row(namespace: Namespace, now: str) -> list[Any]:
    return [_name(namespace), namespace.status.phase, age(namespace, now)]


NODE = (
    NAME,
    Column("Status", description="Readiness of the node, and whether it takes new pods."),
    Column("Roles", description="Roles from the node's labels."),
    AGE,
    Column("Version", description="Version of the kubelet."),
    wide("Internal-IP", "Address inside the cluster."),
    wide("External-IP", "Address from outside."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Version of the kernel."),
    wide("Container-Runtime", "Container runtime and its version."),
)
_ROLE = "node-role.kubernetes.io/"


def node_row(node: Node, now: str) -> list[Any]:
    status = node.status
    ready = next((each.status for each in reversed(status.conditions) if each.type == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    labels = node.metadata.labels
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    addresses = {each.type: each.address for each in reversed(status.addresses)}
    info = status.node_info
    return [
        _name(node),
        f"{state},SchedulingDisabled" if node.spec.unschedulable else state,
        ",".join(sorted(roles)) or NONE,
        age(node, now),
        info.kubelet_version,
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.os_image or UNKNOWN,
        info.kernel_version or UNKNOWN,
        info.container_runtime_version or UNKNOWN,
    ]


EVENT = (
    Column("Last Seen", description="Time since the event happened last."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="Why, in one word for machines."),
    Column("Object", description="The object that the event is about."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who reports it."),
    Column("Message", description="What happened, for people."),
    wide("First Seen", "Time since the event happened first."),
    wide("Count", "How often it happened."),
    Column("Name", format="name", description="Name of the event.", priority=1),
)


def event_row(event: Event, now: str) -> list[Any]:
    first = since(event.first_timestamp or event.event_time, now)
    last = since(event.last_timestamp, now) if event.last_timestamp else first
    count = event.count or 1
    if event.series is not None:
        last, count = since(event.series.last_observed_time, now), event.series.count
    target = event.involved_object
    return [
        last,
        event.type,
        event.reason,
        f"{target.kind.lower()}/{target.name}" if target.name else target.kind.lower(),
        target.field_path,
        _source(event.source, event),
        event.message.strip(),
        first,
        count,
        _name(event),
    ]


def _source(source: EventSource, event: Event) -> str:
    component, host = source.component or event.reporting_component, source.host or event.reporting_instance
    return f"{component}, {host}" if host else component


CONFIG_MAP = (NAME, Column("Data", description="How many entries it has."), AGE)


def config_map_row(config: ConfigMap, now: str) -> list[Any]:
    return [_name(config), len(config.data) + len(config.binary_data), age(config, now)]


SECRET = (
    NAME,
    Column("Type", description="What the secret is for."),
    Column("Data", description="How many entries it has."),
    AGE,
)


def secret_row(secret: Secret, now: str) -> list[Any]:
    return [_name(secret), secret.type, len(secret.data), age(secret, now)]


DATED = (NAME, CREATED)


def dated_row(obj: Any, _: str) -> list[Any]:
    return [_name(obj), obj.metadata.creation_timestamp]


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
    return [_name(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


LEASE = (NAME, Column("Holder", description="Who holds the lease."), AGE)


def lease_row(lease: Lease, now: str) -> list[Any]:
    return [_name(lease), lease.spec.holder_identity, age(lease, now)]


PRIORITY_CLASS = (
    NAME,
    Column("Value", "integer", description="The priority that pods of this class get."),
    Column("Global-Default", "boolean", description="Whether pods that name no class get it."),
    AGE,
    Column("PreemptionPolicy", description="Whether its pods may displace others."),
)


def priority_class_row(priority: PriorityClass, now: str) -> list[Any]:
    return [_name(priority), priority.value, priority.global_default, age(priority, now), priority.preemption_policy]


BINDING = (
    NAME,
    Column("Role", description="The role that is granted."),
    AGE,
    wide("Users", "Users who get it."),
    wide("Groups", "Groups who get it."),
    wide("ServiceAccounts", "Service accounts that get it."),
)


def binding_row(binding: RoleBinding | ClusterRoleBinding, now: str) -> list[Any]:
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.subjects:
        account = subject.kind == "ServiceAccount"
        by_kind.setdefault(subject.kind, []).append(f"{subject.namespace}/{subject.name}" if account else subject.name)
    ref = binding.role_ref
    subjects = [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(binding), f"{ref.kind}/{ref.name}", age(binding, now), *subjects]


WEBHOOKS = (NAME, Column("Webhooks", "integer", description="How many webhooks are registered here."), AGE)


def webhooks_row(configuration: MutatingWebhookConfiguration | ValidatingWebhookConfiguration, now: str) -> list[Any]:
    return [_name(configuration), len(configuration.webhooks), age(configuration, now)]
