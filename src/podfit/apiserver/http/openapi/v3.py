"""Version 3: an index, and a document for each group and version."""

import hashlib
from functools import lru_cache
from typing import TypeAlias

import msgspec

from podfit.api.meta.base import Document
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.structural.custom import is_custom
from podfit.apiserver.http.openapi.paths import Operation, Parameter, Path, paths
from podfit.apiserver.http.openapi.schemas import Schemas

ROOT = "/openapi/v3"
Infos: TypeAlias = tuple[ResourceInfo, ...]
_PREFIX = "#/components/schemas/"


def index(infos: Infos) -> Document:
    hashes = {name: document(infos, name)[1] for name in names(infos)}
    return {"paths": {name: {"serverRelativeURL": f"{ROOT}/{name}?hash={digest}"} for name, digest in hashes.items()}}


@lru_cache(maxsize=4)
def names(infos: Infos) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(info) for info in infos))


def document(infos: Infos, name: str) -> tuple[bytes, str]:
    """A document of the index, and its hash."""
    return _document(tuple(info for info in infos if _name(info) == name))


@lru_cache(maxsize=256)
def _document(infos: Infos) -> tuple[bytes, str]:
    schemas = Schemas(_PREFIX)
    for info in infos:
        schemas.add(info)
    body = msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "podfit", "version": "v1.36.2"},
            "paths": {path.path: _item(path) for info in infos for path in paths(info, custom=is_custom(info.type))},
            "components": {"schemas": schemas.found},
        }
    )
    return body, hashlib.sha512(body).hexdigest().upper()


def _name(info: ResourceInfo) -> str:
    return f"apis/{info.group}/{info.version}" if info.group else f"api/{info.version}"


def _item(path: Path) -> Document:
    return {"parameters": [_parameter(parameter) for parameter in path.parameters]} | {
        operation.method: _operation(operation) for operation in path.operations
    }


def _parameter(parameter: Parameter) -> Document:
    return parameter.described() | {"schema": {"type": parameter.type}}


def _operation(operation: Operation) -> Document:
    content = {kind: {"schema": operation.schema(kind, _PREFIX)} for kind in operation.kinds}
    required = {} if operation.optional else {"required": True}
    return {
        "parameters": [_parameter(parameter) for parameter in operation.parameters],
        **({"requestBody": {"content": content} | required} if content else {}),
        "responses": {"200": {"description": "OK"}},
        **operation.notes,
    }
