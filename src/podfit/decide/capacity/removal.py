"""The removal of a node: whether it could be drained and its pods run elsewhere, and else what keeps it.

Pods are moved one after another, as a drain does that waits for each of them: where one goes is the scheduler's own
choice (`decide.placement.place`), with the node cordoned and those behind it still there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodSpec, PodStatus
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.resources import maximum
from podfit.decide.capacity.drain import DrainContext, DrainPlan, check_budgets, drain_plan
from podfit.decide.capacity.estimator import score
from podfit.decide.capacity.settings import THRESHOLD
from podfit.decide.capacity.utilization import Utilization, UtilizationError, utilization
from podfit.decide.placement.default_spread import DefaultSpread
from podfit.decide.placement.place import NO_NAMESPACES, Placed, place, replaced
from podfit.decide.placement.view import NamespaceLabels, NodeInfo, Resident
from podfit.decide.placement.volumes import NO_CLAIMS, ClaimLookup
from podfit.decide.pod.resize_state import ResizeState
from podfit.decide.workload.disruption import why_protected

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


class Obstacle(msgspec.Struct, frozen=True):
    """What keeps the node. `reason` is upstream's word where it has one; `pod` is None of what the node itself is."""

    reason: str
    text: str
    pod: Pod | None = None


class Move(msgspec.Struct, frozen=True):
    """A pod, and the node on which the scheduler would put its successor."""

    pod: Pod
    node: str


class Removal(msgspec.Struct, frozen=True):
    """`moves` in the order in which the pods are to be evicted; `share` is None of a node that does not say its size.

    `one_by_one`: disruption budgets do not let the pods go all at once.
    """

    share: Utilization | None
    plan: DrainPlan
    obstacles: tuple[Obstacle, ...] = ()
    moves: tuple[Move, ...] = ()
    one_by_one: bool = False


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler knows: all nodes with their pods, namespaces, claims, and the default spread of a pod."""

    views: Sequence[NodeInfo]
    namespaces: NamespaceLabels = NO_NAMESPACES
    claims: ClaimLookup = NO_CLAIMS
    default_spread: Callable[[Pod], DefaultSpread | None] = lambda _: None
    gates: FeatureGates = DEFAULT_GATES


Templates = Mapping[tuple[str, str], PodSpec]
"""What the controller of a pod makes its successor of, by the pod's namespace and name, where that is known."""


class Underused(msgspec.Struct, frozen=True, kw_only=True):
    """When a node is used so little that it may go: its pods' share, and whose pods do not count in it."""

    threshold: float = THRESHOLD
    ignore_daemon_sets: bool = False
    ignore_mirror_pods: bool = False


DEFAULT_UNDERUSED = Underused()


def removal(
    node: Node,
    pods: Sequence[Pod],
    context: DrainContext,
    around: Surroundings | None,
    templates: Templates,
    underused: Underused = DEFAULT_UNDERUSED,
) -> Removal:
    """`pods` are those of the node that have not ended. Without surroundings no place is looked for."""
    plan = drain_plan(pods, context, judge_all=True)
    share, used = _utilization(node, pods, context, underused)
    check = check_budgets(plan.move, context.budgets)
    moves, homeless = _moved(node, plan.move, around, templates) if around is not None else ((), ())
    obstacles = (
        *_of_node(node),
        *used,
        *_resizing(pods),
        *(Obstacle(blocking.reason, blocking.text, blocking.pod) for blocking in plan.blocking),
        *(Obstacle("BlockedByOnCompletionPod", "the node waits for its end", pod) for pod in plan.on_completion),
        *_refused_evictions(plan.move, context),
        *homeless,
    )
    return Removal(share, plan, obstacles, moves, one_by_one=not check.in_parallel)


def _of_node(node: Node) -> Iterable[Obstacle]:
    if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
        yield Obstacle("ScaleDownDisabledAnnotation", f"the node has the annotation {SCALE_DOWN_DISABLED}=true")


def _utilization(
    node: Node, pods: Sequence[Pod], context: DrainContext, underused: Underused
) -> tuple[Utilization | None, tuple[Obstacle, ...]]:
    """A share that is no number is above no threshold (C-099)."""
    try:
        share = utilization(
            node,
            pods,
            context.now,
            ignore_daemon_sets=underused.ignore_daemon_sets,
            ignore_mirror_pods=underused.ignore_mirror_pods,
        )
    except UtilizationError as error:
        return None, (Obstacle("UnexpectedError", str(error)),)
    if not share.share > underused.threshold:
        return share, ()
    limit = f"{underused.threshold:.0%}"
    text = f"its pods ask for {share.share:.1%} of its {share.resource}, above the threshold of {limit}"
    return share, (Obstacle("NotUnderutilized", text),)


def _resizing(pods: Iterable[Pod]) -> Iterable[Obstacle]:
    """Pods that their node is changing: podfit's own rule, so that no resize is cut off half done."""
    for pod in pods:
        if ResizeState.of(pod).progress is not None:
            yield Obstacle("ResizeInProgress", "a resize of it is in progress", pod)


def _refused_evictions(pods: Iterable[Pod], context: DrainContext) -> Iterable[Obstacle]:
    """What the API would refuse to evict, whatever the rules allow: safe-to-evict does not speak for a budget."""
    for pod in pods:
        beside = [budget for budget in context.budgets if budget.metadata.namespace == pod.metadata.namespace]
        check = check_budgets((pod,), beside)
        text = why_protected(pod, beside)
        if not check.can_remove:
            full_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            yield Obstacle("NotEnoughPdb", text or f"not enough pod disruption budget to move {full_name}", pod)
        elif text:
            yield Obstacle("EvictionRefused", text, pod)


def _moved(
    node: Node, pods: Sequence[Pod], around: Surroundings, templates: Templates
) -> tuple[tuple[Move, ...], tuple[Obstacle, ...]]:
    """Moves the pods in turn; one without a place stays where it is."""
    moves: list[Move] = []
    homeless: list[Obstacle] = []
    leaving = NodeInfo.of(replace(node, spec=replace(node.spec, unschedulable=True)), ())
    here = next((view for view in around.views if view.name == node.metadata.name), leaving)
    left = {resident.uid: resident for resident in here.residents}
    views = replaced(around.views, NodeInfo.of(leaving.node, left.values()))
    for pod in _in_order(pods, leaving):
        gone = left.pop(pod.metadata.uid, None)
        without = replaced(views, NodeInfo.of(leaving.node, left.values()))
        successor = _successor(pod, templates.get((pod.metadata.namespace, pod.metadata.name)))
        spread = around.default_spread(successor)
        newcomer = Resident.of(successor, gates=around.gates, placed=False, default_spread=spread)
        verdict = place(newcomer, without, namespaces=around.namespaces, claims=around.claims)
        if isinstance(verdict, Placed) and verdict.node != node.metadata.name:
            moves.append(Move(pod, verdict.node))
            views = [view.plus(newcomer) if view.name == verdict.node else view for view in without]
            continue
        text = "it tolerates the cordon and would come back" if isinstance(verdict, Placed) else verdict.message
        homeless.append(Obstacle("NoPlaceToMovePods", text, pod))
        left |= {pod.metadata.uid: gone} if gone is not None else {}
    return tuple(moves), tuple(homeless)


def _in_order(pods: Iterable[Pod], leaving: NodeInfo) -> list[Pod]:
    """The highest priority first, of equals the largest: small ones find room where large ones do not."""
    return sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), -score(pod, leaving), pod.metadata.name))


def _successor(pod: Pod, template: PodSpec | None) -> Pod:
    """The pod that its controller makes when this one is gone, with no node and no status yet.

    Each container asks for what the template says, or for what it has now where that is more: who resized it in place
    may do so again before it is placed.
    """
    known = {container.name: container for container in template.containers} if template is not None else {}
    containers = tuple(
        replace(
            container,
            resources=replace(
                container.resources,
                requests=maximum(container.resources.requests, known[container.name].resources.requests),
            ),
        )
        if container.name in known
        else container
        for container in pod.spec.containers
    )
    return replace(pod, spec=replace(pod.spec, node_name="", containers=containers), status=PodStatus())
