"""Rules of nodes: taints, amounts, declared features, networks."""

import re

from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.validation.resources import amount
from podfit.api.core.v1.pods.validation.scheduling import EFFECTS
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import family, network
from podfit.core.fields import FieldError, duplicate, forbidden, go_value, invalid, required, unsupported

_LONGEST_FEATURE = 253
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_NOT_FEATURE = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def validate_node(node: Node) -> list[FieldError]:
    errors = _taints(node.spec.taints) + _amounts(node)
    swap = node.status.node_info.swap
    if swap is not None and swap.capacity < 0:
        errors.append(invalid("metadata.nodeSwapStatus.capacity", swap.capacity, "must be greater than zero"))
    errors += _features(node.status.declared_features)
    cidrs = node.spec.pod_cidrs
    for index, cidr in enumerate(cidrs):
        errors += network(cidr, f"spec.podCIDRs[{index}]")
    if len(cidrs) > 1 and (len(cidrs) > 2 or len({family(cidr.partition("/")[0]) for cidr in cidrs}) < len(cidrs)):
        errors.append(invalid("spec.podCIDRs", list(cidrs), "may specify no more than one CIDR for each IP family"))
    return errors


def _taints(taints: tuple[Taint, ...]) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        errors += _taint(taint, f"metadata.taints[{index}]", repeated=(taint.key, taint.effect) in seen)
        seen.add((taint.key, taint.effect))
    return errors


def _amounts(node: Node) -> list[FieldError]:
    errors = []
    for side, resources in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
        for name in sorted(resources):
            errors += amount(name, resources[name], f"status.{side}.{name}")
    return errors


def _features(features: tuple[str, ...]) -> list[FieldError]:
    """Names of what a node can do, each once and in order."""
    errors = []
    for index, feature in enumerate(features):
        path = f"status.declaredFeatures[{index}]"
        if len(feature.encode()) > _LONGEST_FEATURE:
            text = f'invalid feature name "{feature}": must be no more than {_LONGEST_FEATURE} characters'
            errors.append(invalid(path, feature, text))
        elif not _FEATURE.fullmatch(feature):
            errors.append(invalid(path, feature, f'invalid feature name "{feature}": {_NOT_FEATURE}'))
        after = features[index + 1] if index + 1 < len(features) else None
        if after is not None and after <= feature:
            path = f"status.declaredFeatures[{index + 1}]"
            text = "list must be sorted alphabetically"
            errors.append(duplicate(path, after) if after == feature else invalid(path, after, text))
    return errors


def _taint(taint: Taint, path: str, *, repeated: bool) -> list[FieldError]:
    errors = [invalid(f"{path}.key", taint.key, text) for text in names.qualified(taint.key)]
    if problems := names.label_value(taint.value):
        errors.append(invalid(f"{path}.value", taint.value, ";".join(problems)))
    if not taint.effect:
        errors.append(required(f"{path}.effect"))
    elif taint.effect not in EFFECTS:
        errors.append(unsupported(f"{path}.effect", taint.effect, EFFECTS))
    if repeated:
        value = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": taint.time_added}
        text = "taints must be unique by key and effect pair"
        errors.append(FieldError(path, "Duplicate value", text, go_value(value)))
    return errors


def validate_node_update(new: Node, old: Node) -> list[FieldError]:
    errors = _amounts(new) + _features(new.status.declared_features)
    seen: set[tuple[str, str]] = set()
    for index, given in enumerate(new.status.addresses):
        if (given.type, given.address) in seen:
            errors.append(duplicate(f"status.addresses[{index}]", {"Type": given.type, "Address": given.address}))
        seen.add((given.type, given.address))
    errors += _networks_kept(new.spec.pod_cidrs, old.spec.pod_cidrs)
    if old.spec.provider_id and new.spec.provider_id != old.spec.provider_id:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    errors += _taints(new.spec.taints)
    if new.spec.external_id != old.spec.external_id:
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def _networks_kept(new: tuple[str, ...], old: tuple[str, ...]) -> list[FieldError]:
    """Once given they stay; each that changes is told, or once that there are more or fewer."""
    changed = 1 if len(new) != len(old) else sum(now != was for now, was in zip(new, old, strict=True))
    error = forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    return [error] * changed if old else []
