"""GET of `componentstatuses`: the parts of the control plane, each asked how it is in the moment of the request.

The store answers for its servers, the others by `Context.components`. Nothing of it is stored, so there are no
revisions, no watches and no parts of lists.
"""

import asyncio
from collections.abc import Sequence

from podfit.api.core.v1.component_status import HEALTHY, ComponentCondition, ComponentStatus
from podfit.api.meta import codec
from podfit.api.meta.base import Document
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import object_response
from podfit.apiserver.handlers.options import ListOptions, revision_of
from podfit.apiserver.handlers.selection import Selection
from podfit.apiserver.handlers.tables import object_table, objects_table
from podfit.apiserver.request.representations import (
    WHOLE,
    Shape,
    check_representation,
    partial,
    partial_list,
    wanted_representation,
)
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import not_found
from podfit.core.times import format_time
from podfit.net.wire import Request, Response
from podfit.store.protocol import Record


async def component_statuses(context: Context, request_info: RequestInfo, request: Request) -> Response:
    """One or all of them. Raises 404 for a part that is not there."""
    info = request_info.info
    assert info is not None
    representation = wanted_representation(request, request_info)
    of_list = request_info.verb == "list"
    check_representation(representation, info, of_list=of_list)
    now = format_time(context.clock.now())
    if not of_list:
        revision_of(request.param("resourceVersion"))
        status = next(
            (status for status in await _observed(context) if status.metadata.name == request_info.name), None
        )
        if status is None:
            raise not_found(info.resource, request_info.name)
        if representation == WHOLE:
            return object_response(status)
        if representation.shape is Shape.PARTIAL:
            return object_response(partial(status.metadata, representation))
        return object_response(object_table(info, status, now, request, representation))
    ListOptions.of(request, watch=False)
    statuses = await _selected(context, Selection.of(info, request))
    if representation == WHOLE:
        return object_response(_list(statuses))
    if representation.shape is Shape.PARTIAL_LIST:
        return object_response(partial_list(list(statuses), {}, representation))
    return object_response(objects_table(info, statuses, now, request, representation))


def _list(statuses: Sequence[ComponentStatus]) -> Document:
    items = [{"metadata": status.metadata, "conditions": status.conditions} for status in statuses]
    return {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items}


async def _selected(context: Context, selection: Selection) -> list[ComponentStatus]:
    statuses = await _observed(context)
    if not selection:
        return statuses
    records = [Record(f"/{status.metadata.name}", codec.encode(status), 0, 0) for status in statuses]
    return [status for status, record in zip(statuses, records, strict=True) if selection.matches(record)]


async def _observed(context: Context) -> list[ComponentStatus]:
    """All of them, asked side by side, by name."""
    others = asyncio.gather(*(ask() for ask in context.components.values()))
    servers, answers = await asyncio.gather(context.store.servers(), others)
    problems = {**servers, **dict(zip(context.components, answers, strict=True))}
    return [_status(name, problem) for name, problem in sorted(problems.items())]


def _status(name: str, problem: str) -> ComponentStatus:
    well = "False" if problem else "True"
    condition = ComponentCondition(type=HEALTHY, status=well, message=problem or "ok")
    return ComponentStatus(metadata=ObjectMeta(name=name), conditions=(condition,))
