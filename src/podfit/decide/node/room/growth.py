"""How much pods could grow where they are: the node's own verdict on a resize of each, all of them at once."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.node.room.plan import allocated_form, keeps_node
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize import by_status
from podfit.decide.resize.neighbours import Others, neighbour, others_of
from podfit.decide.resize.verdict import Deferred, NodeView, resize

Growth = Mapping[str, Mapping[str, int]]
"""By pod and resource, thousandths."""
_TURNED_DOWN = (ResizeStage.DEFERRED, ResizeStage.INFEASIBLE, ResizeStage.ERROR)


def growth(
    pods: Iterable[Pod],
    nodes: Mapping[str, Node],
    on_node: Mapping[str, Collection[Pod]],
    resources: Collection[str],
    gates: FeatureGates,
) -> dict[str, dict[str, int]]:
    """The growth of pods with a node. Pods of one node share what it has left, the smallest first, so that they can all
    be of one size: a pod that has grown already needs none of it. Nothing where the node is not known, or did not grant
    the resize that the pod asks for now, and where the pod as a whole has requests of its own."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if keeps_node(pod):
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    found: dict[str, dict[str, int]] = {}
    for name, own in by_node.items():
        node = nodes.get(name)
        if node is None:
            found |= {pod.metadata.name: dict.fromkeys(resources, 0) for pod in own}
            continue
        view, others = by_status.node_view(node, gates), _holds(on_node.get(name, own), gates)
        for resource in resources:
            most = [_growth(pod, resource, view, others) for pod in own]
            held = [neighbour(allocated_form(pod, gates), gates).requests.get(resource, ZERO).milli() for pod in own]
            for pod, share in zip(own, levelled(held, most), strict=True):
                found.setdefault(pod.metadata.name, {})[resource] = share
    return found


def levelled(held: Sequence[int], most: Sequence[int]) -> list[int]:
    """What each may have more of what all share, so that they come to hold the same: `most` is what each could have if
    it were alone, the largest of which is what is shared."""
    growing = sorted(held[place] for place in range(len(held)) if most[place])
    left, level = max(most, default=0), 0
    for count, size in enumerate(growing, 1):
        if level and size >= level:
            break
        level = (left + sum(growing[:count])) // count
    return [max(min(level - own, alone), 0) for own, alone in zip(held, most, strict=True)]


def _holds(pods: Iterable[Pod], gates: FeatureGates) -> Others:
    return others_of(neighbour(allocated_form(pod, gates), gates) for pod in pods if keeps_node(pod))


def _growth(pod: Pod, resource: str, view: NodeView, every: Others) -> int:
    """Asks for as much more as the node has in all, and takes off what it is short of."""
    if pod.spec.resources is not None or ResizeState.of(pod).stage in _TURNED_DOWN:
        return 0
    allocated = allocated_form(pod, view.gates)
    mine, more = neighbour(allocated, view.gates), view.allocatable.get(resource, ZERO)
    others = Others(every.totals.minus(mine), every.one_by_one)
    answer = resize(_grown(allocated, resource, more), allocated, view, others)
    if not isinstance(answer, Deferred) or answer.short_by.keys() != {resource}:
        return 0
    return max((more - answer.short_by[resource]).milli(), 0)


def _grown(pod: Pod, resource: str, by: Quantity) -> Pod:
    """Its first container that requests some of it requests more."""
    containers = list(pod.spec.containers)
    for place, container in enumerate(containers):
        has = container.resources.requests.get(resource)
        if has is not None:
            requests = {**container.resources.requests, resource: has + by}
            containers[place] = replace(container, resources=replace(container.resources, requests=requests))
            break
    return replace(pod, spec=replace(pod.spec, containers=tuple(containers)))
