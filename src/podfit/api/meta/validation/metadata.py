"""Metadata of any kind: on create, and what an update may not touch."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from podfit.api.meta.v1.types import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from podfit.api.meta.validation import names
from podfit.api.meta.verdict_cache import passed
from podfit.core.fields import FieldError, forbidden, invalid, required, too_long

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_MOST_CONTROLLERS = 8  # owners said to control one object that are told one by one, each with the whole list
_IMMUTABLE = {
    "name": "name",
    "namespace": "namespace",
    "uid": "uid",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
}
_CORE = ("v1", "/v1")
"""How an apiVersion may name the core group's."""
_identity = attrgetter(*_IMMUTABLE)
NameRule = Callable[[str], list[str]]


def validate_meta(
    meta: ObjectMeta, *, namespaced: bool, name_rule: NameRule, path: str = "metadata"
) -> list[FieldError]:
    """What is wrong with the metadata of a new object."""
    errors = validate_any_meta(meta, namespaced=namespaced, name_rule=name_rule, path=path)
    return errors + _standard_finalizers(meta.finalizers, f"{path}.finalizers")


def validate_any_update(new: ObjectMeta, old: ObjectMeta, *, namespaced: bool) -> list[FieldError]:
    """What upstream asks of the metadata in every update, before a kind's own rules: it is checked as that of a new
    object, and as the successor of the old one."""
    errors = validate_any_meta(new, namespaced=namespaced, name_rule=names.path_segment)
    return errors + validate_successor(new, old, judged=not errors)


def validate_any_meta(
    meta: ObjectMeta, *, namespaced: bool, name_rule: NameRule, path: str = "metadata"
) -> list[FieldError]:
    """The rules of new metadata that hold for custom resources, too."""
    errors: list[FieldError] = []
    if meta.generate_name:
        prefix = names.generated(meta.generate_name)
        errors += [invalid(f"{path}.generateName", meta.generate_name, text) for text in name_rule(prefix)]
    if not meta.name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    else:
        errors += [invalid(f"{path}.name", meta.name, text) for text in name_rule(meta.name)]
    if not namespaced and meta.namespace:
        errors.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    if namespaced and not meta.namespace:
        errors.append(required(f"{path}.namespace"))
    elif namespaced:
        errors += [invalid(f"{path}.namespace", meta.namespace, text) for text in names.dns_label(meta.namespace)]
    return errors + _accessories(meta, path)


class _Last:
    """The last metadata with accessories that passed: those of one write are asked about twice."""

    passed: ObjectMeta | None = None


_last = _Last()


def _accessories(meta: ObjectMeta, path: str) -> list[FieldError]:
    if _last.passed is meta:
        return []
    if not (errors := _wrong_accessories(meta, path)):
        _last.passed = meta
    return errors


def _wrong_accessories(meta: ObjectMeta, path: str) -> list[FieldError]:
    errors = nonnegative(meta.generation, f"{path}.generation")
    errors += validate_labels(meta.labels, f"{path}.labels")
    errors += validate_annotations(meta.annotations, f"{path}.annotations")
    errors += _owners(meta, f"{path}.ownerReferences")
    return errors + _finalizers(meta.finalizers, f"{path}.finalizers")


def nonnegative(number: int | None, path: str) -> list[FieldError]:
    return [invalid(path, number, "must be greater than or equal to 0")] if number is not None and number < 0 else []


@passed
def validate_labels(labels: Mapping[str, str], path: str) -> list[FieldError]:
    errors = []
    for key, value in sorted(labels.items()):
        errors += [invalid(path, key, text) for text in names.qualified(key)]
        errors += [invalid(path, value, text) for text in names.label_value(value)]
    return errors


@passed
def validate_annotations(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    errors = []
    for key in sorted(annotations):
        errors += [invalid(path, key, text) for text in names.qualified(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        errors.append(too_long(path, _ANNOTATIONS_LIMIT))
    return errors


def _owners(meta: ObjectMeta, path: str) -> list[FieldError]:
    errors = []
    controllers: list[str] = []
    for owner in meta.owner_references:
        if not _version(owner.api_version):
            errors.append(invalid(f"{path}.apiVersion", owner.api_version, "version must not be empty"))
        empty = [name for name in ("kind", "name", "uid") if not getattr(owner, name)]
        errors += [invalid(f"{path}.{name}", "", "must not be empty") for name in empty]
        if owner.api_version in _CORE and owner.kind == "Event":
            errors.append(invalid(path, _owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if not owner.controller:
            continue
        controllers.append(f"{owner.kind}/{owner.name}")
        if 1 < len(controllers) <= _MOST_CONTROLLERS:
            text = (
                f'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controllers[0]} and {controllers[-1]}"
            )
            errors.append(invalid(path, [_owner(reference) for reference in meta.owner_references], text))
    return errors


def _version(api_version: str) -> str:
    """The version of `version` or `group/version`; empty where it is neither."""
    parts = api_version.split("/")
    return parts[-1] if len(parts) <= 2 else ""


def _owner(owner: OwnerReference) -> dict[str, Any]:
    """In the order in which upstream prints it."""
    named = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    more = {"controller": owner.controller, "blockOwnerDeletion": owner.block_owner_deletion}
    return named | {name: value for name, value in more.items() if value is not None}


def _finalizers(finalizers: tuple[str, ...], path: str) -> list[FieldError]:
    errors = [invalid(path, name, text) for name in finalizers for text in names.qualified(name)]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, list(finalizers), text))
    return errors


def standard_finalizer(name: str, path: str) -> list[FieldError]:
    """Without a domain only the names that Kubernetes itself gives."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def _standard_finalizers(finalizers: tuple[str, ...], path: str) -> list[FieldError]:
    return [error for index, name in enumerate(finalizers) for error in standard_finalizer(name, f"{path}[{index}]")]


def validate_meta_update(new: ObjectMeta, old: ObjectMeta) -> list[FieldError]:
    """Identity never changes, and finalizers are only taken away once an object is going."""
    return validate_successor(new, old) + _standard_finalizers(new.finalizers, "metadata.finalizers")


def validate_successor(new: ObjectMeta, old: ObjectMeta, *, judged: bool = False) -> list[FieldError]:
    """The rules of changed metadata that hold for custom resources, too. `judged`: the rules of new metadata, of which
    some are told again, found nothing."""
    path = "metadata"
    errors = []
    kept = set(old.finalizers) if old.deletion_timestamp else set[str]()
    if old.deletion_timestamp and (added := [name for name in new.finalizers if name not in kept]):
        text = f"no new finalizers can be added if the object is being deleted, found new finalizers {_go_list(added)}"
        errors.append(forbidden(f"{path}.finalizers", text))
    if new.generation < old.generation:
        errors.append(invalid(f"{path}.generation", new.generation, "must not be decremented"))
    for name, mine, theirs in zip(_IMMUTABLE.values(), _identity(new), _identity(old), strict=True):
        if mine != theirs:
            errors += immutable(mine, theirs, f"{path}.{name}")
    if judged:
        return errors
    errors += validate_labels(new.labels, f"{path}.labels")
    errors += validate_annotations(new.annotations, f"{path}.annotations")
    return errors + _owners(new, f"{path}.ownerReferences")


def _go_list(items: list[str]) -> str:
    quoted = ", ".join(f'"{item}"' for item in items)
    return f"[]string{{{quoted}}}"


def immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    return [] if new == old else [invalid(path, new, "field is immutable")]


def validate_selector(selector: LabelSelector | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    errors = validate_labels(selector.match_labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.match_expressions):
        errors += _requirement(requirement, f"{path}.matchExpressions[{index}]")
    return errors


def operator_errors(operator: str, values: Sequence[str], path: str) -> list[FieldError]:
    """Whether a selector's operator is one, and goes with its values."""
    match operator:
        case "In" | "NotIn":
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            return [] if values else [required(f"{path}.values", text)]
        case "Exists" | "DoesNotExist":
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            return [forbidden(f"{path}.values", text)] if values else []
        case _:
            return [invalid(f"{path}.operator", operator, "not a valid selector operator")]


def _requirement(requirement: LabelSelectorRequirement, path: str) -> list[FieldError]:
    errors = operator_errors(requirement.operator, requirement.values, path)
    errors += [invalid(f"{path}.key", requirement.key, text) for text in names.qualified(requirement.key)]
    for index, value in enumerate(requirement.values):
        errors += [invalid(f"{path}.values[{index}]", value, text) for text in names.label_value(value)]
    return errors
