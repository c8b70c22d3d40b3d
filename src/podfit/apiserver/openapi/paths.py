"""What can be asked of which path, for both versions of OpenAPI."""

from collections.abc import Iterator
from typing import Any

from podfit.api.registry import ResourceInfo, Subresource
from podfit.apiserver.media import JSON, YAML
from podfit.apiserver.verbs.change import PATCHES, STRATEGIC_PATCH

_METHODS = {
    "get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete",
    "deletecollection": "delete",
}  # fmt: skip
_COLLECTION = ("list", "create", "deletecollection")
_OBJECT = ("get", "update", "patch", "delete")


def paths(info: ResourceInfo) -> Iterator[tuple[str, dict[str, Any]]]:
    """The collection, the object and its subresources, each with its operations."""
    one = info.path("{namespace}", "{name}")
    yield info.path("{namespace}"), _operations(info, [verb for verb in info.verbs if verb in _COLLECTION])
    if not info.stored:
        return
    if info.namespaced:
        yield info.path(), _operations(info, ["list"])
    yield one, _operations(info, [verb for verb in info.verbs if verb in _OBJECT])
    for sub in info.subresources:
        yield f"{one}/{sub.name}", _operations(info, list(sub.verbs), sub)


def bodies(verb: str, *, custom: bool = False) -> tuple[str, ...]:
    """The media types that a verb takes; none for one that reads. Custom resources have no strategic merge."""
    if verb == "patch":
        return tuple(each for each in PATCHES if not (custom and each == STRATEGIC_PATCH))
    return (JSON, YAML) if verb in ("create", "update") else ()


def _operations(info: ResourceInfo, verbs: list[str], sub: Subresource | None = None) -> dict[str, Any]:
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    if sub is not None and sub.kind:
        kind = {"group": sub.group, "version": sub.version or "v1", "kind": sub.kind}
    return {_METHODS[verb]: _operation(verb, kind) for verb in verbs}


def _operation(verb: str, kind: dict[str, str]) -> dict[str, Any]:
    """Without the bodies, which the versions write each in their own way."""
    names = ("dryRun", "fieldManager", "fieldValidation") if bodies(verb) else ()
    return {
        "parameters": [{"name": name, "in": "query"} for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": kind,
    }
