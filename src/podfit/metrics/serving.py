"""metrics.k8s.io/v1beta1 as a wire handler; authentication and authorization come before it.

Pods are those that run, in the order of their namespaces and names, with their labels; of one that was not read twice
nothing is told. Answers are objects or tables, as the client asks.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.selector_text import parse_fields, parse_labels
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.metrics.v1beta1.types import GROUP, GROUP_VERSION, VERSION, ContainerMetrics, NodeMetrics, PodMetrics
from podfit.client.informer import Informer
from podfit.core.clock import Clock
from podfit.core.durations import go_duration
from podfit.core.errors import ApiError, bad_request, method_not_allowed, not_found
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import SelectorError
from podfit.core.times import format_time
from podfit.metrics.points import Points, Usage
from podfit.metrics.running_pods import Pods
from podfit.net.loop_turns import in_turns
from podfit.net.wire import Request, Response

TABLE = "as=Table"
META = "meta.k8s.io/v1"


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
    return {"kind": "Table", "apiVersion": META, "metadata": {}, "columnDefinitions": columns, "rows": rows}


def _row(request: Request, obj: PodMetrics | NodeMetrics, used: dict[str, Quantity], names: Sequence[str]) -> Raw:
    cells = [obj.metadata.name, *(str(used.get(name, "")) for name in names), obj.window]
    return Raw(codec.encode({"cells": cells, "object": _inside(request, obj)}))


def _usage(obj: PodMetrics | NodeMetrics) -> dict[str, Quantity]:
    """The usage of a pod, the sum of its containers."""
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
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj.metadata}


ROOT = f"/apis/{GROUP_VERSION}"
_KINDS = (
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
)
_IN_GROUP = {"groupVersion": GROUP_VERSION, "version": VERSION}
_GROUP: dict[str, Any] = {"name": GROUP, "versions": [_IN_GROUP], "preferredVersion": _IN_GROUP}
DISCOVERY: dict[str, dict[str, Any]] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    ROOT: {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": _KINDS},
}

Measured = PodMetrics | NodeMetrics


class MetricsApi:
    def __init__(self, points: Points, pods: Pods, nodes: Informer[Node], *, clock: Clock) -> None:
        self._points, self._pods, self._nodes, self._clock = points, pods, nodes, clock

    async def __call__(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except ApiError as error:
            return Response(error.code, {"content-type": "application/json"}, msgspec.json.encode(error.status()))

    async def _answer(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path in DISCOVERY:
            return _json(DISCOVERY[path])
        match path.removeprefix(ROOT).split("/")[1:] if path.startswith(f"{ROOT}/") else []:
            case ["nodes"]:
                return await self._listed(request, "NodeMetricsList", self._of_nodes())
            case ["nodes", name]:
                _only_get(request)
                return await _object(request, self._node(self._nodes.get(name)), "nodemetrics", name)
            case ["pods"]:
                return await self._listed(request, "PodMetricsList", self._of_pods(""))
            case ["namespaces", namespace, "pods"]:
                return await self._listed(request, "PodMetricsList", self._of_pods(namespace))
            case ["namespaces", namespace, "pods", name]:
                _only_get(request)
                found = self._pod(self._pods.get(name, namespace))
                return await _object(request, found, "podmetrics", f"{namespace}/{name}")
        raise ApiError(404, "NotFound", "the server could not find the requested resource", {})

    async def _listed(self, request: Request, kind: str, objects: Iterator[Measured]) -> Response:
        _only_get(request)
        if request.param("watch") in ("1", "true"):
            raise method_not_allowed()
        found = await in_turns(_selected(request, objects))
        selected = [measured for measured in found if measured is not None]
        if wants_table(request):
            return _json(await table(request, selected))
        items = await in_turns(msgspec.Raw(codec.encode(_item(obj))) for obj in selected)
        return _json({"kind": kind, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items})

    def _of_pods(self, namespace: str) -> Iterator[PodMetrics]:
        known = sorted(self._pods.list(namespace), key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
        return (found for pod in known if (found := self._pod(pod)) is not None)

    def _of_nodes(self) -> Iterator[NodeMetrics]:
        known = sorted(self._nodes.list(), key=lambda node: node.metadata.name)
        return (found for node in known if (found := self._node(node)) is not None)

    def _pod(self, pod: Pod | None) -> PodMetrics | None:
        if pod is None or (used := self._points.pod((pod.metadata.namespace, pod.metadata.name))) is None:
            return None
        return PodMetrics(
            metadata=self._meta(pod),
            timestamp=format_time(datetime.fromtimestamp(used.time, UTC)),
            window=go_duration(used.window),
            containers=tuple(
                ContainerMetrics(name=name, usage=_quantities(one)) for name, one in used.containers.items()
            ),
        )

    def _node(self, node: Node | None) -> NodeMetrics | None:
        if node is None or (used := self._points.node(node.metadata.name)) is None:
            return None
        return NodeMetrics(
            metadata=self._meta(node),
            timestamp=format_time(datetime.fromtimestamp(used.time, UTC)),
            window=go_duration(used.window),
            usage=_quantities(used),
        )

    def _meta(self, of: Pod | Node) -> ObjectMeta:
        meta = of.metadata
        return ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            creation_timestamp=format_time(self._clock.now()),
            labels=meta.labels,
        )


def _selected(request: Request, objects: Iterator[Measured]) -> Iterator[Measured | None]:
    """None for one that is not selected. Raises ApiError 400."""
    try:
        labels, fields = parse_labels(request.param("labelSelector")), parse_fields(request.param("fieldSelector"))
    except SelectorError as error:
        raise bad_request(str(error)) from None
    for sample in objects:
        meta = sample.metadata
        names = {"metadata.name": meta.name, "metadata.namespace": meta.namespace}
        yield sample if labels.matches(meta.labels) and fields.matches(names) else None


def _quantities(used: Usage) -> dict[str, Quantity]:
    return {CPU: Quantity(used.cpu), MEMORY: Quantity.of_bytes(used.memory)}


def _item(obj: Measured) -> dict[str, Any]:
    """The member of a list, which says for all of them what they are."""
    fields = msgspec.structs.asdict(obj)
    del fields["kind"], fields["api_version"]
    return fields


async def _object(request: Request, obj: Measured | None, resource: str, name: str) -> Response:
    """Raises NotFound, in metrics-server's words."""
    if obj is None:
        raise not_found(resource, name, group=GROUP)
    return _json(await table(request, [obj]) if wants_table(request) else obj)


def _json(body: Any) -> Response:
    return Response(200, {"content-type": "application/json"}, codec.encode(body))


def _only_get(request: Request) -> None:
    if request.method != "GET":
        raise method_not_allowed()
