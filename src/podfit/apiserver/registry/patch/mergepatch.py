"""RFC 7386: members replace members, null removes, lists are replaced whole."""

from typing import Any

from podfit.apiserver.registry.patch.decoding import unmarshalled
from podfit.core.errors import bad_request


def apply(document: object, patch: object) -> Any:
    """The merged document. ApiError 400 when the patch is not an object."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: {unmarshalled(patch, 'map[string]interface {}')}")
    return _merge(document, patch)


def _merge(document: object, patch: object) -> Any:
    if not (isinstance(patch, dict) and isinstance(document, dict)):
        return pruned(patch)
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def pruned(value: object) -> Any:
    """What comes new, without the members that are null, within lists as well."""
    if isinstance(value, dict):
        return {name: pruned(inner) for name, inner in value.items() if inner is not None}
    return [pruned(item) for item in value] if isinstance(value, list) else value
