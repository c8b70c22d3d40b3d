"""What is read to answer whether a node could go: its pods, their controllers and budgets, and room elsewhere."""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from podfit.answers.ages import Age
from podfit.answers.budgets import Budgets, read_budgets
from podfit.answers.kinds import NODES, PODS
from podfit.answers.rights import why_unread
from podfit.answers.scheduling import ClusterState, read_cluster
from podfit.answers.snapshot import NOT_FOUND, Reader, together
from podfit.answers.target import WORKLOADS, Target
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta import codec
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.rest import Client
from podfit.core.errors import ApiError, not_found
from podfit.decide.capacity.drain import looked_up

ControllerKey = tuple[str, str, str]
"""Kind, namespace and name."""


class _Template(msgspec.Struct, frozen=True):
    spec: PodSpec = PodSpec()


class _ControllerSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    template: _Template = _Template()


class Controller(msgspec.Struct, frozen=True):
    """As far as it matters: how many pods it asks for, and what it makes them of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _ControllerSpec = _ControllerSpec()


class RemovalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those of the node that have not ended. `missing` says what may not be read, without which nobody knows
    whether the node could go; `controllers` are those that exist."""

    age: Age
    node: Node
    pods: tuple[Pod, ...]
    cluster: ClusterState
    budgets: Budgets
    controllers: Mapping[ControllerKey, Controller]
    missing: tuple[str, ...] = ()


async def read_removal_facts(client: Client, name: str) -> RemovalFacts:
    """Raises ApiError: the node is not there, or it or its pods may not be read."""
    missing: list[str] = []
    age, (node, listed) = await together(Reader(client, "").age(), _node_and_pods(client, name))
    pods = tuple(pod for pod in listed if not has_ended(pod))
    cluster, budgets, controllers = await asyncio.gather(
        read_cluster(client, pods, missing, preempting=False),
        read_budgets(client, {pod.metadata.namespace for pod in pods}),
        _controllers(client, pods, missing),
    )
    if budgets.problem:
        missing.append(f"disruption budgets: {budgets.problem}")
    return RemovalFacts(
        age=age, node=node, pods=pods, cluster=cluster, budgets=budgets, controllers=controllers, missing=tuple(missing)
    )


async def _node_and_pods(client: Client, name: str) -> tuple[Node, tuple[Pod, ...]]:
    try:
        node, page = await together(client.get(NODES, name), client.list(PODS, fields=f"spec.nodeName={name}"))
    except ApiError as error:
        raise not_found("nodes", name) if error.code == NOT_FOUND else error from error
    return node, page.items


async def _controllers(client: Client, pods: Iterable[Pod], missing: list[str]) -> dict[ControllerKey, Controller]:
    """Those that the drain rules ask for, and that exist; one made anew under the name of another is not it."""
    wanted: dict[ControllerKey, OwnerReference] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is not None and looked_up(pod, owner) is not None:
            wanted[owner.kind, pod.metadata.namespace, owner.name] = owner
    told = await asyncio.gather(*(_controller(client, key, missing) for key in wanted))
    return {
        key: controller
        for (key, owner), controller in zip(wanted.items(), told, strict=True)
        if controller is not None and controller.metadata.uid == owner.uid
    }


async def _controller(client: Client, key: ControllerKey, missing: list[str]) -> Controller | None:
    wanted, namespace, name = key
    kind = next(kind for kind in WORKLOADS if kind.kind == wanted)
    try:
        return codec.decode(await client.request("GET", Target(kind, name).path(namespace)), Controller)
    except ApiError as error:
        if error.code != NOT_FOUND:
            missing.append(f"{kind.shown} {namespace}/{name}: {why_unread(error)}")
        return None
