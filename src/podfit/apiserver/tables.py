"""Tables: what `kubectl get` asks for instead of objects."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import msgspec

from podfit.api.registry import Column, ResourceInfo
from podfit.apiserver import stored
from podfit.core.errors import ApiError, bad_request
from podfit.core.fields import invalid
from podfit.net.wire import Request
from podfit.store.protocol import Record

VERSION = "meta.k8s.io/v1"
_ANY = ("*/*", "application/*", "application/json", "")
_DEFAULT_COLUMNS = (
    Column("Name", "string", "name", "Name must be unique within a namespace."),
    Column("Age", "string", "", "The age of the object."),
)


class Form(Enum):
    OBJECT = "object"
    TABLE = "table"


def wanted_form(request: Request) -> Form:
    """The first form of the Accept header that this server has; 406 when it has none of them."""
    offers = [offer.strip() for offer in request.headers.get("accept", "").split(",")]
    for offer in offers:
        kind, *parameters = [part.strip() for part in offer.split(";")]
        asked = dict(part.partition("=")[::2] for part in parameters)
        if kind not in _ANY:
            continue
        if asked.get("as") == "Table" and asked.get("g") == "meta.k8s.io" and asked.get("v") == "v1":
            return Form.TABLE
        if "as" not in asked:
            return Form.OBJECT
    text = "only the following media types are accepted: application/json, application/json;as=Table;g=meta.k8s.io;v=v1"
    raise ApiError(406, "NotAcceptable", text)


def list_table(
    info: ResourceInfo, records: Sequence[Record], metadata: dict[str, Any], now: str, request: Request
) -> dict[str, Any]:
    return {
        "kind": "Table", "apiVersion": VERSION, "metadata": metadata, "columnDefinitions": definitions(info),
        "rows": list(rows(info, records, now, included(request))),
    }  # fmt: skip


def included(request: Request) -> str:
    """How much of its object a row carries: Metadata, Object or None."""
    given = request.param("includeObject") or "Metadata"
    if given not in ("Metadata", "Object", "None"):
        error = invalid("includeObject", given, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return given


def definitions(info: ResourceInfo) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "type": each.type, "format": each.format, "description": each.description,
         "priority": each.priority}
        for each in info.columns or _DEFAULT_COLUMNS
    ]  # fmt: skip


def rows(info: ResourceInfo, records: Iterable[Record], now: str, include: str) -> Iterable[dict[str, Any]]:
    for record in records:
        obj = stored.decoded(info, record)
        cells = info.row(obj, now) if info.row else [obj.metadata.name, obj.metadata.creation_timestamp]
        row: dict[str, Any] = {"cells": cells}
        if include == "Object":
            row["object"] = msgspec.Raw(stored.whole(info, record))
        elif include == "None":
            row["object"] = None
        else:
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": VERSION, "metadata": obj.metadata}
        yield row
