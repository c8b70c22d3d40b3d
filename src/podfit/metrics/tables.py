"""Tables of pod and node metrics, as `kubectl get` shows them."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Raw

from podfit.api.meta import codec
from podfit.api.metrics.v1beta1.types import NodeMetrics, PodMetrics
from podfit.core.quantity import Quantity
from podfit.net.loop_turns import in_turns
from podfit.net.wire import Request

TABLE = "as=Table"
VERSION = "meta.k8s.io/v1"


def wants_table(request: Request) -> bool:
    """Whether the form that the client likes best is a table."""
    first = request.headers.get("accept", "").split(",")[0].replace(" ", "")
    return TABLE in first.split(";") and "v=v1" in first.split(";")


async def table(request: Request, objects: Sequence[PodMetrics | NodeMetrics]) -> dict[str, Any]:
    """Columns of the resources that are told, by name. Rows are encoded, some in each turn of the event loop."""
    used = await in_turns(map(_usage, objects))
    names = sorted({name for one in used for name in one})
    columns = [
        {"name": "Name", "type": "string", "format": "name", "description": "Name of the resource", "priority": 0},
        *({"name": name, "type": "string", "format": "quantity", "description": "", "priority": 0} for name in names),
        {"name": "Window", "type": "string", "format": "duration", "description": "", "priority": 0},
    ]
    rows = await in_turns(_row(request, obj, one, names) for obj, one in zip(objects, used, strict=True))
    return {"kind": "Table", "apiVersion": VERSION, "metadata": {}, "columnDefinitions": columns, "rows": rows}


def _row(request: Request, obj: PodMetrics | NodeMetrics, used: dict[str, Quantity], names: Sequence[str]) -> Raw:
    cells = [obj.metadata.name, *(str(used.get(name, "")) for name in names), obj.window]
    return Raw(codec.encode({"cells": cells, "object": _inside(request, obj)}))


def _usage(obj: PodMetrics | NodeMetrics) -> dict[str, Quantity]:
    """Of a pod the sum of its containers."""
    if isinstance(obj, NodeMetrics):
        return obj.usage
    return _sum(container.usage for container in obj.containers)


def _sum(parts: Iterable[dict[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _inside(request: Request, obj: PodMetrics | NodeMetrics) -> Any:
    """How much of its object a row carries, as the request says."""
    match request.param("includeObject"):
        case "None":
            return None
        case "Object":
            return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": VERSION, "metadata": obj.metadata}
