"""Quota usage of an object, kind by kind.

Every kind has an evaluator: which of a quota's names are about it, and how much of each an object uses. Pods, services
and claims use more than their number; of all other kinds objects are counted, as `count/<resource>.<group>` and, for
five old ones, by the bare name of the resource.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import class_of
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, HUGEPAGES, MEMORY, is_extended, is_native, maximum
from podfit.core.times import parse_time, seconds_later
from podfit.decide.pod.burst_ceiling import at_ceiling
from podfit.decide.pod.requests import pod_limits, pod_requests

ONE = Quantity.of(1)
COUNT = "count/"
BARE = frozenset(("configmaps", "replicationcontrollers", "resourcequotas", "secrets"))
"""Resources that are counted by their bare name, too. Pods, services and claims have rules of their own."""
UNCOUNTED = frozenset((("events", ""), ("events", "events.k8s.io"), ("bindings", ""), ("componentstatuses", "")))

_EPHEMERAL = "ephemeral-storage"
_COMPUTE = (CPU, MEMORY, _EPHEMERAL)
_POD_NAMES = frozenset(
    ("count/pods", "pods", *(f"{side}{name}" for name in _COMPUTE for side in ("", "requests.", "limits.")))
)
_SERVICE_NAMES = frozenset(("count/services", "services", "services.nodeports", "services.loadbalancers"))
_CLAIM_NAMES = frozenset(("count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"))
_CLASS = ".storageclass.storage.k8s.io/"
_CLASS_NAMES = (f"{_CLASS}requests.storage", f"{_CLASS}persistentvolumeclaims")


class Evaluator(msgspec.Struct, frozen=True):
    resource: str
    group: str
    about: Callable[[str], bool]  # whether a name of a quota is about this kind
    usage: Callable[[Any, FeatureGates, datetime | None], dict[str, Quantity]]
    whole: bool = True  # whether an object has to be read to be counted


def count_name(resource: str, group: str) -> str:
    return f"{COUNT}{resource}.{group}" if group else f"{COUNT}{resource}"


def evaluator(resource: str, group: str) -> Evaluator | None:
    """None for a kind that no quota counts."""
    if (resource, group) in UNCOUNTED:
        return None
    if not group and resource in _OWN_RULES:
        return _OWN_RULES[resource]
    names = {count_name(resource, group), *((resource,) if not group and resource in BARE else ())}
    return Evaluator(resource, group, names.__contains__, lambda *_: dict.fromkeys(names, ONE), whole=False)


def of_name(name: str) -> tuple[str, str] | None:
    """The resource and group of which a quota's name limits something; None when it is not known from the name."""
    if name.startswith(COUNT):
        resource, _, group = name.removeprefix(COUNT).partition(".")
        return resource, group
    if name in BARE:
        return name, ""
    return next(((rule.resource, rule.group) for rule in _OWN_RULES.values() if rule.about(name)), None)


def pod_usage(pod: Pod, gates: FeatureGates = DEFAULT_GATES, now: datetime | None = None) -> dict[str, Quantity]:
    """What a pod is charged, under every name that a quota may limit.

    A finished pod is charged as an object only, and so is one whose grace ran out (with `now`). One with a burst
    ceiling is charged for that: it may have it at any moment.
    """
    usage = {"count/pods": ONE}
    if has_ended(pod) or _overdue(pod, now):
        return usage
    gates = FeatureGates({**gates.overrides, "InPlacePodLevelResourcesVerticalScaling": False})
    requests, limits = pod_requests(pod, gates=gates, use_status=True), pod_limits(pod, gates=gates, use_status=True)
    if (raised := at_ceiling(pod, gates)) is not pod:
        requests = maximum(requests, pod_requests(raised, gates=gates))
        limits = maximum(limits, pod_limits(raised, gates=gates))
    return usage | {"pods": ONE} | compute_usage(requests, limits)


def _overdue(pod: Pod, now: datetime | None) -> bool:
    meta = pod.metadata
    if now is None or meta.deletion_timestamp is None:
        return False
    return now > seconds_later(parse_time(meta.deletion_timestamp), meta.deletion_grace_period_seconds or 0)


def compute_usage(requests: ResourceList, limits: ResourceList) -> dict[str, Quantity]:
    usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGEPAGES):
            usage[name] = usage[f"requests.{name}"] = amount
        elif is_extended(name):
            usage[f"requests.{name}"] = amount
    return usage | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def _about_pods(name: str) -> bool:
    extended = name.startswith("requests.") and not is_native(name)
    return name in _POD_NAMES or name.startswith((HUGEPAGES, f"requests.{HUGEPAGES}")) or extended


def _service_usage(service: Service, _gates: FeatureGates, _now: datetime | None) -> dict[str, Quantity]:
    spec = service.spec
    node_ports = 0
    if spec.type == "NodePort" or (spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is not False):
        node_ports = len(spec.ports)
    elif spec.type == "LoadBalancer":
        node_ports = sum(1 for port in spec.ports if port.node_port)
    balancers = ONE if spec.type == "LoadBalancer" else ZERO
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": Quantity.of(node_ports),
        "services.loadbalancers": balancers,
    }


def _claim_usage(claim: PersistentVolumeClaim, _gates: FeatureGates, _now: datetime | None) -> dict[str, Quantity]:
    usage = {"count/persistentvolumeclaims": ONE, "persistentvolumeclaims": ONE}
    storage = claim.spec.resources.requests.get("storage")
    if storage is not None:
        allocated = claim.status.allocated_resources.get("storage")
        storage = usage["requests.storage"] = _whole_bytes(max(storage, allocated) if allocated else storage)
    if name := class_of(claim):
        usage[f"{name}{_CLASS}persistentvolumeclaims"] = ONE
        if storage is not None:
            usage[f"{name}{_CLASS}requests.storage"] = storage
    return usage


def _whole_bytes(amount: Quantity) -> Quantity:
    return amount if amount.is_integer() else Quantity.of(amount.value())


PODS = Evaluator("pods", "", _about_pods, pod_usage)
_OWN_RULES = {
    rules.resource: rules
    for rules in (
        PODS,
        Evaluator("services", "", _SERVICE_NAMES.__contains__, _service_usage),
        Evaluator(
            "persistentvolumeclaims", "", lambda name: name in _CLAIM_NAMES or name.endswith(_CLASS_NAMES), _claim_usage
        ),
    )
}
