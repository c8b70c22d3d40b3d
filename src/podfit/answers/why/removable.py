"""Explains whether a node could go: what keeps it, by which rule, and where its pods would run instead.

The rules are those of upstream's cluster autoscaler with its defaults (`decide.capacity.removal`); there need not be
an autoscaler in the cluster.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from podfit.answers.facts.ages import Age
from podfit.answers.facts.budgets import Budgets, read_budgets
from podfit.answers.facts.kinds import NODES, PODS
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.scheduling import SchedulingState, claim_lookup, node_views, read_cluster
from podfit.answers.facts.snapshot import NOT_FOUND, Reader, together
from podfit.answers.facts.target import WORKLOADS, Target
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta import codec
from podfit.api.meta.owners import controller_of
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.rest import Client
from podfit.core.errors import ApiError, not_found
from podfit.decide.capacity.drain import DrainContext, looked_up
from podfit.decide.capacity.removal import Obstacle, Removal, Surroundings, Templates, removal
from podfit.decide.capacity.settings import THRESHOLD

ControllerKey = tuple[str, str, str]
"""Kind, namespace and name."""


class _Template(msgspec.Struct, frozen=True):
    spec: PodSpec = PodSpec()


class _ControllerSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    template: _Template = _Template()


class Controller(msgspec.Struct, frozen=True):
    """A controller as far as it matters: how many pods it asks for, and what it makes them of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _ControllerSpec = _ControllerSpec()


class RemovalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` are those of the node that have not ended. `missing` says what may not be read, without which nobody knows
    whether the node could go; `controllers` are those that exist."""

    age: Age
    node: Node
    pods: tuple[Pod, ...]
    cluster: SchedulingState
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


REMOVABLE, NOT_REMOVABLE, NOT_KNOWN = "removable", "not removable", "not known"


class KeptBy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that keeps the node; `pod` is empty of what the node itself is."""

    reason: str
    because: str
    pod: str = ""


class MovedPod(msgspec.Struct, frozen=True):
    pod: str
    to: str


class NodeUtilization(msgspec.Struct, frozen=True):
    """Shares of what the node has for pods: 0.5 is half."""

    cpu: float
    memory: float
    threshold: float = THRESHOLD


class RemovableWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`verdict` is removable, not removable or not known; of the last `missing` says what was not to be read.

    `moves` are the pods that have a place elsewhere, in the order in which they are to be evicted; `daemon_set_pods`
    end with the node.
    """

    node: str
    verdict: str
    utilization: NodeUtilization | None = None
    kept_by: tuple[KeptBy, ...] = ()
    moves: tuple[MovedPod, ...] = ()
    daemon_set_pods: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.verdict == REMOVABLE


def why_removable(facts: RemovalFacts, now: datetime) -> RemovableWhy:
    """Where something is missing, the answer is that it is not known, beside what keeps the node as far as was read."""
    found = _removal(facts, now)
    verdict = NOT_KNOWN if facts.missing else NOT_REMOVABLE if found.obstacles else REMOVABLE
    share = found.share
    return RemovableWhy(
        node=facts.node.metadata.name,
        verdict=verdict,
        utilization=None if share is None else NodeUtilization(share.cpu, share.memory),
        kept_by=tuple(map(_kept_by, found.obstacles)),
        moves=tuple(MovedPod(_full_name(move.pod), move.node) for move in found.moves),
        daemon_set_pods=tuple(map(_full_name, found.plan.daemon_set)),
        missing=facts.missing,
        notes=("disruption budgets let its pods go only one after another",) if found.one_by_one else (),
    )


def _removal(facts: RemovalFacts, now: datetime) -> Removal:
    cluster, gates = facts.cluster, facts.age.gates
    context = DrainContext(
        now=now,
        budgets=facts.budgets.known,
        controllers={key: controller.spec.replicas for key, controller in facts.controllers.items()},
    )
    around = Surroundings(
        views=node_views(cluster, gates),
        namespaces=cluster.labels,
        claims=claim_lookup(cluster),
        default_spread=cluster.selectors.default_spread,
        gates=gates,
    )
    return removal(facts.node, facts.pods, context, None if facts.missing else around, _templates(facts))


def _templates(facts: RemovalFacts) -> Templates:
    owned = ((pod, controller_of(pod.metadata)) for pod in facts.pods)
    keys = ((pod, (owner.kind, pod.metadata.namespace, owner.name)) for pod, owner in owned if owner is not None)
    return {
        (pod.metadata.namespace, pod.metadata.name): facts.controllers[key].spec.template.spec
        for pod, key in keys
        if key in facts.controllers
    }


def _kept_by(obstacle: Obstacle) -> KeptBy:
    return KeptBy(obstacle.reason, obstacle.text, _full_name(obstacle.pod) if obstacle.pod is not None else "")


def _full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
