"""Pods behind a service: their addresses, ports and readiness."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from podfit.api.core.v1.pods.aggregate import lasting_containers
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.references import ObjectReference
from podfit.api.core.v1.services.types import Service, ServicePort
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.times import parse_time
from podfit.decide.workload.pods import condition, is_ready

HEADLESS = "service.kubernetes.io/headless"
TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
"""The annotation that says since when what is written could have been."""
IPV4, IPV6 = "IPv4", "IPv6"


class Port(msgspec.Struct, frozen=True):
    name: str
    number: int
    protocol: str
    app_protocol: str | None = None


def selects(service: Service, meta: ObjectMeta) -> bool:
    selector = service.spec.selector
    return bool(selector) and selector.items() <= meta.labels.items()


def is_headless(service: Service) -> bool:
    """Without an address of its own."""
    return service.spec.cluster_ip in ("", "None")


def families(service: Service) -> tuple[str, ...]:
    """Its families of IP addresses, the first being the main one."""
    if service.spec.ip_families:
        return service.spec.ip_families
    return (IPV6 if ":" in service.spec.cluster_ip else IPV4,)


def address_of(pod: Pod, family: str) -> str:
    """Empty when it has none of that family."""
    known = [ip.ip for ip in pod.status.pod_ips] or [pod.status.pod_ip]
    return next((ip for ip in known if ip and (":" in ip) == (family == IPV6)), "")


def counts(pod: Pod, *, terminating: bool) -> bool:
    """Whether it may be behind a service at all; `terminating`: those that are going as well."""
    if has_ended(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or not pod.metadata.deletion_timestamp


def is_served(service: Service, pod: Pod) -> bool:
    return service.spec.publish_not_ready_addresses or is_ready(pod)


def hostname_of(service: Service, pod: Pod) -> str:
    """The name that the pod has in the service's domain."""
    same = pod.spec.subdomain == service.metadata.name and pod.metadata.namespace == service.metadata.namespace
    return pod.spec.hostname if same else ""


def reference_of(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)


def ports_of(service: Service, pod: Pod) -> tuple[Port, ...]:
    """Those of the service's ports that the pod has."""
    found = ((port, number_of(port, pod)) for port in service.spec.ports)
    return tuple(
        Port(port.name, number, port.protocol, port.app_protocol) for port, number in found if number is not None
    )


def number_of(port: ServicePort, pod: Pod) -> int | None:
    """The number of the pod's port. A name is that of a port of one of its containers, of the same protocol; of
    sidecars, too."""
    if isinstance(port.target_port, int):
        return port.target_port or port.port
    for container in lasting_containers(pod.spec):
        for known in container.ports:
            if (known.name, known.protocol) == (port.target_port, port.protocol):
                return known.container_port
    return None


def differs(old: Pod, new: Pod) -> bool:
    """Whether a change of the pod can change what services say of it."""
    return _facts(old) != _facts(new)


def _facts(pod: Pod) -> object:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    names = meta.labels, bool(meta.deletion_timestamp), spec.node_name, spec.hostname, spec.subdomain
    return names, status.phase, status.pod_ip, status.pod_ips, is_ready(pod)


class Triggers(msgspec.Struct, frozen=True):
    """When a service was made, and when each of its pods, by name, last became ready or unready."""

    service: datetime | None = None
    pods: dict[str, datetime] = {}


def triggered(service: Service, pods: Iterable[Pod], before: Triggers) -> tuple[Triggers, datetime | None]:
    """What is known now, and the earliest change since `before`; None when nothing changed its time."""
    made = service.metadata.creation_timestamp
    now = Triggers(parse_time(made) if made else None, dict(_turns(pods)))
    changed = [when for name, when in now.pods.items() if name not in before.pods or when > before.pods[name]]
    if now.service is not None and (before.service is None or now.service > before.service):
        changed.append(now.service)
    return now, min(changed, default=None)


def _turns(pods: Iterable[Pod]) -> Iterable[tuple[str, datetime]]:
    for pod in pods:
        found = condition(pod, "Ready")
        if found is not None and found.last_transition_time:
            yield pod.metadata.name, parse_time(found.last_transition_time)


def with_trigger(annotations: dict[str, str], when: str) -> dict[str, str]:
    """`when` is empty where no change had a time."""
    kept = {key: value for key, value in annotations.items() if key != TRIGGERED}
    return {**kept, TRIGGERED: when} if when else kept
