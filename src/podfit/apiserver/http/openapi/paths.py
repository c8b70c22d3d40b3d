"""Paths of the OpenAPI documents, for both versions."""

import re
from collections.abc import Iterator

import msgspec

from podfit.api.core.v1.pods.types import Binding
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.resource_info import ResourceInfo, Subresource
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.handlers.patching import JSON_PATCH, PATCHES, STRATEGIC_PATCH
from podfit.apiserver.http.openapi.schemas import schema_name
from podfit.apiserver.request.negotiation import JSON, YAML

METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
_COLLECTION = ("list", "create", "deletecollection")
_DELETIONS = ("delete", "deletecollection")
_OBJECT = ("get", "update", "patch", "delete")

_WRITTEN = ("dryRun", "fieldManager", "fieldValidation")
_SELECTED = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
)
_DELETED = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_LOG = (
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
_QUERY = {
    "list": (*_SELECTED, "allowWatchBookmarks", "watch"),
    "create": _WRITTEN,
    "update": _WRITTEN,
    "patch": (*_WRITTEN, "force"),
    "delete": _DELETED,
    "deletecollection": (*_SELECTED, *_DELETED),
}
_QUERY_OF_SUBRESOURCE = {"log": _LOG, "proxy": ("path",)}
_NUMBERS = ("limit", "timeoutSeconds", "gracePeriodSeconds", "limitBytes", "sinceSeconds", "tailLines")
_FLAGS = (
    "allowWatchBookmarks",
    "follow",
    "force",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "insecureSkipTLSVerifyBackend",
    "orphanDependents",
    "previous",
    "sendInitialEvents",
    "timestamps",
    "watch",
)
_TYPES = dict.fromkeys(_NUMBERS, "integer") | dict.fromkeys(_FLAGS, "boolean")
_VARIABLE = re.compile(r"\{(\w+)\}")


class Parameter(msgspec.Struct, frozen=True):
    name: str
    place: str  # path or query
    type: str
    description: str = ""

    def described(self) -> Document:
        """What both versions say of it; its type they say each in their own way."""
        said = {"name": self.name, "in": self.place} | ({"description": self.description} if self.description else {})
        return said | ({"required": True} if self.place == "path" else {})


class Operation(msgspec.Struct, frozen=True):
    """`kinds` are the media types that it takes, `body` is the schema of each: a name, or one of a patch."""

    verb: str
    parameters: tuple[Parameter, ...]
    kinds: tuple[str, ...]
    body: str
    optional: bool
    notes: Document

    @property
    def method(self) -> str:
        return METHODS[self.verb]

    def schema(self, kind: str, prefix: str) -> Document:
        """The schema of a body of this media type; `prefix` is where schemas are referred to."""
        if self.verb == "patch":
            return {"type": "array", "items": {"type": "object"}} if kind == JSON_PATCH else {"type": "object"}
        return {"$ref": prefix + self.body} if self.body else {"type": "object"}


class Path(msgspec.Struct, frozen=True):
    """`parameters` are those of all its operations."""

    path: str
    parameters: tuple[Parameter, ...]
    operations: tuple[Operation, ...]


def paths(info: ResourceInfo, *, custom: bool = False) -> Iterator[Path]:
    """The collection, the object and its subresources. Custom resources have no strategic merge."""
    one = info.path("{namespace}", "{name}")
    yield _path(info, info.path("{namespace}"), [verb for verb in info.verbs if verb in _COLLECTION], custom=custom)
    if not info.readable:
        return
    if info.namespaced:
        yield _path(info, info.path(), ["list"], custom=custom)
    yield _path(info, one, [verb for verb in info.verbs if verb in _OBJECT], custom=custom)
    for sub in info.subresources:
        for path in (f"{one}/{sub.name}", *([f"{one}/{sub.name}/{{path}}"] if sub.name == "proxy" else ())):
            yield _path(info, path, list(sub.verbs), sub, custom=custom)


def _path(info: ResourceInfo, path: str, verbs: list[str], sub: Subresource | None = None, *, custom: bool) -> Path:
    told = {"name": f"name of the {info.kind}", "namespace": "namespace of the object", "path": "path to the resource"}
    common = [Parameter(name, "path", "string", told[name]) for name in sorted(_VARIABLE.findall(path))]
    common.append(Parameter("pretty", "query", "string", "'true' for indented output"))
    return Path(path, tuple(common), tuple(_operation(info, verb, sub, custom=custom) for verb in verbs))


def _operation(info: ResourceInfo, verb: str, sub: Subresource | None, *, custom: bool) -> Operation:
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    if sub is not None and sub.kind:
        kind = {"group": sub.group, "version": sub.version or "v1", "kind": sub.kind}
    names = _QUERY_OF_SUBRESOURCE.get(sub.name) if sub is not None else None
    names = _QUERY.get(verb, ()) if names is None else names
    body = _body(info, verb, sub)
    action = {"create": "post", "update": "put"}.get(verb, verb)
    return Operation(
        verb=verb,
        parameters=tuple(Parameter(name, "query", _TYPES.get(name, "string")) for name in sorted(names)),
        kinds=_kinds(verb, custom=custom),
        body=schema_name(body) if body is not None else "",
        optional=verb in _DELETIONS,
        notes={"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind},
    )


def _body(info: ResourceInfo, verb: str, sub: Subresource | None) -> type[Struct] | None:
    """What travels; None where no schema describes it."""
    if verb in _DELETIONS:
        return DeleteOptions
    if sub is None or not sub.kind:
        return info.type
    return Binding if sub.kind == "Binding" else sub.struct


def _kinds(verb: str, *, custom: bool) -> tuple[str, ...]:
    """None for a verb that reads."""
    if verb == "patch":
        return tuple(kind for kind in PATCHES if not (custom and kind == STRATEGIC_PATCH))
    return () if verb in ("get", "list") else (JSON, YAML)
