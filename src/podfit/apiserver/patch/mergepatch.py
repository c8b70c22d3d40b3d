"""RFC 7386: members replace members, null removes, lists are replaced whole."""

from typing import Any

from podfit.apiserver.patch.decoding import unmarshalled
from podfit.core.errors import bad_request


def apply(document: Any, patch: Any) -> Any:
    """The merged document. ApiError 400 when the patch is not an object."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: {unmarshalled(patch, 'map[string]interface {}')}")
    return _merge(document, patch)


def _merge(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged
