"""Schemas of the Structs: what their fields hold, how they merge, and what stands where nothing is given."""

import re
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.core.v1.pods.types import Binding, Pod
from podfit.api.meta import codec
from podfit.api.meta.base import INT32, Document, Listing, MicroTime, Named, Object, Struct, Time
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions, ListMeta, ObjectMeta
from podfit.api.structural.custom import Custom
from podfit.apiserver.http.openapi.descriptions import DESCRIPTIONS, OF_ALL
from podfit.apiserver.http.openapi.required import required
from podfit.core.quantity import Quantity

Schema = Document

_API = "io.k8s.api."
_MACHINERY = "io.k8s.apimachinery.pkg"
_AGGREGATOR = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    INT32: {"type": "integer", "format": "int32"},
    int: {"type": "integer", "format": "int64"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    Any: {},
}
_EITHER: list[Schema] = [{"type": "string"}, {"type": "number"}]
_TIMES = ("Time", "MicroTime")
_VERSION = re.compile("v[0-9][a-z0-9]*")
_TYPE = ("kind", "apiVersion")  # said by every object, defaulted by none
_CREATED = "CreationTimestamp is a timestamp of the server's clock at the creation of the object."
_SHARED: dict[str, Schema] = {
    "Quantity": {"oneOf": _EITHER, "description": "A resource quantity, such as 500m or 64Mi."},
    "IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
}
_PACKAGES = {
    "Quantity": "api.resource",
    "IntOrString": "util.intstr",
    "Time": "apis.meta.v1",
    "MicroTime": "apis.meta.v1",
}


def schema_name(kind: type[Struct]) -> str:
    """`podfit.api.core.v1.pods.types` → `io.k8s.api.core.v1.Pod`, the names that clients know."""
    group, _, module = kind.__module__.removeprefix("podfit.api.").partition(".")
    if group == "meta":
        return f"{_MACHINERY}.apis.meta.v1.{kind.__name__}"
    if issubclass(kind, Custom):
        declared = kind.declared
        return ".".join((*reversed(declared.group.split(".")), declared.version, declared.kind))
    if group == "apiextensions":
        return f"{_EXTENSIONS}.{kind.__name__}"
    if group == "apiregistration":
        return f"{_AGGREGATOR}.{kind.__name__}"
    version = module.partition(".")[0]
    return f"{_API}{group}.{version if _VERSION.fullmatch(version) else 'v1'}.{kind.__name__}"


class Schemas:
    """What the kinds that were added hold, by name; `prefix` is where references look for it."""

    def __init__(self, prefix: str) -> None:
        self.found: dict[str, Schema] = {}
        self._prefix = prefix

    def add(self, info: ResourceInfo) -> None:
        """A kind, all that it holds, and the list of it where there is one."""
        for sub in info.subresources:
            if sub.struct is not None:
                self._collect(sub.struct)
                of = {"group": sub.group, "version": sub.version, "kind": sub.kind}
                self.found[schema_name(sub.struct)]["x-kubernetes-group-version-kind"] = [of]
        for kind in (DeleteOptions, *((Binding,) if info.type is Pod else ())):
            self._collect(kind)
        self._collect(info.type)
        name = schema_name(info.type)
        of = {"group": info.group, "version": info.version}
        self.found[name]["x-kubernetes-group-version-kind"] = [of | {"kind": info.kind}]
        if not info.readable:
            return
        listed = name.removesuffix(info.kind) + info.list_kind
        self.found[listed] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"allOf": [self._collect(ListMeta)], "default": {}},
                "items": {"type": "array", "items": {"allOf": [self._reference(name)], "default": {}}},
            },
            "x-kubernetes-group-version-kind": [of | {"kind": info.list_kind}],
        }

    def _reference(self, name: str) -> Schema:
        return {"$ref": f"{self._prefix}{name}"}

    def _collect(self, kind: type[Struct]) -> Schema:
        name = schema_name(kind)
        if issubclass(kind, Custom):
            self.found[name] = self._declared(kind.declared.schema)
        elif name not in self.found:
            self.found[name] = {"type": "object"}
            hints = get_type_hints(kind, include_extras=True)
            always = codec.to_dict(kind())
            typed = _TYPE if issubclass(kind, Object) else ()
            self.found[name]["properties"] = {
                field.encode_name: self._property(
                    hints[field.name], None if field.encode_name in typed else always.get(field.encode_name)
                )
                for field in msgspec.structs.fields(kind)
            }
            times = frozenset(
                field.encode_name
                for field in msgspec.structs.fields(kind)
                if _unwrapped(hints[field.name])[0] in _TIMES
            )
            if names := required(kind, name, always, times):
                self.found[name]["required"] = names
            if kind is ObjectMeta:
                created = self.found[name]["properties"]["creationTimestamp"]
                self.found[name]["properties"]["creationTimestamp"] = {"allOf": [created], "description": _CREATED}
            self._describe(self.found[name], name, kind)
            if kind.whole:
                self.found[name]["x-kubernetes-map-type"] = "atomic"
        return self._reference(name)

    @staticmethod
    def _describe(schema: Schema, name: str, kind: type[Struct]) -> None:
        """A reference has nothing beside it, so it is wrapped."""
        own = DESCRIPTIONS.get(name.removeprefix(_API), {})
        if text := own.get(""):
            schema["description"] = text
        fields, said = schema["properties"], {**(OF_ALL if issubclass(kind, Object) else {}), **own}
        for field, schema in fields.items():
            if text := said.get(field):
                whole: Schema = {"allOf": [schema]} if "$ref" in schema else schema
                fields[field] = {**whole, "description": text}

    def _declared(self, schema: JSONSchemaProps) -> Schema:
        """The schema of a custom resource, as its definition has it, with what every object has."""
        found: Schema = codec.to_dict(schema)
        own = {name: {"type": "string", "description": OF_ALL[name]} for name in _TYPE} | {
            "metadata": {"allOf": [self._collect(ObjectMeta)], "description": OF_ALL["metadata"]}
        }
        return found | {"properties": found.get("properties", {}) | own}

    def _named(self, name: str) -> Schema:
        self.found[f"{_EXTENSIONS}.{name}"] = {}
        return self._reference(f"{_EXTENSIONS}.{name}")

    def _shared(self, name: str) -> Schema:
        full = f"{_MACHINERY}.{_PACKAGES[name]}.{name}"
        self.found[full] = _SHARED[name]
        return self._reference(full)

    def _property(self, hint: object, default: object = None) -> Schema:
        shared, hint, listing = _unwrapped(hint)
        if shared:
            return self._shared(shared) if shared in _SHARED else self._named(shared)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is tuple:
            items = self._property(arguments[0])
            for name, value in listing.key_defaults:
                self.found[schema_name(arguments[0])]["properties"][name]["default"] = value
            return {"type": "array", "items": items, **_merging(listing)}
        if origin is dict:
            inner = {} if arguments[1] is Any else {"additionalProperties": self._property(arguments[1])}
            return {"type": "object"} | inner | _owned(listing)
        if origin in (Union, UnionType):
            return self._shared("IntOrString") if str in arguments else {"type": "number", "format": "double"}
        if hint is Quantity:
            return self._shared("Quantity")
        if isinstance(hint, type) and issubclass(hint, Struct):
            inner, notes = self._collect(hint), _strategy(listing) | _owned(listing)
            return (
                {"allOf": [inner], **({"default": {}} if default == {} else {}), **notes}
                if (default == {} or notes)
                else inner
            )
        return _SCALARS[hint] | ({} if default in (None, [], {}) or hint is Any else {"default": default})


def _unwrapped(hint: object) -> tuple[str, Any, Listing]:
    """The name of a time or of a type without a form, the hint without `| None` and notes, and how the field merges."""
    listing = Listing()
    while True:
        if hint is Time or hint is MicroTime:
            return "Time" if hint is Time else "MicroTime", str, listing
        if hint == INT32:
            return "", INT32, listing
        if get_origin(hint) is Annotated:
            hint, *notes = get_args(hint)
            listing = next((note for note in notes if isinstance(note, Listing)), listing)
            if named := next((note.name for note in notes if isinstance(note, Named)), ""):
                return named, hint, listing
        elif get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint):
            hint = reduce(or_, (arg for arg in get_args(hint) if arg is not type(None)))
        else:
            return "", hint, listing


def _strategy(listing: Listing) -> Schema:
    """How strategic merge patch treats a map that it does not simply merge."""
    strategy = "replace" if listing.replaced else "retainKeys" if listing.retain_keys else ""
    return {"x-kubernetes-patch-strategy": strategy} if strategy else {}


def _owned(listing: Listing) -> Schema:
    if listing.granular:
        return {"x-kubernetes-map-type": "granular"}
    return {"x-kubernetes-map-type": "atomic"} if listing.atomic else {}


def _merging(listing: Listing) -> Schema:
    notes: Schema = {"x-kubernetes-list-type": "atomic"}
    if listing.keys:
        notes = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(listing.keys)}
    elif listing.set_:
        notes = {"x-kubernetes-list-type": "set"}
    if listing.merge_key:
        notes["x-kubernetes-patch-merge-key"] = listing.merge_key
    if listing.merge_key or (listing.set_ and listing.patched):
        notes["x-kubernetes-patch-strategy"] = "merge,retainKeys" if listing.retain_keys else "merge"
    return notes
