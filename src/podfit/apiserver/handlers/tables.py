"""Tables, the form that `kubectl get` asks for."""

from collections.abc import Iterable, Sequence

import msgspec

from podfit.api.meta.base import Document, Object
from podfit.api.meta.resource_info import Column, ResourceInfo
from podfit.apiserver.registry import stored
from podfit.apiserver.request.representations import Representation, partial
from podfit.core.errors import bad_request
from podfit.core.fields import invalid
from podfit.net.wire import Request
from podfit.store.protocol import Record

_DEFAULT_COLUMNS = (
    Column("Name", "string", "name", "Name must be unique within a namespace."),
    Column("Age", "string", "", "The age of the object."),
)


def list_table(
    info: ResourceInfo,
    records: Sequence[Record],
    metadata: Document,
    now: str,
    request: Request,
    representation: Representation,
) -> Document:
    return table(info, list(rows(info, records, now, included(request), representation)), metadata, representation)


def object_table(
    info: ResourceInfo, obj: Object, now: str, request: Request, representation: Representation
) -> Document:
    """A table of one object that is not in the store in this form."""
    version = obj.metadata.resource_version
    metadata = {"resourceVersion": version} if version else {}
    return table(info, [_row(info, obj, obj, now, included(request), representation)], metadata, representation)


def objects_table(
    info: ResourceInfo, objects: Iterable[Object], now: str, request: Request, representation: Representation
) -> Document:
    """A table of objects that are not in the store at all."""
    include = included(request)
    return table(info, [_row(info, obj, obj, now, include, representation) for obj in objects], {}, representation)


def table(
    info: ResourceInfo,
    rows: list[Document],
    metadata: Document,
    representation: Representation,
    *,
    columns: bool = True,
) -> Document:
    return {
        "kind": "Table",
        "apiVersion": representation.version,
        "metadata": metadata,
        "columnDefinitions": definitions(info) if columns else None,
        "rows": rows,
    }


def included(request: Request) -> str:
    """How much of its object a row carries: Metadata, Object or None."""
    given = request.param("includeObject") or "Metadata"
    if given not in ("Metadata", "Object", "None"):
        error = invalid("includeObject", given, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return given


def definitions(info: ResourceInfo) -> list[Document]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in info.columns or _DEFAULT_COLUMNS
    ]


def rows(
    info: ResourceInfo, records: Iterable[Record], now: str, include: str, representation: Representation
) -> Iterable[Document]:
    for record in records:
        yield table_row(info, record, stored.decoded(info, record), now, include, representation)


def table_row(
    info: ResourceInfo, record: Record, obj: Object, now: str, include: str, representation: Representation
) -> Document:
    raw = msgspec.Raw(stored.whole(info, record)) if include == "Object" else None
    return _row(info, obj, raw, now, include, representation)


def _row(
    info: ResourceInfo, obj: Object, whole: object, now: str, include: str, representation: Representation
) -> Document:
    cells = info.row(obj, now) if info.row else [obj.metadata.name, obj.metadata.creation_timestamp]
    shown = (
        {"Object": whole, "None": None}.get(include) if include != "Metadata" else partial(obj.metadata, representation)
    )
    conditions = info.row_conditions(obj) if info.row_conditions else []
    return {"cells": cells, **({"conditions": conditions} if conditions else {}), "object": shown}
