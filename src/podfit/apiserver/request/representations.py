"""The forms in which an object may be answered: itself, a row of a table, or its metadata alone.

Tables are for `kubectl get`; metadata alone is for clients that watch many objects and care about labels and owners.
"""

from enum import Enum
from typing import Any

import msgspec

from podfit.api.registry import ResourceInfo
from podfit.apiserver.request.media import YAML
from podfit.apiserver.request.target import asks_to_watch
from podfit.core.errors import ApiError
from podfit.core.kept import short
from podfit.net.wire import Request

GROUP = "meta.k8s.io"
PARTIAL, PARTIAL_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
_VERSIONS = ("v1", "v1beta1")
_ANY = ("*/*", "application/json", YAML, "")
TYPES = ("application/json", YAML, "application/vnd.kubernetes.protobuf")
NONE = f"only the following media types are accepted: {', '.join(TYPES)}"
_UNKNOWN = f"406: Not Acceptable\n\nAvailable representations: {', '.join(TYPES)}"
WITHOUT_TABLES = ("resize", "ephemeralcontainers")
"""Subresources that upstream has only as objects, so that kubectl prints name and age."""
_STREAMS = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
NO_STREAM = f"only the following media types are accepted: {_STREAMS.removeprefix(', ')}"


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


def wanted_representation(request: Request, subresource: str = "", *, tables: bool = True) -> Representation:
    """The first form of the Accept header that this server has; 406 when it has none of them."""
    tables = tables and subresource not in WITHOUT_TABLES
    return _representation_of(request.headers.get("accept", ""), asks_to_watch(request), tables)


@short(256, longest=1024)
def _representation_of(accept: str, watch: bool, tables: bool) -> Representation:
    known_type = False
    for offer in accept.split(","):
        kind, *parameters = [part.strip() for part in offer.split(";")]
        asked = dict(part.partition("=")[::2] for part in parameters)
        if kind not in _ANY:
            continue
        known_type = True
        if "as" not in asked:
            return WHOLE
        known = any(asked["as"] == each.value for each in Shape if tables or each is not Shape.TABLE)
        if known and kind != YAML and asked.get("g") == GROUP and asked.get("v") in _VERSIONS:
            return Representation(Shape(asked["as"]), f"{GROUP}/{asked['v']}")
    if known_type:
        raise ApiError(406, "NotAcceptable", NONE)
    raise ApiError(406, "NotAcceptable", _UNKNOWN + (_STREAMS if watch else ""), {})


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


def partial(metadata: Any, representation: Representation) -> dict[str, Any]:
    """An object's metadata as an object of its own."""
    return {"kind": PARTIAL, "apiVersion": representation.version, "metadata": metadata}


def partial_list(items: list[Any], metadata: dict[str, Any], representation: Representation) -> dict[str, Any]:
    listed = [partial(each.metadata, representation) for each in items]
    return {"kind": PARTIAL_LIST, "apiVersion": representation.version, "metadata": metadata, "items": listed}
