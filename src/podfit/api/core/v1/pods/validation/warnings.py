"""Warnings about a new pod or template: nothing that is wrong, but little that can be meant."""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv6Address
from typing import NamedTuple

from podfit.api.core.v1.pods.affinity import Affinity, NodeSelectorTerm
from podfit.api.core.v1.pods.containers import Container, ContainerPort, EnvVar, EphemeralContainer
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.alike import by_text, generic, texts
from podfit.api.core.v1.pods.validation.deprecations import NODE_LABELS, deprecations
from podfit.api.core.v1.pods.validation.windows import containers_of
from podfit.api.core.v1.pods.volumes import (
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import parsed
from podfit.api.meta.verdict_cache import PassedValues
from podfit.core.quantity import Quantity
from podfit.core.resources import ResourceList

_Placed = KeyToPath | DownwardAPIVolumeFile | ServiceAccountTokenProjection
_NO_SOURCE = VolumeProjection()
_MOST = 32  # collisions of one volume that are told


class _File(NamedTuple):
    """`source` is what of a projected volume it comes from."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return f'"{self.path}" ({self.source})' if self.source else f'"{self.path}"'


def overlapping_files(volumes: Sequence[Volume]) -> Iterator[str]:
    for volume in volumes:
        config, secret, downward = volume.config_map, volume.secret, volume.downward_api
        if config is not None and config.items:
            yield from _told(volume.name, f'(ConfigMap "{config.name}")', _files(config.items))
        if secret is not None and secret.items:
            yield from _told(volume.name, f'(Secret "{secret.secret_name}")', _files(secret.items))
        if downward is not None and downward.items:
            yield from _told(volume.name, "(DownwardAPI)", _files(downward.items))
        if volume.projected is not None and not _plain(volume.projected):
            yield from _projected(volume.name, volume.projected)


def _files(items: Iterable[_Placed], source: str = "") -> list[_File]:
    return [_File(item.path.rstrip("/"), source) for item in items]


def _projected(name: str, source: ProjectedVolumeSource) -> Iterator[str]:
    files: list[_File] = []
    for projection in source.sources:
        if projection == _NO_SOURCE:
            yield f'volume "{name}" (Projected) has no sources provided'
        files += _of_projection(projection)
    yield from _told(name, "(Projected)", files)


def _plain(source: ProjectedVolumeSource) -> bool:
    """Whether it is what most pods have, the volume of their service account: three sources of a file each, no two of
    one name."""
    paths = set()
    for projection in source.sources:
        token, config, downward = projection.service_account_token, projection.config_map, projection.downward_api
        placed = (
            token
            or (config.items[0] if config is not None and len(config.items) == 1 else None)
            or (downward.items[0] if downward is not None and len(downward.items) == 1 else None)
        )
        if placed is None or "/" in placed.path:
            return False
        paths.add(placed.path)
    return len(paths) == len(source.sources)


def _of_projection(projection: VolumeProjection) -> list[_File]:
    config, secret, downward = projection.config_map, projection.secret, projection.downward_api
    if config is not None and config.items:
        return _files(config.items, f'ConfigMap "{config.name}"')
    if secret is not None and secret.items:
        return _files(secret.items, f'Secret "{secret.name}"')
    if downward is not None and downward.items:
        return _files(downward.items, "DownwardAPI")
    token = projection.service_account_token
    return [] if token is None else _files([token], "ServiceAccountToken")


def _told(name: str, kind: str, files: Iterable[_File]) -> Iterator[str]:
    """Each file with those before it that are the same, above it or beneath it; in time linear in the paths."""
    files = tuple(files)
    if len({file.path for file in files}) == len(files) and not any("/" in file.path for file in files):
        return
    at: dict[str, list[_File]] = {}
    beneath: dict[str, list[_File]] = {}
    told = 0
    for file in files:
        above = _above(file.path)
        others = [*at.get(file.path, ()), *(other for folder in above for other in at.get(folder, ()))]
        others += beneath.get(file.path, ())
        for other in others[: _MOST - told]:
            told += 1
            yield f'volume "{name}" {kind}: overlapping paths: {file} with {other}'
        _keep(at, file.path, file)
        for folder in above:
            _keep(beneath, folder, file)


def _above(path: str) -> list[str]:
    parts = path.split("/")[:_MOST]
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _keep(places: dict[str, list[_File]], path: str, file: _File) -> None:
    kept = places.setdefault(path, [])
    if len(kept) < _MOST:
        kept.append(file)


_NO_SELECTOR = "a null labelSelector results in matching no pod"
_OF_BYTES = ("memory", "ephemeral-storage")
_COMPARED = 16  # ports of one number and protocol that a further one is compared with
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


_quiet = PassedValues(128, longest=8192, by_text=by_text)


def pod_warnings(meta: ObjectMeta, spec: PodSpec, path: str = "") -> Iterator[str]:
    """`path` is that of the template, with a dot at its end; a pod has none. Of a spec like one that there was nothing
    to say of, only what its metadata say is looked at."""
    repeated, key = generic(spec), (path, *texts(spec))
    if repeated is not None and _quiet.holds(key, repeated):
        yield from deprecations(meta, spec, path)
        return
    told = [*_every_warning(meta, spec, path)]
    if not told and repeated is not None:
        _quiet.keep(key, repeated)
    yield from told


def _every_warning(meta: ObjectMeta, spec: PodSpec, path: str) -> Iterator[str]:  # noqa: C901  (upstream's list)
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
