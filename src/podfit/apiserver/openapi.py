"""OpenAPI v3, derived from the Structs.

kubectl asks it two things: whether an endpoint checks fields itself (`fieldValidation`), and how lists merge.
`explain` reads the rest. A document is built once for each group and version, when first asked for; its hash is part
of its address, so a client can keep it.
"""

import hashlib
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.base import Listing, Struct
from podfit.api.registry import ResourceInfo, Subresource, resources
from podfit.apiserver.verbs.change import PATCHES
from podfit.core.quantity import Quantity
from podfit.net.wire import Request, Response

ROOT = "/openapi/v3"
_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer", "format": "int64"}, bool: {"type": "boolean"},
    float: {"type": "number"}, bytes: {"type": "string", "format": "byte"}, Any: {},
    Quantity: {"type": "string", "description": "A resource quantity, such as 500m or 64Mi."},
}  # fmt: skip
_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}


def openapi(path: str, request: Request) -> Response | None:
    """The index, or one group version's document; None for a path that is neither."""
    headers = {"content-type": "application/json"}
    if path == ROOT:
        listed = {name: {"serverRelativeURL": f"{ROOT}/{name}?hash={_document(name)[1]}"} for name in _names()}
        return Response(200, headers, msgspec.json.encode({"paths": listed}))
    name = path.removeprefix(f"{ROOT}/")
    if name not in _names():
        return None
    body, digest = _document(name)
    headers["etag"] = f'"{digest}"'
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(304, headers)
    return Response(200, headers, body)


@cache
def _names() -> tuple[str, ...]:
    found = (f"apis/{info.group}/{info.version}" if info.group else f"api/{info.version}" for info in resources())
    return tuple(dict.fromkeys(found))


@cache
def _document(name: str) -> tuple[bytes, str]:
    infos = [info for info in resources() if _names_of(info) == name]
    schemas: dict[str, Any] = {}
    for info in infos:
        _collect(info.type, schemas)
        group_version_kind = [{"group": info.group, "version": info.version, "kind": info.kind}]
        schemas[_schema_name(info.type)]["x-kubernetes-group-version-kind"] = group_version_kind
    document = {
        "openapi": "3.0.0",
        "info": {"title": "podfit", "version": "v1.36.2"},
        "paths": {path: item for info in infos for path, item in _paths(info)},
        "components": {"schemas": schemas},
    }
    body = msgspec.json.encode(document)
    return body, hashlib.sha256(body).hexdigest().upper()


def _names_of(info: ResourceInfo) -> str:
    return f"apis/{info.group}/{info.version}" if info.group else f"api/{info.version}"


def _paths(info: ResourceInfo) -> Iterator[tuple[str, dict[str, Any]]]:
    collection = info.path("{namespace}")
    one = info.path("{namespace}", "{name}")
    yield collection, _operations(info, [verb for verb in info.verbs if verb in ("list", "create")])
    yield one, _operations(info, [verb for verb in info.verbs if verb in ("get", "update", "patch", "delete")])
    for sub in info.subresources:
        yield f"{one}/{sub.name}", _operations(info, list(sub.verbs), sub)


def _operations(info: ResourceInfo, verbs: list[str], sub: Subresource | None = None) -> dict[str, Any]:
    kind = {"group": info.group, "version": info.version, "kind": info.kind}
    if sub is not None and sub.kind:
        kind = {"group": sub.group, "version": sub.version or "v1", "kind": sub.kind}
    return {_METHODS[verb]: _operation(verb, kind) for verb in verbs}


def _operation(verb: str, kind: dict[str, str]) -> dict[str, Any]:
    action = {"create": "post", "update": "put"}.get(verb, verb)
    writes = verb in ("create", "update", "patch")
    names = ("dryRun", "fieldManager", "fieldValidation") if writes else ()
    media = PATCHES if verb == "patch" else ("application/json", "application/yaml")
    body: dict[str, Any] = {"requestBody": {"content": {each: {"schema": {}} for each in media}}} if writes else {}
    return body | {
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }


def _schema_name(kind: type[Struct]) -> str:
    """`podfit.api.core.pods` → `io.k8s.api.core.v1.Pod`, the names that clients know."""
    module = kind.__module__.removeprefix("podfit.api.")
    if module == "meta":
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind.__name__}"
    return f"io.k8s.api.{module.partition('.')[0]}.v1.{kind.__name__}"


def _collect(kind: type[Struct], schemas: dict[str, Any]) -> dict[str, str]:
    """Add the kind and all that it holds; answers a reference to it."""
    name = _schema_name(kind)
    if name not in schemas:
        schemas[name] = {"type": "object"}
        hints = get_type_hints(kind, include_extras=True)
        properties = {
            field.encode_name: _property(hints[field.name], schemas) for field in msgspec.structs.fields(kind)
        }
        schemas[name]["properties"] = properties
    return {"$ref": f"#/components/schemas/{name}"}


def _property(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    hint, listing = _unwrapped(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _property(arguments[0], schemas), **_merging(listing)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _property(arguments[1], schemas)}
    if origin in (Union, UnionType):
        return {"x-kubernetes-int-or-string": True}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return {"allOf": [_collect(hint, schemas)], "default": {}}
    return dict(_SCALARS[hint])


def _unwrapped(hint: Any) -> tuple[Any, Listing]:
    """The hint without `| None` and notes, and how the field merges."""
    listing = Listing()
    while True:
        if get_origin(hint) is Annotated:
            hint, *notes = get_args(hint)
            listing = next((note for note in notes if isinstance(note, Listing)), listing)
        elif get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint):
            kept = tuple(each for each in get_args(hint) if each is not type(None))
            hint = reduce(or_, kept)
        else:
            return hint, listing


def _merging(listing: Listing) -> dict[str, Any]:
    notes: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
    if listing.keys:
        notes = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(listing.keys)}
    elif listing.set_:
        notes = {"x-kubernetes-list-type": "set"}
    if listing.merge_key:
        notes["x-kubernetes-patch-merge-key"] = listing.merge_key
    if listing.merge_key or listing.set_:
        notes["x-kubernetes-patch-strategy"] = "merge,retainKeys" if listing.retain_keys else "merge"
    return notes
