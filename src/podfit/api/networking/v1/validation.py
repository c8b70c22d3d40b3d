"""Ingresses and their classes, and network policies."""

from ipaddress import ip_network

from podfit.api.core.v1.references import TypedLocalObjectReference
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address, network, parsed
from podfit.api.meta.validation.metadata import immutable, validate_selector
from podfit.api.meta.validation.rules import Rules
from podfit.api.networking.v1.types import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressClass,
    IngressClassParametersReference,
    IngressRule,
    IPBlock,
    NetworkPolicy,
    NetworkPolicyPeer,
    NetworkPolicyPort,
)
from podfit.core.fields import FieldError, forbidden, invalid, required, too_long, unsupported

_PROTOCOLS, _TYPES = ("TCP", "UDP", "SCTP"), ("Ingress", "Egress")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SCOPES, _LONGEST_CONTROLLER = ("Cluster", "Namespace"), 250
_CLASS = "kubernetes.io/ingress.class"
_WITHIN, _ENDS = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")


def validate_ingress(ingress: Ingress) -> list[FieldError]:
    spec = ingress.spec
    errors = []
    if not spec.rules and spec.default_backend is None:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.default_backend is not None:
        errors += _backend(spec.default_backend, "spec.defaultBackend")
    for index, rule in enumerate(spec.rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.tls):
        for number, host in enumerate(tls.hosts):
            errors += _host(host, f"spec.tls[{index}].hosts[{number}]")
        secret = tls.secret_name
        problems = names.dns_subdomain(secret) if secret else []
        errors += [invalid(f"spec.tls[{index}].secretName", secret, text) for text in problems]
    name = spec.ingress_class_name
    if name is not None:
        errors += [invalid("spec.ingressClassName", name, text) for text in names.dns_subdomain(name)]
    return errors


def validate_new_ingress(ingress: Ingress) -> list[FieldError]:
    errors = validate_ingress(ingress)
    given, named = ingress.metadata.annotations.get(_CLASS), ingress.spec.ingress_class_name
    if given is not None and named is not None and given != named:
        text = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{_CLASS}", given, text))
    return errors


def validate_ingress_update(new: Ingress, _old: Ingress) -> list[FieldError]:
    return validate_ingress(new)


def _rule(rule: IngressRule, path: str) -> list[FieldError]:
    errors = []
    if parsed(rule.host):
        errors.append(invalid(f"{path}.host", rule.host, "must be a DNS name, not an IP address"))
    if rule.host:
        errors += _host(rule.host, f"{path}.host")
    if rule.http is None:
        return errors
    if not rule.http.paths:
        errors.append(required(f"{path}.http.paths"))
    for index, http_path in enumerate(rule.http.paths):
        errors += _path(http_path, f"{path}.http.paths[{index}]")
    return errors


def _host(host: str, path: str) -> list[FieldError]:
    check = names.wildcard_subdomain if "*" in host else names.dns_subdomain
    return [invalid(path, host, text) for text in check(host)]


def _path(http_path: HTTPIngressPath, path: str) -> list[FieldError]:
    kind, text, where = http_path.path_type, http_path.path, f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors = []
    if kind not in _PATH_TYPES:
        errors.append(unsupported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        errors.append(invalid(where, text, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        errors += [invalid(where, text, f"must not contain '{part}'") for part in _WITHIN if part in text]
        errors += [invalid(where, text, f"cannot end with '{part}'") for part in _ENDS if text.endswith(part)]
    return errors + _backend(http_path.backend, f"{path}.backend")


def _backend(backend: IngressBackend, path: str) -> list[FieldError]:
    service = backend.service
    if backend.resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.resource is not None:
        return _reference(backend.resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    errors = [] if service.name else [required(f"{path}.service.name")]
    if service.name:
        errors += [invalid(f"{path}.service.name", service.name, text) for text in names.dns_label(service.name)]
    name, number, where = service.port.name, service.port.number, f"{path}.service.port"
    if name and number:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif name:
        errors += [invalid(f"{where}.name", name, text) for text in names.port_name(name)]
    elif number:
        errors += [invalid(f"{where}.number", number, text) for text in names.port_number(number)]
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _reference(ref: TypedLocalObjectReference | IngressClassParametersReference, path: str) -> list[FieldError]:
    errors = []
    if ref.api_group is not None:
        errors += [invalid(f"{path}.apiGroup", ref.api_group, text) for text in names.dns_subdomain(ref.api_group)]
    for value, name in ((ref.kind, "kind"), (ref.name, "name")):
        where = f"{path}.{name}"
        errors += [invalid(where, value, text) for text in names.path_segment(value)] if value else [required(where)]
    return errors


def validate_class(ingress_class: IngressClass) -> list[FieldError]:
    controller, path = ingress_class.spec.controller, "spec.controller"
    errors = [too_long(path, _LONGEST_CONTROLLER)] if len(controller.encode()) > _LONGEST_CONTROLLER else []
    errors += domain_prefixed_path(controller, path)
    return errors + _parameters(ingress_class.spec.parameters, "spec.parameters")


def domain_prefixed_path(text: str, path: str) -> list[FieldError]:
    if not text:
        return [required(path)]
    domain, _, rest = text.partition("/")
    if not domain or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, problem) for problem in names.dns_subdomain(domain)]
    return errors + [invalid(path, rest, problem) for problem in names.http_path(rest)]


def _parameters(ref: IngressClassParametersReference | None, path: str) -> list[FieldError]:
    if ref is None:
        return []
    errors, where = _reference(ref, path), f"{path}.namespace"
    if ref.scope is None:
        return [*errors, required(f"{path}.scope")]
    if ref.scope not in _SCOPES:
        return [*errors, unsupported(f"{path}.scope", ref.scope, _SCOPES)]
    if ref.scope == "Cluster":
        text = "`parameters.scope` is set to 'Cluster'"
        return errors if ref.namespace is None else [*errors, forbidden(where, text)]
    if ref.namespace is None:
        return [*errors, required(where, "`parameters.scope` is set to 'Namespace'")]
    return errors + [invalid(where, ref.namespace, text) for text in names.dns_label(ref.namespace)]


def validate_ingress_status(new: Ingress, old: Ingress) -> list[FieldError]:
    known = {point.ip for point in old.status.load_balancer.ingress}
    errors = []
    for index, point in enumerate(new.status.load_balancer.ingress):
        path = f"status.loadBalancer.ingress[{index}]"
        errors += address(point.ip, f"{path}.ip") if point.ip and point.ip not in known else []
        if point.hostname:
            problems = names.dns_subdomain(point.hostname)
            if parsed(point.hostname) is not None:
                problems = [*problems, "must be a DNS name, not an IP address"]
            errors += [invalid(f"{path}.hostname", point.hostname, text) for text in problems]
    return errors


def validate_class_update(new: IngressClass, old: IngressClass) -> list[FieldError]:
    return immutable(new.spec.controller, old.spec.controller, "spec.controller") + validate_class(new)


def validate_policy(policy: NetworkPolicy) -> list[FieldError]:
    spec = policy.spec
    errors = validate_selector(spec.pod_selector, "spec.podSelector")
    for index, entry in enumerate(spec.ingress):
        errors += _traffic(entry.ports, entry.from_, f"spec.ingress[{index}]", "from")
    for index, way_out in enumerate(spec.egress):
        errors += _traffic(way_out.ports, way_out.to, f"spec.egress[{index}]", "to")
    if len(spec.policy_types) > len(_TYPES):
        text = "may not specify more than two policyTypes"
        return [*errors, invalid("spec.policyTypes", list(spec.policy_types), text)]
    wrong = [(index, policy_type) for index, policy_type in enumerate(spec.policy_types) if policy_type not in _TYPES]
    return errors + [unsupported(f"spec.policyTypes[{index}]", policy_type, _TYPES) for index, policy_type in wrong]


def _traffic(
    ports: tuple[NetworkPolicyPort, ...], peers: tuple[NetworkPolicyPeer, ...], path: str, name: str
) -> list[FieldError]:
    errors = []
    for index, port in enumerate(ports):
        errors += _port(port, f"{path}.ports[{index}]")
    for index, peer in enumerate(peers):
        errors += _peer(peer, f"{path}.{name}[{index}]")
    return errors


def _port(port: NetworkPolicyPort, path: str) -> list[FieldError]:
    errors = []
    if port.protocol is not None and port.protocol not in _PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", port.protocol, _PROTOCOLS))
    number, last, where = port.port, port.end_port, f"{path}.endPort"
    if isinstance(number, int):
        errors += [invalid(f"{path}.port", number, text) for text in names.port_number(number)]
        if last is not None and last < number:
            errors.append(invalid(where, last, "must be greater than or equal to `port`"))
        return errors + [invalid(where, last, text) for text in (names.port_number(last) if last is not None else ())]
    if last is not None:
        why = "is not specified" if number is None else "is non-numeric"
        errors.append(invalid(where, last, f"may not be specified when `port` {why}"))
    if number is not None:
        errors += [invalid(f"{path}.port", number, text) for text in names.port_name(number)]
    return errors


def _peer(peer: NetworkPolicyPeer, path: str) -> list[FieldError]:
    errors = validate_selector(peer.pod_selector, f"{path}.podSelector")
    errors += validate_selector(peer.namespace_selector, f"{path}.namespaceSelector")
    selects = peer.pod_selector is not None or peer.namespace_selector is not None
    if peer.ip_block is not None:
        errors += _block(peer.ip_block, f"{path}.ipBlock")
        if selects:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not selects:
        errors.append(required(path, "must specify a peer"))
    return errors


def _block(block: IPBlock, path: str) -> list[FieldError]:
    if not block.cidr:
        return [required(f"{path}.cidr")]
    if wrong := network(block.cidr, f"{path}.cidr"):
        return wrong
    errors = []
    whole = ip_network(block.cidr, strict=False)
    for index, text in enumerate(block.except_):
        where = f"{path}.except[{index}]"
        if wrong := network(text, where):
            errors += wrong
            continue
        part = ip_network(text, strict=False)
        inside = part.version == whole.version and part != whole and part.network_address in whole
        if not inside or part.prefixlen <= whole.prefixlen:
            errors.append(invalid(where, text, "must be a strict subset of `cidr`"))
    return errors


RULES: dict[type[Object], Rules] = {
    Ingress: Rules(create=validate_new_ingress, update=validate_ingress_update, status=validate_ingress_status),
    IngressClass: Rules(create=validate_class, update=validate_class_update),
    NetworkPolicy: Rules(create=validate_policy),
}
