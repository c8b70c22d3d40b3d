"""A snapshot of all that an answer needs, read once and never written.

Rights may be missing, metrics may not be served, and on a cluster with thousands of pods only those of the nodes in
question matter. What could not be read is part of the answer (`unread`), never guessed.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from podfit.answers.facts.admission import ForeignChecks, read_foreign_checks
from podfit.answers.facts.ages import Age, age_of
from podfit.answers.facts.autoscalers import Autoscalers, read_autoscalers
from podfit.answers.facts.budgets import Budgets, read_budgets
from podfit.answers.facts.kinds import LIMIT_RANGES, NODES, PODS, QUOTAS
from podfit.answers.facts.node_scaling import NO_SCALING, NodeScaling, read_node_scaling
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.scheduling import SchedulingState, read_cluster, waits_for_a_node
from podfit.answers.facts.settings import PREEMPT, MakeRoomSetting, Policies, read_policies, read_room
from podfit.answers.facts.target import NODE, POD, WORKLOADS, Target, query_of
from podfit.answers.facts.usage import UsageFacts, UsageReader
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta import codec
from podfit.api.meta.owners import controller_named
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError, not_found
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.net.system import SystemClock

NOT_FOUND = 404
PodName = tuple[str, str]
T = TypeVar("T")
Bound = TypeVar("Bound", LimitRange, ResourceQuota)
Other = TypeVar("Other")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those the question is about, by name; `neighbours` all pods of their nodes that have not ended.

    `unknown_nodes` says of a node why it is not known what it would do: it may not be read, or not who else is on it.
    `usage` is memory in bytes by pod and container, None where nobody tells it, for which `no_usage` has the reasons.
    `template` is the pod spec of the workload that the pods come from, `owner_template` that of what controls a pod
    when the question is about one. `unread` are lines for people. `policies` are
    those of the nodes' kubelets. `unscheduled` are pods that wait for a node, when the question is about one, and
    `cluster` is what the scheduler looks at when such a pod matters. `room` says whether the cluster makes room.
    `budgets` are those of the pods' namespaces, for a plan, and of the neighbours', where somebody may evict them.
    `foreign_checks` are what others than the API server check of a resize, and `autoscalers` who may take it back, for
    a plan. `scaling` is what the cluster autoscaler is about to do, for a plan and where a pod waits.
    """

    age: Age
    namespace: str
    pods: tuple[Pod, ...] = ()
    neighbours: tuple[Pod, ...] = ()
    nodes: Mapping[str, Node] = msgspec.field(default_factory=dict)
    unknown_nodes: Mapping[str, str] = msgspec.field(default_factory=dict)
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    usage: Mapping[PodName, Mapping[str, int]] | None = None
    no_usage: tuple[str, ...] = ()
    template: PodSpec | None = None
    unread: tuple[str, ...] = ()
    policies: Mapping[str, Policies] = msgspec.field(default_factory=dict)
    unscheduled: tuple[Pod, ...] = ()
    owner_template: PodSpec | None = None
    cluster: SchedulingState | None = None
    room: MakeRoomSetting = MakeRoomSetting()
    budgets: Budgets = Budgets()
    foreign_checks: ForeignChecks = ForeignChecks()
    autoscalers: Autoscalers = Autoscalers()
    scaling: NodeScaling = NO_SCALING

    def knows_node(self, name: str) -> bool:
        """Whether a node that is not among `nodes` is not there."""
        return name in self.nodes or name not in self.unknown_nodes


class _Workload(msgspec.Struct, rename="camel"):
    spec: "_WorkloadSpec"
    metadata: ObjectMeta = ObjectMeta()


class _WorkloadSpec(msgspec.Struct, rename="camel"):
    selector: Any = None
    template: Pod = Pod()


class Reader:
    """Reads one snapshot. Raises ApiError for the target itself, ConnectionError when there is no answer.

    What does not need to know the answer to something else is asked at once, and all answers are waited for, so that a
    refusal leaves no request on its way.
    """

    def __init__(self, client: Client, namespace: str, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._namespace = namespace
        self._unread: list[str] = []
        self._unknown: dict[str, str] = {}

    async def read(self, target: Target, *, usage: bool = False, known: tuple[Pod, ...] = ()) -> Snapshot:
        """`usage`: also what containers use now, and the template of a pod's owner, for a plan. `known` are pods of one
        owner that were read already, and are what it is about.
        """
        age, (pods, template, node) = await together(self.age(), self._about(target, known))
        names = {pod.spec.node_name for pod in pods if pod.spec.node_name} | ({node} if node else set())
        (nodes, on_nodes, limit_ranges, quotas, used), (policies, unscheduled, room, foreign) = await asyncio.gather(
            asyncio.gather(
                self._nodes(names),
                self._on_nodes(names),
                self._list(LIMIT_RANGES),
                self._list(QUOTAS),
                self._usage(pods) if usage else _none(),
            ),
            asyncio.gather(
                self._policies(names),
                self._unscheduled() if node else _nothing(),
                read_room(self._client, self._clock.now()) if names else _no_room(),
                read_foreign_checks(self._client) if usage else _no_checks(),
            ),
        )
        owner = await self._owner_template(pods[0]) if usage and (known or target.kind is POD) else None
        homeless = [pod for pod in (*pods, *unscheduled) if waits_for_a_node(pod)]
        memory = None if used is None or not used.source else by_pod(used)
        scaling = await self._scaling() if usage or any(map(_waits, pods)) else NO_SCALING
        movable = usage and scaling.outlook is not None and scaling.outlook.resizes
        return Snapshot(
            age=age,
            namespace=self._namespace,
            pods=pods,
            neighbours=_with_own(on_nodes, pods),
            nodes=nodes,
            unknown_nodes=self._unknown,
            limit_ranges=limit_ranges,
            quotas=quotas,
            usage=memory,
            no_usage=used.notes if used else (),
            template=template,
            owner_template=owner,
            policies=policies,
            unscheduled=unscheduled,
            cluster=await read_cluster(self._client, homeless, self._unread) if homeless else None,
            room=room,
            foreign_checks=foreign,
            autoscalers=await self._autoscalers(pods) if usage else Autoscalers(),
            budgets=await self._budgets(pods if usage else (), on_nodes if room.mode == PREEMPT or movable else ()),
            scaling=scaling,
            unread=tuple(self._unread),
        )

    async def everything(self) -> Snapshot:
        """Every pod that has not ended, of the namespace or (empty) of all, and every node, in one list each.

        Who holds a node's room is known from all namespaces; without the right to list them, of this one.
        """
        (age, pods), (nodes, others) = await together(
            together(self.age(), self._client.list(PODS, self._namespace)),
            together(self._list(NODES), self._everywhere() if self._namespace else _nothing()),
        )
        alive = tuple(pod for pod in pods.items if not has_ended(pod))
        return Snapshot(
            age=age,
            namespace=self._namespace,
            pods=alive,
            neighbours=others or alive,
            unread=tuple(self._unread),
            nodes={node.metadata.name: node for node in nodes},
        )

    async def _everywhere(self) -> tuple[Pod, ...]:
        try:
            page = await self._client.list(PODS)
        except ApiError as error:
            self._unread.append(f"the pods of other namespaces: {why_unread(error)}")
            return ()
        return tuple(pod for pod in page.items if not has_ended(pod))

    async def age(self) -> Age:
        told = msgspec.json.decode(await self._client.request("GET", "/version"), type=dict[str, Any])
        return age_of(str(told.get("minor", "")), str(told.get("gitVersion", "")))

    async def _about(self, target: Target, known: tuple[Pod, ...]) -> tuple[tuple[Pod, ...], PodSpec | None, str]:
        if known:
            return known, None, ""
        if target.kind is NODE:
            await self._readable_node(target.name)
            return (), None, target.name
        if target.kind is POD:
            return (await self._client.get(PODS, target.name, self._namespace),), None, ""
        pods, template = await self.of_workload(target)
        return pods, template, ""

    async def _readable_node(self, name: str) -> None:
        """Raises ApiError: it is missing, or it or its pods may not be read, and then nothing can be said of it."""
        try:
            await together(self._client.get(NODES, name), self._pods_on(name))
        except ApiError as error:
            raise not_found("nodes", name) if error.code == NOT_FOUND else error from error

    async def of_workload(self, target: Target) -> tuple[tuple[Pod, ...], PodSpec]:
        """Its pods that have not ended, and the template that they come from."""
        try:
            body = await self._client.request("GET", target.path(self._namespace))
        except ApiError as error:
            raise _missing_kind(target, error) from error
        workload = codec.decode(body, _Workload)
        listed = await self._client.list(PODS, self._namespace, labels=query_of(workload.spec.selector))
        pods = tuple(pod for pod in listed.items if not has_ended(pod))
        return tuple(sorted(pods, key=lambda pod: pod.metadata.name)), workload.spec.template.spec

    async def _owner_template(self, pod: Pod) -> PodSpec | None:
        owner = controller_named(pod.metadata)
        kind = next((kind for kind in WORKLOADS if owner and kind.names_a(owner)), None)
        if owner is None or kind is None:
            return None
        try:
            body = await self._client.request("GET", Target(kind, owner.name).path(self._namespace))
        except ApiError as error:
            about = f"{kind.shown} {owner.name}, whose template says the proportion of limits"
            self._unread.append(f"{about}: {why_unread(error)}")
            return None
        workload = codec.decode(body, _Workload)
        return workload.spec.template.spec if workload.metadata.uid == owner.uid else None

    async def _nodes(self, names: set[str]) -> dict[str, Node]:
        found = await asyncio.gather(*map(self._node, sorted(names)))
        return {node.metadata.name: node for node in found if node is not None}

    async def _node(self, name: str) -> Node | None:
        try:
            return await self._client.get(NODES, name)
        except ApiError as error:
            self._unread.append(f"node {name}: {why_unread(error)}")
            if error.code != NOT_FOUND:
                self._unknown[name] = f"what node {name} has room for is not known: {why_unread(error)}"
            return None

    async def _policies(self, names: set[str]) -> dict[str, Policies]:
        nodes = sorted(names)
        told = await asyncio.gather(*(read_policies(self._client, name) for name in nodes))
        return dict(zip(nodes, told, strict=True))

    async def _unscheduled(self) -> tuple[Pod, ...]:
        try:
            page = await self._client.list(PODS, fields="spec.nodeName=,status.phase=Pending")
        except ApiError as error:
            self._unread.append(f"pods that wait for a node: {why_unread(error)}")
            return ()
        return tuple(pod for pod in page.items if not pod.spec.node_name and pod.status.phase == "Pending")

    async def _on_nodes(self, names: set[str]) -> tuple[Pod, ...]:
        found = await asyncio.gather(*map(self._on_node, sorted(names)))
        return tuple(pod for pods in found for pod in pods)

    async def _on_node(self, name: str) -> tuple[Pod, ...]:
        try:
            return await self._pods_on(name)
        except ApiError as error:
            self._unread.append(f"the other pods of node {name}: {why_unread(error)}")
            self._unknown.setdefault(name, f"who else is on node {name} is not known: {why_unread(error)}")
            return ()

    async def _pods_on(self, name: str) -> tuple[Pod, ...]:
        page = await self._client.list(PODS, fields=f"spec.nodeName={name}")
        return tuple(pod for pod in page.items if not has_ended(pod))

    async def _list(self, kind: Resource[T]) -> tuple[T, ...]:
        where = self._namespace if kind.info.namespaced else ""
        try:
            return (await self._client.list(kind, where)).items
        except ApiError as error:
            self._unread.append(f"{kind.info.kind}s of {where or 'the cluster'}: {why_unread(error)}")
            return ()

    async def _budgets(self, pods: Iterable[Pod], victims: Iterable[Pod]) -> Budgets:
        """The budgets of pods that a resize may restart, and of those that may be evicted."""
        return await read_budgets(self._client, {pod.metadata.namespace for pod in (*pods, *victims)})

    async def _autoscalers(self, pods: tuple[Pod, ...]) -> Autoscalers:
        return await read_autoscalers(self._client, self._namespace, pods, self._clock, self._unread.append)

    async def _scaling(self) -> NodeScaling:
        return await read_node_scaling(self._client, self._clock.now())

    async def _usage(self, pods: Iterable[Pod]) -> UsageFacts | None:
        placed = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in pods}
        known = {pod: node for pod, node in placed.items() if node}
        return await UsageReader(self._client, self._clock).read(self._namespace, known, rates=False)


def _waits(pod: Pod) -> bool:
    """For a node, or for more room on its own."""
    stage = ResizeState.of(pod).stage
    return waits_for_a_node(pod) or stage in (ResizeStage.DEFERRED, ResizeStage.INFEASIBLE)


def _with_own(neighbours: tuple[Pod, ...], pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The pods in question are known even where those of their node may not be listed."""
    known = {pod.metadata.uid for pod in neighbours}
    return (*neighbours, *(pod for pod in pods if pod.metadata.uid not in known))


def by_pod(usage: UsageFacts) -> dict[PodName, dict[str, int]]:
    """Memory in bytes by pod and container, where it is known."""
    found: dict[PodName, dict[str, int]] = {}
    for (namespace, pod, container), used in usage.used.items():
        if used.memory is not None:
            found.setdefault((namespace, pod), {})[container] = used.memory
    return found


async def together(first: Awaitable[T], second: Awaitable[Other]) -> tuple[T, Other]:
    """Both answers, asked for at once. When both are refused, the first one's refusal is raised."""
    one, two = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(two, BaseException):
        raise two
    return one, two


async def _none() -> None:
    return None


async def _no_room() -> MakeRoomSetting:
    return MakeRoomSetting()


async def _no_checks() -> ForeignChecks:
    return ForeignChecks()


async def _nothing() -> tuple[Pod, ...]:
    return ()


def _missing_kind(target: Target, error: ApiError) -> ApiError:
    """A cluster that does not serve the kind answers 404 as for a missing object, but without naming one."""
    if error.code == 404 and not error.details.get("name"):
        return ApiError(404, "NotFound", f"this cluster does not serve {target.kind.resource}")
    return error


def of_namespace(namespace: str, objects: Sequence[Bound]) -> tuple[Bound, ...]:
    return tuple(obj for obj in objects if obj.metadata.namespace == namespace)
