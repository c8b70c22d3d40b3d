"""Version 3: an index, and a document for each group and version."""

import hashlib
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from podfit.api.custom import is_custom
from podfit.api.registry import ResourceInfo
from podfit.apiserver.openapi.paths import bodies, paths
from podfit.apiserver.openapi.schemas import Schemas

ROOT = "/openapi/v3"
Infos: TypeAlias = tuple[ResourceInfo, ...]
_VERBS = {"post": "create", "put": "update"}


def index(infos: Infos) -> dict[str, Any]:
    hashes = {name: document(infos, name)[1] for name in names(infos)}
    return {"paths": {name: {"serverRelativeURL": f"{ROOT}/{name}?hash={each}"} for name, each in hashes.items()}}


@lru_cache(maxsize=4)
def names(infos: Infos) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(info) for info in infos))


def document(infos: Infos, name: str) -> tuple[bytes, str]:
    """A document of the index, and its hash."""
    return _document(tuple(info for info in infos if _name(info) == name))


@lru_cache(maxsize=256)
def _document(infos: Infos) -> tuple[bytes, str]:
    schemas = Schemas("#/components/schemas/")
    for info in infos:
        schemas.add(info)
    body = msgspec.json.encode({
        "openapi": "3.0.0",
        "info": {"title": "podfit", "version": "v1.36.2"},
        "paths": {path: _item(item, custom=is_custom(info.type)) for info in infos for path, item in paths(info)},
        "components": {"schemas": schemas.found},
    })  # fmt: skip
    return body, hashlib.sha512(body).hexdigest().upper()


def _name(info: ResourceInfo) -> str:
    return f"apis/{info.group}/{info.version}" if info.group else f"api/{info.version}"


def _item(item: dict[str, Any], *, custom: bool) -> dict[str, Any]:
    return {
        method: _operation(_VERBS.get(method, method), operation, custom=custom) for method, operation in item.items()
    }


def _operation(verb: str, operation: dict[str, Any], *, custom: bool) -> dict[str, Any]:
    parameters = [each | {"schema": {"type": "string"}} for each in operation["parameters"]]
    content: dict[str, Any] = {each: {"schema": {}} for each in bodies(verb, custom=custom)}
    return operation | {"parameters": parameters} | ({"requestBody": {"content": content}} if content else {})
