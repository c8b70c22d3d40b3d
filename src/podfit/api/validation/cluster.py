"""Nodes, namespaces, priority classes, leases and events."""

from ipaddress import ip_network

from podfit.api.coordination import Lease
from podfit.api.core.events import Event
from podfit.api.core.namespaces import Namespace
from podfit.api.core.nodes import Node, Taint
from podfit.api.scheduling import PriorityClass
from podfit.api.validation import names
from podfit.api.validation.meta import immutable, nonnegative
from podfit.api.validation.resources import amount
from podfit.api.validation.scheduling import EFFECTS
from podfit.core.fields import FieldError, forbidden, invalid, required, shown, unsupported

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST = 1_000_000_000
_PREEMPTION = ("PreemptLowerPriority", "Never")


def validate_node(node: Node) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints):
        errors += _taint(taint, f"metadata.taints[{index}]", repeated=(taint.key, taint.effect) in seen)
        seen.add((taint.key, taint.effect))
    for name in sorted(node.status.capacity):
        errors += amount(name, node.status.capacity[name], f"status.capacity[{name}]")
    for name in sorted(node.status.allocatable):
        errors += amount(name, node.status.allocatable[name], f"status.allocatable[{name}]")
    for index, cidr in enumerate(node.spec.pod_cidrs):
        errors += _cidr(cidr, f"spec.podCIDRs[{index}]")
    return errors


def _taint(taint: Taint, path: str, *, repeated: bool) -> list[FieldError]:
    errors = [invalid(f"{path}.key", taint.key, text) for text in names.qualified(taint.key)]
    errors += [invalid(f"{path}.value", taint.value, text) for text in names.label_value(taint.value)]
    if not taint.effect:
        errors.append(required(f"{path}.effect"))
    elif taint.effect not in EFFECTS:
        errors.append(unsupported(f"{path}.effect", taint.effect, EFFECTS))
    if repeated:
        value = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": taint.time_added}
        text = "taints must be unique by key and effect pair"
        errors.append(FieldError(path, "Duplicate value", text, shown(value)))
    return errors


def _cidr(text: str, path: str) -> list[FieldError]:
    try:
        ip_network(text)
    except ValueError:
        return [invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def validate_node_update(new: Node, old: Node) -> list[FieldError]:
    errors = validate_node(new)
    if old.spec.pod_cidrs and new.spec.pod_cidrs != old.spec.pod_cidrs:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    return errors


def validate_namespace(namespace: Namespace) -> list[FieldError]:
    errors = []
    for name in namespace.spec.finalizers:
        errors += [invalid("spec.finalizers", name, text) for text in names.qualified(name)]
    return errors


def validate_priority_class(priority: PriorityClass) -> list[FieldError]:
    errors = []
    name = priority.metadata.name
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != priority.value or priority.global_default:
            text = "priority class names with 'system-' prefix are reserved for system use only."
            errors.append(forbidden("metadata.name", f"{text} error: {_unknown(name)}"))
    elif priority.value > _HIGHEST:
        errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    if priority.preemption_policy not in _PREEMPTION:
        errors.append(unsupported("preemptionPolicy", priority.preemption_policy, _PREEMPTION))
    return errors


def _unknown(name: str) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"


def validate_priority_class_update(new: PriorityClass, old: PriorityClass) -> list[FieldError]:
    errors = [] if new.value == old.value else [forbidden("value", "may not be changed in an update.")]
    return errors + immutable(new.preemption_policy, old.preemption_policy, "preemptionPolicy")


def validate_lease(lease: Lease) -> list[FieldError]:
    errors = []
    seconds = lease.spec.lease_duration_seconds
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + nonnegative(lease.spec.lease_transitions, "spec.leaseTransitions")


def validate_event(event: Event) -> list[FieldError]:
    """An event lives beside its object; those of cluster-scoped objects live in `default`."""
    namespace = event.involved_object.namespace
    expected = event.metadata.namespace
    if namespace == expected or (not namespace and expected == "default"):
        return []
    return [invalid("involvedObject.namespace", namespace, "does not match event.namespace")]
