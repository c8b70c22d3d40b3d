"""Where a resize that has to wait, or a pod without a node, gets its place: by the cluster autoscaler's decision.

It is asked of the node of the pod and of nodes that are on their way (`decide.capacity.outlook`); what nodes that are
there have left is not known here, so a neighbour may move to one of them sooner. Each pod of a plan is judged by
itself.
"""

from datetime import timedelta

from msgspec.structs import replace

from podfit.answers.facts.snapshot import Snapshot
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.core.times import parse_time
from podfit.decide.capacity.drain import DrainContext
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.look import Look, Moment, State
from podfit.decide.capacity.outlook import Act, ComingNode, Outlook, PodOutlook
from podfit.decide.capacity.settings import AutoscalerSettings, ScaleUpSettings
from podfit.decide.capacity.waiting_resizes import resize_demand
from podfit.decide.placement.view import NodeInfo, Resident
from podfit.decide.pod.resize_state import DEFERRED, PENDING


def place_of_resize(new: Pod, message: str, snapshot: Snapshot) -> str:
    """The place of a pod whose node defers its new size with this `message`; empty where nothing is known to help."""
    outlook, node = _believed(snapshot), snapshot.nodes.get(new.spec.node_name)
    if outlook is None or node is None or not outlook.resizes:
        return ""
    condition = PodCondition(
        type=PENDING, status="True", reason=DEFERRED, message=message, last_transition_time=outlook.time
    )
    others = [pod for pod in snapshot.neighbours if pod.spec.node_name == node.metadata.name]
    others = [pod for pod in others if pod.metadata.uid != new.metadata.uid]
    waiting = replace(new, status=replace(new.status, conditions=(condition,)))
    gates = snapshot.age.gates
    look = Look(
        nodes=(node,),
        pods=(waiting, *others),
        budgets=snapshot.budgets.known,
        makes_room=bool(snapshot.room.mode),
        gates=gates,
    )
    scale_up = ScaleUpSettings(shrinks=outlook.shrinks, resize_delay=outlook.delay)
    at = parse_time(outlook.time) + timedelta(seconds=outlook.delay)
    own = NodeInfo.of(node, (Resident.of(pod, gates=gates) for pod in look.pods))
    cluster = HypotheticalCluster([own, *(one.view() for one in outlook.coming)], gates=gates)
    context = DrainContext(now=at, budgets=snapshot.budgets.known)
    moment, settings = Moment(at, at.timestamp()), AutoscalerSettings(scale_up=scale_up)
    told = resize_demand(look, moment, settings, cluster, context, State()).outlooks
    return next((_told(one, outlook) for one in told if one.pod == new.metadata.name), "")


def _told(one: PodOutlook, outlook: Outlook) -> str:
    coming = next((node for node in outlook.coming if node.name == one.to), None)
    if one.act is Act.SHRINK and one.who:
        return f"the cluster autoscaler shrinks {one.who} for it ({one.what}), then it fits"
    if one.act is not Act.MOVE or coming is None:
        return ""
    return f"waits for {_called(coming)}: {one.who} moves there, then it fits"


def place_of_pod(pod: Pod, snapshot: Snapshot) -> str:
    """The place of a pod that fits on no node that is there; empty where none that is on its way takes it."""
    outlook = _believed(snapshot)
    if outlook is None:
        return ""
    cluster = HypotheticalCluster([one.view() for one in outlook.coming], gates=snapshot.age.gates)
    index = cluster.first_fit(cluster.newcomer(pod))
    return f"waits for {_called(outlook.coming[index])}: it fits there" if index is not None else ""


def _believed(snapshot: Snapshot) -> Outlook | None:
    scaling = snapshot.scaling
    return scaling.outlook if scaling.outlook is not None and not scaling.problem and scaling.outlook.time else None


def _called(node: ComingNode) -> str:
    return f"a node of group {node.group} that is on its way, due by {node.due}"
