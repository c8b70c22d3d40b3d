"""Mirrored endpoint slices: of an Endpoints that somebody wrote for a service without a selector."""

from collections.abc import Iterator, Sequence

from podfit.api.core.v1.services.types import EndpointAddress, Endpoints, EndpointSubset, Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from podfit.api.meta.owners import reference_to
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation.addresses import family, without_zeros
from podfit.decide.workload.services.packing import (
    MANAGED,
    Changes,
    Desired,
    Pattern,
    identity,
    in_order,
    pack,
    reusing,
)
from podfit.decide.workload.services.pods import IPV4, TRIGGERED

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIPPED = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
MOST = 1000
"""Addresses of a subset that are mirrored."""
_NOT_COPIED = (TRIGGERED, "kubectl.kubernetes.io/last-applied-configuration")


def is_mirrored(service: Service | None, endpoints: Endpoints | None) -> bool:
    """Not those of a controller, nor such as only hold who leads."""
    if service is None or service.spec.selector or endpoints is None:
        return False
    meta = endpoints.metadata
    return meta.labels.get(SKIPPED) != "true" and LEADER not in meta.annotations and not meta.deletion_timestamp


def changes(endpoints: Endpoints, known: Sequence[EndpointSlice]) -> Changes:
    """`known` are the slices of this name that the mirroring controller made."""
    desired: dict[str, Desired] = {}
    for subset in endpoints.subsets:
        ports = in_order(
            EndpointPort(
                name=port.name, port=port.port or None, protocol=port.protocol or None, app_protocol=port.app_protocol
            )
            for port in subset.ports
        )
        for address, ready in _addresses(subset):
            endpoint = _endpoint(address, ready=ready)
            of_family = desired.setdefault(family(without_zeros(address.ip)), {})
            of_family.setdefault(ports, {})[identity(endpoint)] = endpoint
    made, pattern = Changes(), _pattern(endpoints)
    wanted = tuple(desired) or (IPV4,)
    for address_type in wanted:
        pack(pattern, address_type, desired.get(address_type, {}), known, made)
    made.delete += [endpoint_slice for endpoint_slice in known if endpoint_slice.address_type not in wanted]
    return reusing(pattern, made)


def passed_over(endpoints: Endpoints) -> int:
    """How many addresses are not mirrored, since their subset has more than MOST."""
    sizes = (len(subset.addresses) + len(subset.not_ready_addresses) for subset in endpoints.subsets)
    return sum(max(0, size - MOST) for size in sizes)


def _addresses(subset: EndpointSubset) -> Iterator[tuple[EndpointAddress, bool]]:
    """Addresses with whether they are ready; those come first."""
    ready = [(address, True) for address in subset.addresses]
    others = [(address, False) for address in subset.not_ready_addresses]
    yield from [*ready, *others][:MOST]


def _endpoint(address: EndpointAddress, *, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=(address.ip,),
        conditions=EndpointConditions(ready=ready),
        target_ref=address.target_ref,
        node_name=address.node_name,
        hostname=address.hostname or None,
    )


def _pattern(endpoints: Endpoints) -> Pattern:
    meta = endpoints.metadata
    return Pattern(
        ObjectMeta(
            generate_name=f"{meta.name}-",
            namespace=meta.namespace,
            labels={**meta.labels, SERVICE_NAME_LABEL: meta.name, MANAGED: MANAGER},
            annotations={key: value for key, value in meta.annotations.items() if key not in _NOT_COPIED},
            owner_references=(reference_to(endpoints),),
        ),
        annotated=True,
    )
