"""Whether a node could go: what keeps it and by which rule, who may not know, and that what is promised can be done."""

import random
from typing import Any

import msgspec
import pytest

from podfit.answers.why.removable import (
    NOT_KNOWN,
    NOT_REMOVABLE,
    REMOVABLE,
    RemovableWhy,
    RemovalFacts,
    read_removal_facts,
    why_removable,
)
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import OwnerReference
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.kubeconfig import load
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.decide.capacity.removal import SCALE_DOWN_DISABLED
from podfit.testing.cluster import Cluster

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
NOW = parse_time("2026-01-01T00:00:00Z")
SEEDS = 6


def deployment(name: str, cpu: str = "200m", replicas: int = 1, **pod: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    annotations = pod.pop("annotations", {})
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **pod},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def budget(app: str, name: str = "", **spec: Any) -> dict[str, Any]:
    given = {"selector": {"matchLabels": {"app": app}}, **spec}
    metadata = {"name": name or app}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": given}


def facts_of(cluster: Cluster, node: str) -> RemovalFacts:
    return cluster.run(read_removal_facts(cluster.client, node))


def ask(cluster: Cluster, node: str) -> RemovableWhy:
    return why_removable(facts_of(cluster, node), NOW)


def node_of(cluster: Cluster, app: str) -> str:
    pods = cluster.run(cluster.client.list(Pod, labels=f"app={app}")).items
    return pods[0].spec.node_name


KEEPS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str, str]] = {
    "unsafe": ({"annotations": {SAFE: "false"}}, [], "NotSafeToEvictAnnotation", "pod annotated as not safe to evict"),
    "ends": ({"annotations": {SAFE: "on-completion"}}, [], "BlockedByOnCompletionPod", "the node waits for its end"),
    "files": (
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        [],
        "LocalStorageRequested",
        "pod with local storage present: files-",
    ),
    "needed": (
        {},
        [budget("needed", minAvailable=1)],
        "NotEnoughPdb",
        "not enough pod disruption budget to move default/needed-",
    ),
    "safe": (
        {"annotations": {SAFE: "true"}},
        [budget("safe", minAvailable=1)],
        "NotEnoughPdb",
        "The disruption budget safe needs 1 healthy pods and has 1 currently",
    ),
    "twice": (
        {},
        [budget("twice", maxUnavailable=1), budget("twice", "again", maxUnavailable=1)],
        "EvictionRefused",
        "This pod has more than one PodDisruptionBudget",
    ),
}
"""By workload: its pods, what else there is, and the rule that keeps the node with its words."""


@pytest.mark.podfit(nodes=2)
def test_what_keeps_a_node(cluster: Cluster) -> None:
    for name, (pod, others, _, _) in KEEPS.items():
        cluster.apply(deployment(name, **pod), *others)
    answers = [ask(cluster, node.metadata.name) for node in cluster.nodes()]
    kept = {kept.pod.partition("/")[2].partition("-")[0]: kept for told in answers for kept in told.kept_by}
    assert {told.verdict for told in answers} == {NOT_REMOVABLE}
    assert kept.keys() == KEEPS.keys()
    for name, (_, _, reason, because) in KEEPS.items():
        assert (kept[name].reason, kept[name].because[: len(because)]) == (reason, because)


@pytest.mark.podfit(nodes=2)
def test_a_node_that_is_used_more_than_the_threshold_stays_although_its_pods_have_room(cluster: Cluster) -> None:
    cluster.apply(deployment("half", "2"))
    told = ask(cluster, node_of(cluster, "half"))
    assert (told.verdict, told.utilization and told.utilization.cpu) == (REMOVABLE, 0.5)
    cluster.delete("half", kind="Deployment", api_version="apps/v1")
    cluster.apply(deployment("more", "1500m"), deployment("most", "2100m"))
    told = ask(cluster, node_of(cluster, "most"))
    (kept,) = told.kept_by
    assert (told.verdict, kept.reason) == (NOT_REMOVABLE, "NotUnderutilized")
    assert kept.because == "its pods ask for 52.5% of its cpu, above the threshold of 50%"
    assert [move.to for move in told.moves] == [node_of(cluster, "more")]


@pytest.mark.podfit(nodes=2)
def test_a_pod_without_room_elsewhere_is_told_with_the_schedulers_words(cluster: Cluster) -> None:
    cluster.apply(deployment("big", "2"), deployment("large", "2100m"))
    told = ask(cluster, node_of(cluster, "big"))
    (kept,) = told.kept_by
    assert kept.reason == "NoPlaceToMovePods"
    assert kept.because == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."


@pytest.mark.podfit(nodes=2)
def test_a_successor_counts_by_its_template_and_a_resize_by_what_it_got(cluster: Cluster) -> None:
    """A pod that was made smaller in place comes back as large as its template says."""
    cluster.apply(deployment("small", "2"), deployment("other", "2100m"))
    (pod,) = cluster.run(cluster.client.list(Pod, labels="app=small")).items
    cluster.resize(pod.metadata.name, app={"requests": {"cpu": "100m"}})
    told = ask(cluster, pod.spec.node_name)
    assert [kept.reason for kept in told.kept_by] == ["NoPlaceToMovePods"]
    assert told.utilization is not None
    assert told.utilization.cpu < 0.05


@pytest.mark.podfit(nodes=2)
def test_the_node_itself_may_say_that_it_stays(cluster: Cluster) -> None:
    name = cluster.nodes()[0].metadata.name
    annotation = {"metadata": {"annotations": {SCALE_DOWN_DISABLED: "true"}}}
    cluster.run(cluster.client.patch(Node, name, "", annotation))
    assert [kept.reason for kept in ask(cluster, name).kept_by] == ["ScaleDownDisabledAnnotation"]
    assert ask(cluster, cluster.nodes()[1].metadata.name).verdict == REMOVABLE


@pytest.mark.podfit(nodes=2)
def test_a_pod_of_nobody_and_one_whose_controller_is_gone(cluster: Cluster) -> None:
    name = cluster.nodes()[0].metadata.name
    bare = {"metadata": {"name": "bare"}, "spec": {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", **bare})
    facts = facts_of(cluster, name)
    assert [kept.reason for kept in ask(cluster, name).kept_by] == ["NotReplicated"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u", "controller": True}
    (pod,) = facts.pods
    meta = msgspec.structs.replace(pod.metadata, owner_references=(convert(owner, OwnerReference),))
    lost = msgspec.structs.replace(facts, pods=(msgspec.structs.replace(pod, metadata=meta),))
    (kept,) = why_removable(lost, NOW).kept_by
    assert kept.reason == "ControllerNotFound"


RIGHTS = {
    "nodes": ("", "get list"),
    "pods": ("", "list"),
    "namespaces": ("", "list"),
    "services": ("", "list"),
    "replicasets": ("apps", "get list"),
    "poddisruptionbudgets": ("policy", "list"),
}


def reader(cluster: Cluster, name: str, *without: str) -> None:
    """A service account that may read what is needed, but for these."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
        for resource, (group, verbs) in RIGHTS.items()
        if resource not in without
    ]
    rbac = "rbac.authorization.k8s.io"
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    )


def read_as(cluster: Cluster, account: str, node: str) -> RemovalFacts:
    async def read() -> RemovalFacts:
        client = load([path]).client()
        try:
            return await read_removal_facts(client, node)
        finally:
            await client.close()

    path = cluster.kubeconfig_of(account)
    return cluster.run(read())


@pytest.mark.podfit(nodes=2)
def test_a_reader_with_few_rights_is_told_what_is_missing(cluster: Cluster) -> None:
    cluster.apply(deployment("web"))
    node = node_of(cluster, "web")
    reader(cluster, "whole")
    assert why_removable(read_as(cluster, "whole", node), NOW).verdict == REMOVABLE
    for account, without, named in (
        ("no-budgets", "poddisruptionbudgets", "you may not list poddisruptionbudgets.policy in namespace default"),
        ("no-owners", "replicasets", "you may not get replicasets.apps in namespace default"),
        ("no-spaces", "namespaces", 'cannot list resource "namespaces"'),
    ):
        reader(cluster, account, without)
        told = why_removable(read_as(cluster, account, node), NOW)
        assert (told.verdict, told.good, told.moves) == (NOT_KNOWN, False, ())
        assert any(named in line for line in told.missing), told.missing
    reader(cluster, "no-pods", "pods")
    with pytest.raises(ApiError, match='cannot list resource "pods" in API group ""'):
        read_as(cluster, "no-pods", node)


def situation(chance: random.Random) -> list[dict[str, Any]]:
    """Workloads of which some keep their node, for one reason or another."""
    made: list[dict[str, Any]] = []
    for number in range(chance.randint(2, 5)):
        name, replicas = f"w{number}", chance.randint(1, 3)
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }
        more: dict[str, Any] = chance.choice(
            [{}, {}, {"topologySpreadConstraints": [spread]}, {"annotations": {SAFE: chance.choice(["true", "false"])}}]
        )
        made.append(deployment(name, chance.choice(["100m", "300m", "900m", "1500m"]), replicas, **more))
        if chance.random() < 0.4:
            made.append(budget(name, minAvailable=chance.randint(0, replicas)))
    return made


def drain(cluster: Cluster, told: RemovableWhy) -> None:
    """As `kubectl drain` does it: cordon, then evict one after another, and wait for each successor."""
    cluster.run(cluster.client.patch(Node, told.node, "", {"spec": {"unschedulable": True}}))
    for move in told.moves:
        namespace, name = move.pod.split("/")
        before = {pod.metadata.name for pod in cluster.run(cluster.client.list(Pod, namespace)).items}
        body = msgspec.json.encode({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        cluster.run(cluster.client.request("POST", path, body))  # ApiError 429 were it not granted
        cluster.settle()
        (successor,) = [
            pod for pod in cluster.run(cluster.client.list(Pod, namespace)).items if pod.metadata.name not in before
        ]
        assert (successor.spec.node_name, successor.status.phase) == (move.to, "Running"), move
    assert not [pod for pod in cluster.run(cluster.client.list(Pod)).items if pod.spec.node_name == told.node]


@pytest.mark.podfit(nodes=3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_called_removable_can_be_drained(cluster: Cluster, seed: int) -> None:
    """Evictions are granted, and every pod runs again where it was said; a node that is only used much is tried too."""
    chance = random.Random(seed)
    cluster.apply(*situation(chance))
    cluster.settle()
    assert all(
        item.status.observed_generation == item.metadata.generation
        for item in cluster.run(cluster.client.list(PodDisruptionBudget)).items
    )
    answers = [ask(cluster, node.metadata.name) for node in cluster.nodes()]
    movable = [told for told in answers if {kept.reason for kept in told.kept_by} <= {"NotUnderutilized"}]
    assert all(told.kept_by for told in answers if told not in movable)
    if movable:
        drain(cluster, chance.choice(movable))


def test_the_seeds_have_nodes_that_can_go_and_nodes_that_cannot() -> None:
    """The promise is about something: workloads that keep a node, and budgets, are among the drawn ones."""
    drawn = [item for seed in range(SEEDS) for item in situation(random.Random(seed))]
    kinds = {item["kind"] for item in drawn}
    assert kinds == {"Deployment", "PodDisruptionBudget"}
    annotations = [
        item["spec"]["template"]["metadata"]["annotations"] for item in drawn if item["kind"] == "Deployment"
    ]
    assert {SAFE: "false"} in annotations
    assert {} in annotations
