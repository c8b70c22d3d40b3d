"""Demand: the pods for which nodes are wanted, and those of them for which there is room already (C-008 to C-012)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.durations import parse_duration
from podfit.core.resources import maximum
from podfit.core.times import parse_time
from podfit.decide.capacity.drain import is_daemon_set_pod
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.look import Look, Sizes
from podfit.decide.capacity.readiness import is_going, is_ready
from podfit.decide.capacity.registered import ClusterCounts
from podfit.decide.capacity.settings import ScaleUpSettings
from podfit.decide.placement.view import NodeInfo, Resident

POD_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
YOUNG, YOUNG_WITH_DEVICES = 2.0, 30.0
"""Seconds. While every pod that waits is younger, more of them are probably about to come."""


class Demand(msgspec.Struct, frozen=True):
    """Pods that wait for a node, in the order in which they were read. With `all_young` nothing is done yet."""

    pods: tuple[Pod, ...] = ()
    all_young: bool = False


def demand(pods: Iterable[Pod], now: datetime, settings: ScaleUpSettings) -> Demand:
    waiting = [pod for pod in pods if is_unschedulable(pod) and _counts(pod, settings)]
    ages = [(pod, _age(pod, now)) for pod in waiting if not is_daemon_set_pod(pod)]
    if ages:
        oldest = max(seconds for _, seconds in ages)
        young = YOUNG_WITH_DEVICES if any(_asks_for_devices(pod) for pod, _ in ages) else YOUNG
        if oldest < young:
            return Demand(all_young=True)
    return Demand(tuple(pod for pod, seconds in ages if seconds >= max(settings.pod_delay, _own_delay(pod))))


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler has said that it fits nowhere."""
    if pod.spec.node_name or has_ended(pod) or pod.metadata.deletion_timestamp is not None:
        return False
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _counts(pod: Pod, settings: ScaleUpSettings) -> bool:
    return (pod.spec.priority or 0) >= settings.expendable_below


def _age(pod: Pod, now: datetime) -> float:
    created = pod.metadata.creation_timestamp
    return (now - parse_time(created)).total_seconds() if created else float("inf")


def _own_delay(pod: Pod) -> float:
    """An annotation that is no duration says nothing."""
    try:
        return parse_duration(pod.metadata.annotations.get(POD_DELAY, "0s"))
    except ValueError:
        return 0.0


def _asks_for_devices(pod: Pod) -> bool:
    return any(name.endswith("/gpu") for container in pod.spec.containers for name in container.resources.requests)


# ------------------------------------------------------------------ the cluster as it will be


def grown(pod: Pod, recommended: Sizes) -> Pod:
    """The pod at what a VPA will give it, where that is more than it asks for."""
    sizes = recommended.get(pod.metadata.uid)
    return with_sizes(pod, sizes) if sizes else pod


def with_sizes(pod: Pod, sizes: Mapping[str, ResourceList]) -> Pod:
    """Its containers with at least these requests."""
    containers = tuple(
        replace(
            container,
            resources=replace(
                container.resources, requests=maximum(container.resources.requests, sizes[container.name])
            ),
        )
        if container.name in sizes
        else container
        for container in pod.spec.containers
    )
    return replace(pod, spec=replace(pod.spec, containers=containers))


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name and not has_ended(pod):
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found


def node_views(look: Look, nodes: Iterable[Node], settings: ScaleUpSettings, *, sizes: Sizes) -> list[NodeInfo]:
    """Nodes with the pods that count. `sizes`: what pods will ask for, where that is more than now."""
    on_node = by_node(pod for pod in look.pods if _counts(pod, settings))
    nominated: dict[str, list[Resident]] = {}
    for pod in look.pods:
        if not pod.spec.node_name and pod.status.nominated_node_name:
            place = nominated.setdefault(pod.status.nominated_node_name, [])
            place.append(Resident.of(pod, gates=look.gates, placed=False))
    return [
        NodeInfo.of(
            node,
            (Resident.of(grown(pod, sizes), gates=look.gates) for pod in on_node.get(node.metadata.name, ())),
            tuple(nominated.get(node.metadata.name, ())),
        )
        for node in nodes
    ]


def cluster_to_be(
    look: Look, counts: ClusterCounts, templates: Mapping[str, NodeInfo], settings: ScaleUpSettings, *, sizes: Sizes
) -> HypotheticalCluster:
    """Nodes that are ready, and those that are to come, under names that end in `upcoming-N`."""
    starting = {
        node.metadata.name for group in counts.groups if group.upcoming for node, _ in group.nodes if not is_ready(node)
    }
    nodes = [node for node in look.nodes if node.metadata.name not in starting and not is_going(node)]
    cluster = HypotheticalCluster(
        node_views(look, nodes, settings, sizes=sizes), namespaces=look.namespaces, claims=look.claims, gates=look.gates
    )
    for group in counts.groups:
        template = templates.get(group.group.id)
        for number in range(group.upcoming if template is not None else 0):
            assert template is not None
            cluster.add(template, f"{template.name}-upcoming-{number}")
    return cluster


class Fitted(msgspec.Struct, frozen=True):
    """`left` have no room; the others have their `places`, by UID the name of a node."""

    left: tuple[Pod, ...]
    places: Mapping[str, str]


def fitted(cluster: HypotheticalCluster, pods: Sequence[Pod]) -> Fitted:
    """Puts the pods on nodes of the cluster that take them, the highest priority first; `left` are in the order of
    `pods`."""
    places: dict[str, str] = {}
    for pod in sorted(pods, key=lambda pod: -(pod.spec.priority or 0)):
        newcomer = cluster.newcomer(pod)
        index = cluster.first_fit(newcomer)
        if index is not None:
            cluster.put(newcomer, index)
            places[pod.metadata.uid] = cluster.views[index].name
    return Fitted(tuple(pod for pod in pods if pod.metadata.uid not in places), places)
