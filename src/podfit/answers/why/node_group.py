"""Explains a node group: how large it is, what comes and goes, and what is in the way, by the cluster autoscaler's own
last decision."""

import msgspec

from podfit.answers.facts.node_scaling import NodeScaling, next_for
from podfit.core.errors import ApiError, not_found
from podfit.decide.capacity.outlook import Act, NodeOutlook


class GroupNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`next` says when the node goes, or what keeps it."""

    node: str
    next: str


class GroupPod(msgspec.Struct, frozen=True):
    """A pod for which a node of the group comes, or whose resize waits on one of its nodes; `next` says which act comes
    next for it."""

    pod: str
    next: str


class NodeGroupWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`coming` nodes are due at `due`. `cannot_grow` has upstream's words; `problem` says what failed."""

    group: str
    size: int
    min_size: int
    max_size: int
    ready: int
    coming: int = 0
    due: str = ""
    cannot_grow: str = ""
    backoff_until: str = ""
    problem: str = ""
    pods: tuple[GroupPod, ...] = ()
    nodes: tuple[GroupNode, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing has failed and nothing has to come."""
        return not (self.problem or self.backoff_until or self.coming)


def why_node_group(name: str, scaling: NodeScaling) -> NodeGroupWhy:
    """Raises ApiError 404: no autoscaler tells of such a group."""
    if scaling.outlook is None:
        if scaling.problem:
            raise ApiError(403, "Forbidden", f"what the cluster autoscaler says of its groups: {scaling.problem}")
        text = "the cluster autoscaler of this cluster does not say what it is about to do" if scaling.runs else ""
        raise ApiError(404, "NotFound", text or "no cluster autoscaler has written its status in this cluster")
    outlook = scaling.outlook
    group = next((one for one in outlook.groups if one.name == name), None)
    if group is None:
        raise not_found("node groups", name)
    notes = [scaling.problem] if scaling.problem else []
    notes += [f"{outlook.left_out} pods, groups and nodes are left out"] if outlook.left_out else []
    pods = [pod for pod in outlook.pods if pod.at == name or (pod.group == name and pod.act in (Act.NODE, Act.MOVE))]
    return NodeGroupWhy(
        group=name,
        size=group.size,
        min_size=group.min_size,
        max_size=group.max_size,
        ready=group.ready,
        coming=group.coming,
        due=group.due,
        cannot_grow=group.grows,
        backoff_until=group.backoff_until,
        problem=group.problem,
        pods=tuple(GroupPod(f"{pod.namespace}/{pod.pod}", next_for(pod)) for pod in pods),
        nodes=tuple(GroupNode(node.name, _next_of(node)) for node in outlook.nodes if node.group == name),
        notes=tuple(notes),
    )


def _next_of(node: NodeOutlook) -> str:
    why = f"{node.reason}: {node.because}" if node.reason else node.because
    if node.removed:
        return f"goes at {node.removed}" + (f" ({why})" if why else "")
    return f"stays, {why}"
