"""The forms in which an object may be answered: itself, a row of a table, or its metadata alone.

Tables are for `kubectl get`; metadata alone is for clients that watch many objects and care about labels and owners.
"""

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from podfit.api.meta.base import Document
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.structural.custom import is_custom
from podfit.apiserver.request.negotiation import JSON, YAML, accepts, negotiated, offers
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.bounded_cache import cached_where_short
from podfit.core.errors import ApiError
from podfit.net.wire import Request

GROUP, DISCOVERY = "meta.k8s.io", "apidiscovery.k8s.io"
PARTIAL, PARTIAL_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
_VERSIONS = ("v1", "v1beta1")
PROTOBUF = "application/vnd.kubernetes.protobuf"
KINDS = (JSON, YAML)
TYPES = (*KINDS, PROTOBUF)
"""Those that upstream has: clients look for them in refusals."""
NONE = f"only the following media types are accepted: {', '.join(TYPES)}"
NO_PROTOBUF = f"this server answers in no protobuf, only in: {', '.join(KINDS)}"
WITHOUT_TABLES = ("resize", "ephemeralcontainers")
"""Subresources that upstream has only as objects, so that kubectl prints name and age."""
_STREAMS = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
NO_STREAM = f"only the following media types are accepted: {_STREAMS.removeprefix(', ')}"
_CONVERSIONS = ("as", "g", "v")


class Shape(Enum):
    OBJECT = ""
    TABLE = "Table"
    PARTIAL = PARTIAL
    PARTIAL_LIST = PARTIAL_LIST


class Representation(msgspec.Struct, frozen=True):
    """`version` is that of `meta.k8s.io` in which tables and metadata are written."""

    shape: Shape = Shape.OBJECT
    version: str = f"{GROUP}/v1"


WHOLE = Representation()


def unknown_types(*, many: bool) -> str:
    """What is said where no media type is known; `many`: of a page of many objects, which can be watched."""
    text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(TYPES)}"
    return text + _STREAMS if many else text


def wanted_representation(request: Request, request_info: RequestInfo, *, tables: bool = True) -> Representation:
    """The best of the forms in the Accept header that this server has; 406 when it has none of them."""
    tables = tables and request_info.subresource not in WITHOUT_TABLES
    custom = request_info.info is not None and is_custom(request_info.info.type)
    return _representation_of(request.headers.get("accept", ""), request_info.verb in ("list", "watch"), tables, custom)


@cached_where_short(256, longest=1024)
def _representation_of(accept: str, many: bool, tables: bool, custom: bool) -> Representation:
    if not custom and not accepts(accept, TYPES):
        raise ApiError(406, "NotAcceptable", unknown_types(many=many), {})
    found = negotiated(accept, KINDS, functools.partial(_form, tables=tables))
    if found is None:
        only_protobuf = all(offer.kind == PROTOBUF for offer in offers(accept))
        raise ApiError(406, "NotAcceptable", NO_PROTOBUF if only_protobuf else NONE)
    return found[1]


def _form(kind: str, parameters: Mapping[str, str], *, tables: bool = True) -> tuple[str, Representation] | None:
    if not _plain(kind, parameters):
        return None
    if not any(name in parameters for name in _CONVERSIONS):
        return kind, WHOLE
    shape, version = parameters.get("as", ""), parameters.get("v", "")
    known = any(
        shape == candidate.value
        for candidate in Shape
        if candidate is not Shape.OBJECT and (tables or shape != "Table")
    )
    if not known or parameters.get("g") != GROUP or version not in _VERSIONS:
        return None
    return kind, Representation(Shape(shape), f"{GROUP}/{version}")


def _plain(kind: str, parameters: Mapping[str, str]) -> bool:
    """Whether what is asked besides the form can be given: streams are of JSON, the server has one version."""
    stream, version = parameters.get("stream", ""), parameters.get("sv", "")
    return (not stream or (stream == "watch" and kind == JSON)) and version in ("", "v1")


def wanted_media(request: Request) -> tuple[str, bool]:
    """The type in which an answer is written, and whether its parameters ask for an indented one."""
    return _media(request.headers.get("accept", ""))


@cached_where_short(256, longest=1024)
def _media(accept: str) -> tuple[str, bool]:
    def form(kind: str, parameters: Mapping[str, str]) -> tuple[str, bool] | None:
        known = _form(kind, parameters) or (parameters.get("g") == DISCOVERY and _plain(kind, parameters))
        return (kind, parameters.get("pretty") == "1") if known else None

    return negotiated(accept, KINDS, form) or (JSON, False)


def check_representation(representation: Representation, info: ResourceInfo, *, of_list: bool) -> None:
    """Raises 406 where metadata of a list is asked for of one object, or the other way round."""
    if representation is WHOLE:
        return
    name = f"*{info.group.partition('.')[0] or 'core'}.{info.kind}"
    if representation.shape is Shape.PARTIAL and of_list:
        what = f"is a list ({name}List)"
    elif representation.shape is Shape.PARTIAL_LIST and not of_list:
        what = f"is not a list ({name})"
    else:
        return
    text = f"you requested {representation.shape.value}, but the requested object {what}"
    raise ApiError(406, "NotAcceptable", text)


def partial(metadata: object, representation: Representation) -> Document:
    """An object's metadata as an object of its own."""
    return {"kind": PARTIAL, "apiVersion": representation.version, "metadata": metadata}


def partial_list(items: list[Any], metadata: Document, representation: Representation) -> Document:
    listed = [partial(item.metadata, representation) for item in items]
    return {"kind": PARTIAL_LIST, "apiVersion": representation.version, "metadata": metadata, "items": listed}
