"""Services: what a type allows, which addresses fit their families, what LoadBalancers and updates may not."""

from collections.abc import Collection, Mapping

from podfit.api.core.v1.services.address_validation import (
    HEADLESS,
    ONCE,
    addresses_kept,
    is_headless,
    validate_addresses,
)
from podfit.api.core.v1.services.defaults import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    reachable_from_outside,
)
from podfit.api.core.v1.services.types import (
    LoadBalancerIngress,
    Service,
    ServicePort,
    ServiceSpec,
    SessionAffinityConfig,
)
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address, network, ordinary, parsed
from podfit.api.meta.validation.metadata import validate_labels
from podfit.api.meta.validation.rules import Rules
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported

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


_TYPES = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_LONGEST_AFFINITY = 86400


def needs_health_check(spec: ServiceSpec) -> bool:
    return spec.type == LOAD_BALANCER and spec.external_traffic_policy == "Local"


def validate_service(service: Service, *, known: Collection[str] = ()) -> list[FieldError]:
    """`known` are the external addresses that the stored service has: they stay, whatever they look like."""
    spec = service.spec
    errors = _topology(service.metadata.annotations)
    if not spec.ports and not is_headless(spec) and spec.type != EXTERNAL_NAME:
        errors.append(required("spec.ports"))
    errors += _type_rules(spec) + _ports(spec.ports)
    errors += validate_labels(spec.selector, "spec.selector")
    errors += _affinity(spec) + validate_addresses(service)
    for index, text in enumerate(spec.external_ips):
        path = f"spec.externalIPs[{index}]"
        errors += (address(text, path) if text not in known else []) or ordinary(text, path)
    if spec.type not in _TYPES:
        errors.append(unsupported("spec.type", spec.type, _TYPES) if spec.type else required("spec.type"))
    return errors + _node_ports(spec) + _same_ports(spec.ports) + validate_load_balancing(service) + _traffic(spec)


def _topology(annotations: Mapping[str, str]) -> list[FieldError]:
    hints, mode = annotations.get(_HINTS), annotations.get(_MODE)
    if hints is None or mode is None or hints == mode:
        return []
    text = f"must match annotations[{_HINTS}] when both are specified"
    return [invalid(f"metadata.annotations[{_MODE}]", mode, text)]


def _type_rules(spec: ServiceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.type in (LOAD_BALANCER, NODE_PORT) and is_headless(spec):
        errors.append(invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {spec.type} services"))
    if spec.type == EXTERNAL_NAME:
        errors += _external_name(spec)
    return errors


def _external_name(spec: ServiceSpec) -> list[FieldError]:
    given = (
        ("clusterIPs", spec.cluster_ips),
        ("ipFamilies", spec.ip_families),
        ("ipFamilyPolicy", spec.ip_family_policy),
    )
    text = "may not be set for ExternalName services"
    errors = [forbidden(f"spec.{name}", text) for name, value in given if value]
    name = spec.external_name.removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + [invalid("spec.externalName", name, reason) for reason in names.dns_subdomain(name)]


def _ports(ports: tuple[ServicePort, ...]) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        if port.name:
            errors += [invalid(f"{path}.name", port.name, text) for text in names.dns_label(port.name)]
            if port.name in seen:
                errors.append(duplicate(f"{path}.name", port.name))
            seen.add(port.name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        errors += [invalid(f"{path}.port", port.port, text) for text in names.port_number(port.port)]
        errors += protocol(port.protocol, f"{path}.protocol")
        target = port.target_port
        wrong = names.port_number(target) if isinstance(target, int) else names.port_name(target)
        errors += [invalid(f"{path}.targetPort", target, text) for text in wrong]
        if port.app_protocol is not None:
            bad = names.qualified(port.app_protocol)
            errors += [invalid(f"{path}.appProtocol", port.app_protocol, text) for text in bad]
    return errors


def protocol(text: str, path: str) -> list[FieldError]:
    if not text:
        return [required(path)]
    return [] if text in _PROTOCOLS else [unsupported(path, text, _PROTOCOLS)]


def _affinity(spec: ServiceSpec) -> list[FieldError]:
    match spec.session_affinity:
        case "":
            return [required("spec.sessionAffinity")]
        case "ClientIP":
            return _client_affinity(spec.session_affinity_config, "spec.sessionAffinityConfig")
        case "None":
            given = spec.session_affinity_config is not None
            text = "must not be set when session affinity is None"
            return [forbidden("spec.sessionAffinityConfig", text)] if given else []
        case other:
            return [unsupported("spec.sessionAffinity", other, ("ClientIP", "None"))]


def _client_affinity(config: SessionAffinityConfig | None, path: str) -> list[FieldError]:
    text = "when session affinity type is ClientIP"
    if config is None:
        return [required(path, text)]
    if config.client_ip is None:
        return [required(f"{path}.clientIP", text)]
    seconds = config.client_ip.timeout_seconds
    if seconds is None:
        return [required(f"{path}.clientIP.timeoutSeconds", text)]
    if 0 < seconds <= _LONGEST_AFFINITY:
        return []
    bounds = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
    return [invalid(f"{path}.clientIP.timeoutSeconds", seconds, bounds)]


def _node_ports(spec: ServiceSpec) -> list[FieldError]:
    given = [(port, f"spec.ports[{index}].nodePort") for index, port in enumerate(spec.ports) if port.node_port]
    text = "may not be used when `type` is 'ClusterIP'"
    errors = [forbidden(path, text) for _, path in given if spec.type == CLUSTER_IP]
    seen: set[tuple[str, int]] = set()
    for port, path in given:
        if (port.protocol, port.node_port) in seen:
            errors.append(duplicate(path, port.node_port))
        seen.add((port.protocol, port.node_port))
    return errors


def _same_ports(ports: tuple[ServicePort, ...]) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if (port.protocol, port.port) in seen:
            shown = {
                "Name": "",
                "Protocol": port.protocol,
                "AppProtocol": None,
                "Port": port.port,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add((port.protocol, port.port))
    return errors


def _traffic(spec: ServiceSpec) -> list[FieldError]:
    errors = []
    outside, external = reachable_from_outside(spec), spec.external_traffic_policy
    path = "spec.externalTrafficPolicy"
    if external and not outside:
        errors.append(invalid(path, external, "may only be set for externally-accessible services"))
    elif outside and external not in _TRAFFIC:
        errors.append(unsupported(path, external, _TRAFFIC) if external else required(path))
    errors += _health_check(spec)
    internal = spec.internal_traffic_policy
    if internal is None and spec.type in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        errors.append(required("spec.internalTrafficPolicy"))
    elif internal is not None and internal not in _TRAFFIC:
        errors.append(unsupported("spec.internalTrafficPolicy", internal, _TRAFFIC))
    if spec.traffic_distribution is not None and spec.traffic_distribution not in _DISTRIBUTIONS:
        errors.append(unsupported("spec.trafficDistribution", spec.traffic_distribution, _DISTRIBUTIONS))
    return errors


def _health_check(spec: ServiceSpec) -> list[FieldError]:
    """A service that needs the port and names none is given one after validation."""
    port = spec.health_check_node_port
    if not port:
        return []
    if needs_health_check(spec):
        return [invalid("spec.healthCheckNodePort", port, text) for text in names.port_number(port)]
    text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid("spec.healthCheckNodePort", port, text)]


def validate_service_update(new: Service, old: Service) -> list[FieldError]:
    errors = addresses_kept(new.spec, old.spec)
    before, after = old.spec, new.spec
    if before.type == after.type == LOAD_BALANCER and before.load_balancer_class != after.load_balancer_class:
        errors.append(invalid("spec.loadBalancerClass", after.load_balancer_class, ONCE))
    errors += load_balancer_class(after)
    moved = after.health_check_node_port != before.health_check_node_port
    if moved and needs_health_check(before) and needs_health_check(after):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate_service(new, known=before.external_ips)


def validate_service_status(new: Service, old: Service) -> list[FieldError]:
    """Where a load balancer answers, which only services of that type have."""
    ingress, path = new.status.load_balancer.ingress, "status.loadBalancer.ingress"
    if ingress and new.spec.type != LOAD_BALANCER:
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = {point.ip for point in old.status.load_balancer.ingress}
    errors = []
    for index, point in enumerate(ingress):
        errors += _ingress(point, f"{path}[{index}]", known)
    return errors


def _ingress(point: LoadBalancerIngress, path: str, known: Collection[str]) -> list[FieldError]:
    errors = address(point.ip, f"{path}.ip") if point.ip and point.ip not in known else []
    if point.ip and not point.ip_mode:
        errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif point.ip_mode and not point.ip:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif point.ip_mode and point.ip_mode not in _IP_MODES:
        errors.append(unsupported(f"{path}.ipMode", point.ip_mode, _IP_MODES))
    if point.hostname:
        problems = names.dns_subdomain(point.hostname)
        if parsed(point.hostname) is not None:
            problems = [*problems, "must be a DNS name, not an IP address"]
        errors += [invalid(f"{path}.hostname", point.hostname, text) for text in problems]
    return errors


RULES: dict[type[Object], Rules] = {
    Service: Rules(names.dns_label, validate_service, validate_service_update, validate_service_status, metadata="both")
}
