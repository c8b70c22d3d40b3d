"""Validation of LoadBalancer fields: source ranges (also in an annotation), class, node ports, health checks."""

from podfit.api.core.v1.services.defaults import LOAD_BALANCER
from podfit.api.core.v1.services.types import Service, ServiceSpec
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import network
from podfit.core.fields import FieldError, forbidden, invalid, required

_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY = "may only be used when `type` is 'LoadBalancer'"


def validate_load_balancing(service: Service) -> list[FieldError]:
    spec = service.spec
    balanced = spec.type == LOAD_BALANCER
    errors = []
    path = "spec.LoadBalancerSourceRanges"
    if spec.load_balancer_source_ranges and not balanced:
        errors.append(forbidden(path, _ONLY))
    for index, text in enumerate(spec.load_balancer_source_ranges):
        errors += network(text.strip(), f"{path}[{index}]")
    annotated = service.metadata.annotations.get(_RANGES_ANNOTATION)
    if annotated is not None and not spec.load_balancer_source_ranges:
        errors += _annotated_ranges(annotated, balanced=balanced)
    given = spec.allocate_load_balancer_node_ports is not None
    if given and not balanced:
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY))
    elif balanced and not given:
        errors.append(required("allocateLoadBalancerNodePorts"))
    return errors + load_balancer_class(spec)


def _annotated_ranges(text: str, *, balanced: bool) -> list[FieldError]:
    path = f"metadata.annotations[{_RANGES_ANNOTATION}]"
    errors = [] if balanced else [forbidden(path, _ONLY)]
    for cidr in text.strip().split(",") if text.strip() else ():
        errors += network(cidr.strip(), path)
    return errors


def load_balancer_class(spec: ServiceSpec) -> list[FieldError]:
    if spec.load_balancer_class is None:
        return []
    if spec.type != LOAD_BALANCER:
        return [forbidden("spec.loadBalancerClass", _ONLY)]
    wrong = names.qualified(spec.load_balancer_class)
    return [invalid("spec.loadBalancerClass", spec.load_balancer_class, text) for text in wrong]
