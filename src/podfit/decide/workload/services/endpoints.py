"""The Endpoints of a service: addresses with the same ports together, ready or not, at most a thousand."""

from collections.abc import Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.workload.services.pods import (
    HEADLESS,
    Port,
    address_of,
    counts,
    families,
    hostname_of,
    is_headless,
    is_served,
    ports_of,
    reference_of,
    with_trigger,
)

MANAGER = "endpoint-controller"
MANAGED = "endpoints.kubernetes.io/managed-by"
OVER = "endpoints.kubernetes.io/over-capacity"
MOST = 1000


def subsets_of(service: Service, pods: Sequence[Pod]) -> tuple[EndpointSubset, ...]:
    """Sorted, so that the same pods always give the same."""
    family = families(service)[0]
    ready: dict[tuple[Port, ...], list[EndpointAddress]] = {}
    others: dict[tuple[Port, ...], list[EndpointAddress]] = {}
    for pod in pods:
        counted = counts(pod, terminating=service.spec.publish_not_ready_addresses)
        if not counted or not (ip := address_of(pod, family)):
            continue
        ports = ports_of(service, pod)
        if not ports and (service.spec.ports or not is_headless(service)):
            continue
        address = EndpointAddress(
            ip=ip, hostname=hostname_of(service, pod), node_name=pod.spec.node_name, target_ref=reference_of(pod)
        )
        found = ready if is_served(service, pod) else others
        found.setdefault(tuple(sorted(ports, key=_port_order)), []).append(address)
    keys = sorted({*ready, *others}, key=lambda ports: [_port_order(port) for port in ports])
    return tuple(_subset(ports, ready.get(ports, []), others.get(ports, [])) for ports in keys)


def _subset(
    ports: Sequence[Port], ready: Sequence[EndpointAddress], others: Sequence[EndpointAddress]
) -> EndpointSubset:
    return EndpointSubset(
        addresses=tuple(sorted(ready, key=_address_order)),
        not_ready_addresses=tuple(sorted(others, key=_address_order)),
        ports=tuple(
            EndpointPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
            for port in ports
        ),
    )


def _port_order(port: Port) -> tuple[str, int, str]:
    return port.name, port.number, port.protocol


def _address_order(address: EndpointAddress) -> tuple[int, int, str]:
    ip = ip_address(address.ip)
    return ip.version, int(ip), address.target_ref.uid if address.target_ref is not None else ""


def truncated(subsets: Sequence[EndpointSubset]) -> tuple[EndpointSubset, ...]:
    """A thousand addresses at most, ready ones before others, each subset losing its share."""
    ready = sum(len(subset.addresses) for subset in subsets)
    others = sum(len(subset.not_ready_addresses) for subset in subsets)
    if ready + others <= MOST:
        return tuple(subsets)
    room, rest = min(ready, MOST), max(0, MOST - ready)
    kept = []
    for subset in subsets:
        first = subset.addresses[: room * len(subset.addresses) // ready if ready else 0]
        second = subset.not_ready_addresses[: rest * len(subset.not_ready_addresses) // others if others else 0]
        kept.append(replace(subset, addresses=first, not_ready_addresses=second))
    return tuple(subset for subset in kept if subset.addresses or subset.not_ready_addresses)


def wanted(service: Service, pods: Sequence[Pod], known: Endpoints | None, when: str) -> Endpoints | None:
    """What is to be written; None when nothing differs but its annotations. `when`: since when it could have been."""
    whole = subsets_of(service, pods)
    subsets = truncated(whole)
    labels = {key: value for key, value in service.metadata.labels.items() if key != HEADLESS}
    labels |= {HEADLESS: ""} if is_headless(service) else {}
    labels |= {MANAGED: MANAGER}
    base = known or Endpoints(metadata=ObjectMeta(name=service.metadata.name, namespace=service.metadata.namespace))
    meta = base.metadata
    over = "truncated" if subsets != whole else ""
    if known is not None and (known.subsets, meta.labels, meta.annotations.get(OVER, "")) == (subsets, labels, over):
        return None
    annotations = {key: value for key, value in meta.annotations.items() if key != OVER}
    annotations = with_trigger(annotations | ({OVER: over} if over else {}), when)
    return replace(base, subsets=subsets, metadata=replace(meta, labels=labels, annotations=annotations))
