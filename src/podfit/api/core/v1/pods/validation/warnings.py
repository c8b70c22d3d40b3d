"""Warnings about a new pod or template: nothing that is wrong, but little that can be meant."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv6Address

from podfit.api.core.v1.pods.affinity import Affinity, NodeSelectorTerm
from podfit.api.core.v1.pods.containers import Container, ContainerPort, EnvVar, EphemeralContainer
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.deprecations import NODE_LABELS, deprecations
from podfit.api.core.v1.pods.validation.overlaps import overlapping_files
from podfit.api.core.v1.pods.validation.windows import containers_of
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import parsed
from podfit.core.quantity import Quantity
from podfit.core.resources import ResourceList

_NO_SELECTOR = "a null labelSelector results in matching no pod"
_OF_BYTES = ("memory", "ephemeral-storage")
_COMPARED = 16  # ports of one number and protocol that a further one is compared with
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def pod_warnings(meta: ObjectMeta, spec: PodSpec, path: str = "") -> Iterator[str]:  # noqa: C901  (upstream's list)
    """`path` is that of the template, with a dot at its end; a pod has none."""
    where = f"{path}spec"
    if spec.node_selector or spec.affinity is not None or spec.topology_spread_constraints:
        yield from _placing(spec, where)
    yield from deprecations(meta, spec, path)
    yield from overlapping_files(spec.volumes)
    if spec.host_aliases or spec.image_pull_secrets:
        yield from _repeated(spec, where)
    for name in _fractional(spec.overhead):
        yield _of_fraction(f"{where}.overhead[{name}]", spec.overhead[name])
    containers = list(containers_of(spec, where))
    for container, at in containers:
        for side, amounts in (("limits", container.resources.limits), ("requests", container.resources.requests)):
            for name in _fractional(amounts):
                yield _of_fraction(f"{at}.resources.{side}[{name}]", amounts[name])
        if len({variable.name for variable in container.env}) < len(container.env):
            yield from _hidden(container.env, f"{at}.env")
    if any(container.ports for container, _ in containers):
        yield from _ports(containers)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{where}.terminationGracePeriodSeconds: {text}"
    if spec.affinity is not None:
        yield from _without_selector(spec.affinity, f"{where}.affinity")
    if spec.dns_config is not None or spec.host_aliases:
        yield from _odd_addresses(spec, where)


def _placing(spec: PodSpec, path: str) -> Iterator[str]:
    for key in sorted(spec.node_selector):
        if key in NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {NODE_LABELS[key]}"
    node = spec.affinity.node_affinity if spec.affinity else None
    at = f"{path}.affinity.nodeAffinity"
    if node is not None and (wanted := node.required_during_scheduling_ignored_during_execution) is not None:
        for index, term in enumerate(wanted.node_selector_terms):
            yield from _term(term, f"{at}.{_REQUIRED}.nodeSelectorTerms[{index}]", values=False)
    for index, liked in enumerate(node.preferred_during_scheduling_ignored_during_execution if node else ()):
        yield from _term(liked.preference, f"{at}.{_PREFERRED}[{index}].preference", values=True)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        at, key = f"{path}.topologySpreadConstraints[{index}]", constraint.topology_key
        if key in NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {NODE_LABELS[key]}"
        if constraint.label_selector is None:
            yield f"{at}.labelSelector: {_NO_SELECTOR}"


def _term(term: NodeSelectorTerm, path: str, *, values: bool) -> Iterator[str]:
    for index, expression in enumerate(term.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        if expression.key in NODE_LABELS:
            yield f"{at}.key: {expression.key} is {NODE_LABELS[expression.key]}"
        for position, value in enumerate(expression.values if values else ()):
            for problem in names.label_value(value):
                yield f"{at}.values[{position}]: {value} is invalid, {problem}"


def _repeated(spec: PodSpec, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, alias in enumerate(spec.host_aliases):
        if alias.ip in seen:
            yield f'{path}.hostAliases[{index}].ip: duplicate ip "{alias.ip}"'
        seen.add(alias.ip)
    seen = set()
    for index, secret in enumerate(spec.image_pull_secrets):
        if secret.name in seen:
            yield f'{path}.imagePullSecrets[{index}].name: duplicate name "{secret.name}"'
        seen.add(secret.name)
    for index, secret in enumerate(spec.image_pull_secrets):
        if not secret.name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _fractional(resources: ResourceList) -> list[str]:
    """The amounts of bytes that are no whole number."""
    return [name for name in _OF_BYTES if name in resources and not resources[name].is_integer()]


def _of_fraction(path: str, amount: Quantity) -> str:
    return f'{path}: fractional byte value "{amount}" is invalid, must be an integer'


def _hidden(variables: Sequence[EnvVar], path: str) -> Iterator[str]:
    """A variable that is said twice, unless the second value builds on the first."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        own = f"$({variable.name})"
        builds_on = variable.value_from is None and own in variable.value and variable.value != own
        if variable.name in seen and not builds_on:
            text = f'hides previous definition of "{variable.name}", which may be dropped when using apply'
            yield f"{path}[{index}]: {text}"
        seen.add(variable.name)


def _ports(containers: Sequence[tuple[Container | EphemeralContainer, str]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[ContainerPort, str]]] = {}
    for container, at in containers:
        for index, port in enumerate(container.ports):
            where = f"{at}.ports[{index}]"
            if port.host_ip and not port.host_port:
                yield f"{where}: hostIP set without hostPort: {_shown(port)}"
            others = known.setdefault((port.container_port, port.protocol), [])
            for other, place in others:
                if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
                    yield f"{where}: duplicate port definition with {place}"
                elif not port.host_port or not other.host_port:
                    yield f"{where}: overlapping port definition with {place}"
                elif port.host_port == other.host_port and bool(port.host_ip) != bool(other.host_ip):
                    yield f"{where}: dangerously ambiguous port definition with {place}"
            if len(others) < _COMPARED:
                others.append((port, where))


def _shown(port: ContainerPort) -> str:
    return (
        f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
        f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
    )


def _without_selector(affinity: Affinity, path: str) -> Iterator[str]:
    for given, name in ((affinity.pod_affinity, "podAffinity"), (affinity.pod_anti_affinity, "podAntiAffinity")):
        if given is None:
            continue
        for index, term in enumerate(given.required_during_scheduling_ignored_during_execution):
            if term.label_selector is None:
                yield f"{path}.{name}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, liked in enumerate(given.preferred_during_scheduling_ignored_during_execution):
            if liked.pod_affinity_term.label_selector is None:
                yield f"{path}.{name}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _odd_addresses(spec: PodSpec, path: str) -> Iterator[str]:
    """Addresses of IPv6 that others write in another way."""
    given = [
        (text, f"{path}.dnsConfig.nameservers[{index}]")
        for index, text in enumerate(spec.dns_config.nameservers if spec.dns_config else ())
    ]
    given += [(alias.ip, f"{path}.hostAliases[{index}].ip") for index, alias in enumerate(spec.host_aliases)]
    for text, where in given:
        found = parsed(text)
        if isinstance(found, IPv6Address) and str(found) != text:
            yield f'{where}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{found}")'
