"""Version 2: one document of everything, in JSON and in the protobuf that kubectl takes it in.

The protobuf form holds the definitions: they are what its only known readers, clients of Go, look at, to check and
explain objects of kinds that version 3 does not tell them, such as `List`.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.structural.custom import is_custom
from podfit.apiserver.http.openapi.paths import Operation, Parameter, Path, paths
from podfit.apiserver.http.openapi.schemas import Schemas, schema_name

ROOT = "/openapi/v2"
PROTOBUF = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
"""The name that can be parsed, which is how an answer is called, and the one that kubectl up to 1.34 asks for."""
Infos: TypeAlias = tuple[ResourceInfo, ...]
_PREFIX = "#/definitions/"
_UNSAID = ("allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations")
_PRESERVED, _KIND = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-group-version-kind"
_INFO = {"title": "podfit", "version": "v1.36.2"}


@lru_cache(maxsize=4)
def document(infos: Infos) -> tuple[bytes, str]:
    body = msgspec.json.encode(
        {
            "swagger": "2.0",
            "info": _INFO,
            "paths": {path.path: _item(path) for info in infos for path in paths(info, custom=is_custom(info.type))},
            "definitions": definitions(infos),
        }
    )
    return body, _digest(body)


@lru_cache(maxsize=4)
def protobuf(infos: Infos) -> tuple[bytes, str]:
    """The message openapi.v2.Document."""
    named = b"".join(_message(1, _named(name, _schema(definition))) for name, definition in definitions(infos).items())
    about = _text(1, _INFO["title"]) + _text(2, _INFO["version"])
    body = _text(1, "2.0") + _message(2, about) + _message(8, b"") + _message(9, named)
    return body, _digest(body)


@lru_cache(maxsize=4)
def definitions(infos: Infos) -> dict[str, dict[str, Any]]:
    schemas = Schemas(_PREFIX)
    for info in infos:
        schemas.add(info)
    declared = {schema_name(info.type) for info in infos if is_custom(info.type)}
    return {name: _plain(_declared(schema) if name in declared else schema) for name, schema in schemas.found.items()}


def _declared(schema: dict[str, Any]) -> dict[str, Any]:
    """What is declared of a custom resource. Where anything may stand at the root, clients are told of nothing that
    they could check."""
    if schema.get(_PRESERVED):
        return {"type": "object", _KIND: schema[_KIND]}
    found: dict[str, Any] = _without_junctors(schema)
    found["properties"]["metadata"] = schema["properties"]["metadata"]
    return found


def _without_junctors(schema: object) -> Any:
    """What version 2 can say of a custom resource's schema."""
    if isinstance(schema, list):
        return [_without_junctors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in _UNSAID}
    if isinstance(kept.get("additionalProperties"), bool):
        del kept["additionalProperties"]
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = _without_junctors(kept[name])
    if "properties" in kept:
        kept["properties"] = {name: _without_junctors(prop) for name, prop in kept["properties"].items()}
    return kept


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the words of version 2, which has neither alternatives nor defaults beside references."""
    if "allOf" in schema:
        kept = {name: value for name, value in schema.items() if name == "description" or name.startswith("x-")}
        return {**schema["allOf"][0], **kept}
    if "oneOf" in schema:
        return {"type": "string", **{name: value for name, value in schema.items() if name != "oneOf"}}
    plain = {name: value for name, value in schema.items() if name != "default"}
    for name in ("items", "additionalProperties"):
        if name in plain:
            plain[name] = _plain(plain[name])
    if "properties" in plain:
        plain["properties"] = {name: _plain(prop) for name, prop in plain["properties"].items()}
    return plain


def _item(path: Path) -> dict[str, Any]:
    return {"parameters": [_parameter(parameter) for parameter in path.parameters]} | {
        operation.method: _operation(operation) for operation in path.operations
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return parameter.described() | {"type": parameter.type}


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [_parameter(parameter) for parameter in operation.parameters]
    if operation.kinds:
        schema = {"type": "object"} if operation.verb == "patch" else operation.schema("", _PREFIX)
        parameters.append({"name": "body", "in": "body", "required": not operation.optional, "schema": schema})
    return {
        "parameters": parameters,
        "consumes": operation.kinds or ("*/*",),
        "produces": ["application/json"],
        "responses": {"200": {"description": "OK"}},
        **operation.notes,
    }


def _digest(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _schema(schema: dict[str, Any]) -> bytes:
    """The message Schema; extensions are YAML texts, which JSON is."""
    parts = [_text(number, schema.get(name, "")) for number, name in ((1, "$ref"), (2, "format"), (4, "description"))]
    parts += [_text(19, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        parts.append(_message(21, _message(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        inner = schema["properties"].items()
        parts.append(_message(25, b"".join(_message(1, _named(name, _schema(value))) for name, value in inner)))
    parts += _extensions((name, value) for name, value in schema.items() if name.startswith("x-"))
    return b"".join(parts)


def _extensions(extensions: Iterable[tuple[str, Any]]) -> list[bytes]:
    return [_message(31, _named(name, _text(2, msgspec.json.encode(value).decode()))) for name, value in extensions]


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _message(2, value)


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode()) if text else b""


def _message(number: int, data: bytes) -> bytes:
    """A field of bytes: its number with wire type 2, its length, itself."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
