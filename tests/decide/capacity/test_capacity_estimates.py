"""Estimates beyond the recorded ones: what is asked how often, claims, limits, and groups that differ."""

from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.capacity import hypothetical
from podfit.decide.capacity.estimator import estimate, schedulable_groups
from podfit.decide.capacity.expanders import Option, Priorities, least_waste
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.pod_groups import MOST_GROUPS, pod_groups
from podfit.decide.placement.place import refuse_alone
from podfit.decide.placement.view import NodeInfo, Refusal, Resident
from podfit.decide.placement.volumes import ClaimLookup

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def node(name: str = "template", **size: str) -> NodeInfo:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    amounts = SIZE | size
    return NodeInfo.of(convert({"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}, Node), ())


def pod(name: str, cpu: str = "1", *, owner: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    references = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": labels or {}}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    given = meta | ({"ownerReferences": references} if owner else {})
    return convert({"metadata": given, "spec": {"containers": [container], **spec}}, Pod)


def test_capacity_asks_a_node_again_only_while_it_takes_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 pods without a controller, each a group of its own: not every one asks every node."""
    asked = 0

    def counted(subject: Resident, view: NodeInfo) -> Refusal | None:
        nonlocal asked
        asked += 1
        return refuse_alone(subject, view)

    monkeypatch.setattr(hypothetical, "refuse_alone", counted)
    pods = [pod(f"p{number}", "500m") for number in range(1000)]
    found = estimate(HypotheticalCluster(), node(), pod_groups(pods))
    assert (found.nodes, len(found.pods)) == (125, 1000)
    assert asked <= 1000 + 2 * 125


@pytest.mark.parametrize(("most", "nodes", "placed"), [(0, 5, 5), (3, 3, 3), (1000, 5, 5)])
def test_capacity_adds_no_more_nodes_than_it_may(most: int, nodes: int, placed: int) -> None:
    pods = [pod(f"p{number}", "3", owner="web") for number in range(5)]
    found = estimate(HypotheticalCluster(), node(), pod_groups(pods), most_nodes=most)
    assert (found.nodes, len(found.pods)) == (nodes, placed)


def test_capacity_leaves_the_cluster_as_it_is() -> None:
    cluster = HypotheticalCluster([node("n1")])
    estimate(cluster, node(), pod_groups([pod("big", "4"), pod("bigger", "4")]))
    assert [(view.name, len(view.residents)) for view in cluster.views] == [("n1", 0)]


def test_capacity_heeds_who_keeps_others_away() -> None:
    """The first pod's anti-affinity speaks of the second, which has no rule itself."""
    alone = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "b"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    pods = [pod("a", "2", affinity=affinity), pod("b", labels={"app": "b"}), pod("c", labels={"app": "b"})]
    assert estimate(HypotheticalCluster(), node(), pod_groups(pods)).nodes == 2


def test_capacity_asks_for_claims() -> None:
    mounts = pod("db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    nowhere = HypotheticalCluster()
    assert schedulable_groups(nowhere, node(), pod_groups([mounts])) == []
    unbound = convert({"metadata": {"name": "data", "namespace": "shop"}}, PersistentVolumeClaim)
    lookup = ClaimLookup(claim=lambda _namespace, _name: unbound)
    assert schedulable_groups(HypotheticalCluster(claims=lookup), node(), pod_groups([mounts])) == []


def test_capacity_groups_of_one_controller_are_bounded() -> None:
    shapes = [pod(f"p{number}", f"{number + 1}m", owner="web") for number in range(MOST_GROUPS + 3)]
    again = [pod(f"q{number}", f"{number + 1}m", owner="web") for number in range(MOST_GROUPS + 3)]
    sizes = [len(group.pods) for group in pod_groups([*shapes, *again])]
    assert sizes == [2] * MOST_GROUPS + [1] * 6


def test_capacity_groups_differ_by_labels_and_not_by_token_volumes() -> None:
    def built(name: str, end: str) -> Pod:
        volume = {"name": f"kube-api-access-{end}", "projected": {"sources": []}}
        mount = {"name": volume["name"], "mountPath": "/var/run/secrets"}
        return pod(name, owner="web", containers=[{"name": "c", "volumeMounts": [mount]}], volumes=[volume])

    assert len(pod_groups([built("a", "x1"), built("b", "y2")])) == 1
    assert len(pod_groups([pod("a", owner="web"), pod("b", owner="web", labels={"app": "b"})])) == 2


def test_capacity_priorities_survive_patterns_that_are_none() -> None:
    options = [Option(name, 1, (pod("a"),), node().node) for name in ("spot-a", "big-a")]
    kept, events = Priorities({20: ["(", "^big"], 10: ["spot"]}).filter(options)
    assert ([option.group for option in kept], events) == (["big-a"], [])
    assert Priorities().filter([]) == ([], [])


def test_capacity_wastes_nothing_of_a_node_without_size() -> None:
    empty = convert({"metadata": {"name": "t"}}, Node)
    assert least_waste([Option("g", 1, (), empty)])[0].group == "g"
