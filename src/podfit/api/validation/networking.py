"""Ingresses and their classes, and network policies."""

from ipaddress import ip_network

from podfit.api.base import Object
from podfit.api.networking import (
    HTTPIngressPath,
    Ingress,
    IngressBackend,
    IngressClass,
    IngressRule,
    IPBlock,
    NetworkPolicy,
    NetworkPolicyPeer,
    NetworkPolicyPort,
)
from podfit.api.validation import names
from podfit.api.validation.addresses import network, parsed
from podfit.api.validation.meta import immutable, validate_selector
from podfit.api.validation.rules import Rules
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_PROTOCOLS, _TYPES = ("TCP", "UDP", "SCTP"), ("Ingress", "Egress")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_WITHIN, _ENDS = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")


def validate_ingress(ingress: Ingress) -> list[FieldError]:
    spec = ingress.spec
    errors = []
    if not spec.rules and spec.default_backend is None:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    for index, rule in enumerate(spec.rules):
        errors += _rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.tls):
        for number, host in enumerate(tls.hosts):
            errors += _host(host, f"spec.tls[{index}].hosts[{number}]")
    if spec.default_backend is not None:
        errors += _backend(spec.default_backend, "spec.defaultBackend")
    name = spec.ingress_class_name
    if name is not None:
        errors += [invalid("spec.ingressClassName", name, text) for text in names.dns_subdomain(name)]
    return errors


def _rule(rule: IngressRule, path: str) -> list[FieldError]:
    errors = []
    if parsed(rule.host):
        errors.append(invalid(f"{path}.host", rule.host, "must be a DNS name, not an IP address"))
    elif rule.host:
        errors += _host(rule.host, f"{path}.host")
    if rule.http is None:
        return errors
    if not rule.http.paths:
        errors.append(required(f"{path}.http.paths"))
    for index, each in enumerate(rule.http.paths):
        errors += _path(each, f"{path}.http.paths[{index}]")
    return errors


def _host(host: str, path: str) -> list[FieldError]:
    return [invalid(path, host, text) for text in names.dns_subdomain(host.removeprefix("*."))]


def _path(each: HTTPIngressPath, path: str) -> list[FieldError]:
    kind, text, where = each.path_type, each.path, f"{path}.path"
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
    return errors + _backend(each.backend, f"{path}.backend")


def _backend(backend: IngressBackend, path: str) -> list[FieldError]:
    service = backend.service
    if backend.resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if backend.resource is not None:
        resource = backend.resource
        return [required(f"{path}.resource.{name}") for name in ("kind", "name") if not getattr(resource, name)]
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


def validate_class(found: IngressClass) -> list[FieldError]:
    controller = found.spec.controller
    domain, slash, rest = controller.partition("/")
    errors = []
    if not slash or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid("spec.controller", controller, text))
    else:
        errors += [invalid("spec.controller", controller, text) for text in names.dns_subdomain(domain)]
    return errors


def validate_class_update(new: IngressClass, old: IngressClass) -> list[FieldError]:
    return validate_class(new) + immutable(new.spec.controller, old.spec.controller, "spec.controller")


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
    wrong = [(index, each) for index, each in enumerate(spec.policy_types) if each not in _TYPES]
    return errors + [unsupported(f"spec.policyTypes[{index}]", each, _TYPES) for index, each in wrong]


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
    number, last = port.port, port.end_port
    if number is not None:
        wrong = names.port_number(number) if isinstance(number, int) else names.port_name(number)
        errors += [invalid(f"{path}.port", number, text) for text in wrong]
    if last is not None and not isinstance(number, int):
        errors.append(invalid(f"{path}.endPort", last, "may not be specified when `port` is not a number"))
    elif last is not None and isinstance(number, int) and last < number:
        errors.append(invalid(f"{path}.endPort", last, "must be greater than or equal to `port`"))
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
    Ingress: Rules(create=validate_ingress),
    IngressClass: Rules(create=validate_class, update=validate_class_update),
    NetworkPolicy: Rules(create=validate_policy),
}
