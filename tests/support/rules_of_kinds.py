"""One object changed in one place, and what the rules of its kind say of that."""

from typing import Any

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert
from podfit.api.registry import info_for
from podfit.api.validation import validate_create, validate_update


def merged(base: Any, change: Any) -> Any:
    """`base` with the members of `change`, maps member by member; None takes a member away."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    both = {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in both.items() if value is not None}


def made(manifest: dict[str, Any], kind: type[Any]) -> Any:
    """Decoded, in a namespace and with its defaults; a pod has the account that admission gives it."""
    given: Any = convert(manifest, kind)
    if info_for(kind).namespaced:
        given = msgspec.structs.replace(given, metadata=msgspec.structs.replace(given.metadata, namespace="n"))
    defaulted = apply_defaults(given)
    if isinstance(defaulted, Pod) and not defaulted.spec.service_account_name:
        spec = msgspec.structs.replace(defaulted.spec, service_account_name="default", service_account="default")
        return msgspec.structs.replace(defaulted, spec=spec)
    return defaulted


def said_of(manifest: dict[str, Any], kind: type[Any]) -> list[str]:
    """What is wrong with a new object, as texts of the API."""
    return [str(error) for error in validate_create(made(manifest, kind))]


def said_of_change(manifest: dict[str, Any], change: dict[str, Any], kind: type[Any]) -> list[str]:
    """What is wrong with an update of `manifest` by `change`."""
    old, new = made(manifest, kind), made(merged(manifest, change), kind)
    return [str(error) for error in validate_update(new, old)]
