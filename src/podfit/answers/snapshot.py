"""Everything an answer needs, read once and read only.

Rights may be missing, metrics may not be served, and on a cluster with thousands of pods only those of the nodes in
question matter. What could not be read is part of the answer (`unread`), never guessed.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import msgspec

from podfit.answers.ages import Age, age_of
from podfit.answers.kinds import LIMIT_RANGES, NODES, PODS, QUOTAS
from podfit.answers.policies import Policies, read_policies
from podfit.answers.target import NODE, POD, Target
from podfit.api import codec
from podfit.api.core.limits import LimitRange, ResourceQuota
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod, PodSpec
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.errors import ApiError, not_found
from podfit.core.quantity import Quantity
from podfit.core.selectors import parse_labels

ENDED = ("Succeeded", "Failed")
PodName = tuple[str, str]
T = TypeVar("T")
Other = TypeVar("Other")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those the question is about, by name; `neighbours` all pods of their nodes that have not ended.

    `usage` is memory in bytes by pod and container, None where no metrics are served. `template` is the pod spec of the
    workload that the pods come from. `unread` are lines for people. `policies` are those of the nodes' kubelets.
    `unscheduled` are pods that wait for a node, when the question is about one.
    """

    age: Age
    namespace: str
    pods: tuple[Pod, ...] = ()
    neighbours: tuple[Pod, ...] = ()
    nodes: Mapping[str, Node] = msgspec.field(default_factory=dict)
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    usage: Mapping[PodName, Mapping[str, int]] | None = None
    template: PodSpec | None = None
    unread: tuple[str, ...] = ()
    policies: Mapping[str, Policies] = msgspec.field(default_factory=dict)
    unscheduled: tuple[Pod, ...] = ()


class _Workload(msgspec.Struct, rename="camel"):
    spec: "_WorkloadSpec"


class _WorkloadSpec(msgspec.Struct, rename="camel"):
    selector: Any = None
    template: Pod = Pod()


class _Metrics(msgspec.Struct):
    items: tuple[Any, ...] = ()


class Reader:
    """Reads one snapshot. Raises ApiError for the target itself, ConnectionError when there is no answer.

    What does not need to know the answer to something else is asked at once, and all answers are waited for, so that a
    refusal leaves no request on its way.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._unread: list[str] = []

    async def read(self, target: Target) -> Snapshot:
        age, (pods, template, node) = await together(self.age(), self._about(target))
        names = {pod.spec.node_name for pod in pods if pod.spec.node_name} | ({node} if node else set())
        (nodes, on_nodes, limit_ranges, quotas, usage), (policies, unscheduled) = await asyncio.gather(
            asyncio.gather(self._nodes(names), self._on_nodes(names), self._list(LIMIT_RANGES),
                           self._list(QUOTAS), self._usage()),
            asyncio.gather(self._policies(names), self._unscheduled() if node else _nothing()))
        return Snapshot(
            age=age, namespace=self._namespace, pods=pods, neighbours=on_nodes or pods, nodes=nodes,
            limit_ranges=limit_ranges, quotas=quotas, usage=usage, template=template, unread=tuple(self._unread),
            policies=policies, unscheduled=unscheduled)

    async def everything(self) -> Snapshot:
        """All namespaces: every pod that has not ended and every node, in one list each."""
        (age, pods), nodes = await together(together(self.age(), self._client.list(PODS)), self._list(NODES))
        alive = tuple(pod for pod in pods.items if pod.status.phase not in ENDED)
        return Snapshot(
            age=age, namespace="", pods=alive, neighbours=alive, unread=tuple(self._unread),
            nodes={each.metadata.name: each for each in nodes})

    async def age(self) -> Age:
        told = msgspec.json.decode(await self._client.request("GET", "/version"), type=dict[str, Any])
        return age_of(str(told.get("minor", "")), str(told.get("gitVersion", "")))

    async def _about(self, target: Target) -> tuple[tuple[Pod, ...], PodSpec | None, str]:
        if target.kind is NODE:
            return (), None, target.name
        if target.kind is POD:
            return (await self._client.get(PODS, target.name, self._namespace),), None, ""
        pods, template = await self.of_workload(target)
        return pods, template, ""

    async def of_workload(self, target: Target) -> tuple[tuple[Pod, ...], PodSpec]:
        """Its pods that have not ended, and the template that they come from."""
        try:
            body = await self._client.request("GET", target.path(self._namespace))
        except ApiError as error:
            raise _missing_kind(target, error) from error
        workload = codec.decode(body, _Workload)
        listed = await self._client.list(PODS, self._namespace, labels=query_of(workload.spec.selector))
        pods = tuple(pod for pod in listed.items if pod.status.phase not in ENDED)
        return tuple(sorted(pods, key=lambda pod: pod.metadata.name)), workload.spec.template.spec

    async def _nodes(self, names: set[str]) -> dict[str, Node]:
        found = await asyncio.gather(*map(self._node, sorted(names)))
        return {each.metadata.name: each for each in found if each is not None}

    async def _node(self, name: str) -> Node | None:
        try:
            return await self._client.get(NODES, name)
        except ApiError as error:
            self._unread.append(f"node {name}: {error.message}")
            return None

    async def _policies(self, names: set[str]) -> dict[str, Policies]:
        nodes = sorted(names)
        told = await asyncio.gather(*(read_policies(self._client, name) for name in nodes))
        return dict(zip(nodes, told, strict=True))

    async def _unscheduled(self) -> tuple[Pod, ...]:
        try:
            page = await self._client.list(PODS, fields="spec.nodeName=,status.phase=Pending")
        except ApiError as error:
            self._unread.append(f"pods that wait for a node: {error.message}")
            return ()
        return tuple(pod for pod in page.items if not pod.spec.node_name and pod.status.phase == "Pending")

    async def _on_nodes(self, names: set[str]) -> tuple[Pod, ...]:
        found = await asyncio.gather(*map(self._on_node, sorted(names)))
        return tuple(pod for pods in found for pod in pods)

    async def _on_node(self, name: str) -> tuple[Pod, ...]:
        try:
            page = await self._client.list(PODS, fields=f"spec.nodeName={name}")
        except ApiError as error:
            self._unread.append(f"the other pods of node {name}: {error.message}")
            return ()
        return tuple(pod for pod in page.items if pod.status.phase not in ENDED)

    async def _list(self, kind: Resource[T]) -> tuple[T, ...]:
        where = self._namespace if kind.info.namespaced else ""
        try:
            return (await self._client.list(kind, where)).items
        except ApiError as error:
            self._unread.append(f"{kind.info.kind}s of {where or 'the cluster'}: {error.message}")
            return ()

    async def _usage(self) -> dict[PodName, dict[str, int]] | None:
        try:
            body = await self._client.request("GET", f"/apis/metrics.k8s.io/v1beta1/namespaces/{self._namespace}/pods")
        except ApiError as error:
            if error.code not in (404, 503):  # these say that nobody serves metrics
                self._unread.append(f"memory usage: {error.message}")
            return None
        found: dict[PodName, dict[str, int]] = {}
        for item in msgspec.json.decode(body, type=_Metrics).items:
            meta = item["metadata"]
            found[meta["namespace"], meta["name"]] = {
                each["name"]: Quantity.parse(each["usage"]["memory"]).value() for each in item.get("containers", ())
            }
        return found


async def together(first: Awaitable[T], second: Awaitable[Other]) -> tuple[T, Other]:
    """Both answers, asked for at once. When both are refused, the first one's refusal is raised."""
    one, two = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(two, BaseException):
        raise two
    return one, two


async def _nothing() -> tuple[Pod, ...]:
    return ()


def _missing_kind(target: Target, error: ApiError) -> ApiError:
    """A cluster that does not serve the kind answers 404 as for a missing object, but without naming one."""
    if error.code == 404 and not error.details.get("name"):
        return ApiError(404, "NotFound", f"this cluster does not serve {target.kind.resource}")
    return error


def query_of(selector: Any) -> str:
    """A label selector, or the plain map of a replication controller, as a query."""
    if not isinstance(selector, dict) or not selector:
        raise not_found("pods", "")
    labels = selector.get("matchLabels", {}) if selector.keys() & {"matchLabels", "matchExpressions"} else selector
    parts = [f"{name}={value}" for name, value in labels.items()]
    expressions = selector.get("matchExpressions", ()) if labels is not selector else ()
    parts += [_expression(each["key"], each["operator"], each.get("values", [])) for each in expressions]
    query = ",".join(parts)
    parse_labels(query)
    return query


def _expression(key: str, operator: str, values: list[str]) -> str:
    match operator:
        case "In" | "NotIn":
            return f"{key} {operator.lower()} ({','.join(values)})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key
