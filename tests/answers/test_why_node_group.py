"""`podfit why node-group/NAME`, and what `why pod/NAME` and `plan` say of nodes: by what the autoscaler wrote."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.answers.facts.node_scaling import LARGEST, NodeScaling, next_for, read_node_scaling, told_by
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.why.node_group import why_node_group
from podfit.answers.why.pods import why_pod
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.capacity.outlook import Act, GroupOutlook, NodeOutlook, Outlook, PodOutlook
from podfit.testing.cluster import Cluster

NOW = parse_time("2026-01-01T00:10:00Z")
GROUPS = Path(__file__).parents[2] / "examples" / "node-groups.yaml"
grouped = pytest.mark.podfit(nodes=0, node_groups=GROUPS)


def deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    spec = {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10", "resources": resources}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def written(outlook: Outlook) -> NodeScaling:
    return told_by({"podfit-outlook": msgspec.json.encode(outlook).decode()}, NOW)


def test_a_group_is_told_with_what_comes_and_goes() -> None:
    group = GroupOutlook(name="small", size=3, min_size=1, max_size=9, ready=2, coming=1, due="later", grows="")
    pods = (
        PodOutlook(namespace="shop", pod="web", act=Act.NODE, group="small", due="later"),
        PodOutlook(namespace="shop", pod="other", act=Act.NODE, group="large"),
    )
    nodes = (
        NodeOutlook(name="small-1", group="small", removed="soon", reason="NotUnneededLongEnough", because="5 s"),
        NodeOutlook(name="small-2", group="small", reason="NotUnderutilized", because="it is full"),
    )
    answer = why_node_group("small", written(Outlook(groups=(group,), pods=pods, nodes=nodes, left_out=4)))
    assert (answer.size, answer.coming, answer.due, answer.good) == (3, 1, "later", False)
    assert [(pod.pod, pod.next) for pod in answer.pods] == [("shop/web", "a node of group small comes by later")]
    assert [node.next for node in answer.nodes] == [
        "goes at soon (NotUnneededLongEnough: 5 s)",
        "stays, NotUnderutilized: it is full",
    ]
    assert answer.notes == ("4 pods, groups and nodes are left out",)


@pytest.mark.parametrize(
    ("scaling", "code", "text"),
    [
        (NodeScaling(), 404, "no cluster autoscaler has written its status"),
        (told_by({"status": "x"}, NOW), 404, "does not say what it is about to do"),
        (told_by({"podfit-outlook": "{"}, NOW), 403, "cannot be read"),
        (told_by({"podfit-outlook": "x" * (LARGEST + 1)}, NOW), 403, "it is too long"),
        (told_by({"podfit-outlook": '{"until": "soon"}'}, NOW), 403, "cannot be read"),
        (written(Outlook()), 404, 'node groups "small" not found'),
    ],
)
def test_what_is_not_told_is_said(scaling: NodeScaling, code: int, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        why_node_group("small", scaling)
    assert refused.value.code == code
    assert text in refused.value.message


def test_an_outlook_that_was_not_renewed_is_not_believed() -> None:
    group = GroupOutlook(name="small", size=3, min_size=1, max_size=9, ready=2)
    late = Outlook(time="2026-01-01T00:09:00Z", until="2026-01-01T00:09:30Z", groups=(group,))
    assert why_node_group("small", written(late)).notes == ("it has written nothing since 2026-01-01T00:09:00Z",)
    pod = PodOutlook(namespace="", pod="", act=Act.NODE)
    assert written(msgspec.structs.replace(late, pods=(pod,))).of(_Nobody()) is None  # type: ignore[arg-type]


class _Nobody:
    class metadata:  # noqa: N801  (as a pod has it)
        namespace, name = "", ""


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            {"act": Act.SHRINK, "who": "a/b", "what": "cpu 2 → 1", "due": "T"},
            "a/b is to shrink for it (cpu 2 → 1) by T, else a neighbour moves",
        ),
        ({"act": Act.SHRINK, "who": "a/b", "what": "cpu 2 → 1"}, "a/b shrinks for it (cpu 2 → 1)"),
        (
            {"act": Act.NODE, "who": "a/b", "begins": "T"},
            "at T, if it still waits: a node is asked for, so that a/b moves there",
        ),
        ({"act": Act.MOVE, "who": "a/b", "to": "n1"}, "a/b moves to node n1"),
        (
            {"act": Act.MOVE, "who": "a/b", "group": "g", "due": "T", "because": "x"},
            "a/b moves to a node of group g that is on its way by T: x",
        ),
        ({"act": Act.NODE, "who": "a/b", "group": "g"}, "a node of group g comes for a/b"),
        ({"act": Act.NODE, "who": "s/p", "group": "g", "due": "T"}, "a node of group g comes by T"),
        ({"act": Act.NOTHING, "because": "x"}, "no node comes: x"),
        ({"act": Act.WAIT, "due": "T", "because": "x"}, "it waits until T: x"),
    ],
)
def test_each_act_is_said_in_a_line(told: dict[str, Any], text: str) -> None:
    assert next_for(PodOutlook(namespace="s", pod="p", **told)) == text


# ------------------------------------------------------------------ what is promised happens


def moment(cluster: Cluster) -> datetime:
    return parse_time("2026-01-01T00:00:00Z") + timedelta(seconds=cluster.clock.elapsed)


def said_of(cluster: Cluster, name: str) -> str:
    clock = cluster._virtual
    snapshot = cluster.run(Reader(cluster.client, "default", clock).read(Target(POD, name)))
    return why_pod(snapshot.pods[0], snapshot, clock.now()).nodes


def group_of(cluster: Cluster, name: str) -> Any:
    return why_node_group(name, cluster.run(read_node_scaling(cluster.client, cluster._virtual.now())))


@grouped
def test_a_node_that_is_promised_comes_and_one_that_is_to_go_goes(cluster: Cluster) -> None:
    cluster.apply(deployment("web", 1, "1500m"))
    cluster.clock.advance(10)
    [pod] = cluster.pods()
    if pod.phase != "Running":
        assert "a node of group small comes by" in said_of(cluster, pod.name)
    cluster.clock.advance(60)
    assert cluster.pod(pod.name).phase == "Running"
    answer = group_of(cluster, "small")
    assert (answer.size, answer.ready, answer.good) == (1, 1, True)
    [node] = answer.nodes
    assert node.next.startswith("stays, NotUnderutilized")
    cluster.delete("web", kind="Deployment", api_version="apps/v1")
    cluster.clock.advance(60)
    [node] = group_of(cluster, "small").nodes
    assert node.next.startswith("goes at 2026-01-01T00:1")
    due = parse_time(node.next.split()[2])
    cluster.clock.advance((due - cluster._virtual.now()).total_seconds() - 15)
    assert len(cluster.nodes()) == 1
    cluster.clock.advance(60)
    assert cluster.nodes() == []


@grouped
def test_what_is_said_of_a_waiting_resize_happens(cluster: Cluster) -> None:
    """It waits, then a node comes for its neighbour, which moves there; `plan` had said so."""
    cluster.apply(deployment("web", 1, "900m"), deployment("db", 1, "900m"))
    cluster.clock.advance(60)
    db, web = (next(pod for pod in cluster.pods() if pod.name.startswith(name)) for name in ("db-", "web-"))
    snapshot = cluster.run(Reader(cluster.client, "default", cluster._virtual).read(Target(POD, db.name), usage=True))
    planned = plan(snapshot, ResizeRequest({"cpu": Amount(Quantity.parse("1500m"))}, "app"))
    place = "the cluster autoscaler makes a place for a resize that waits: a neighbour moves, or a node comes"
    assert place in planned.notes
    cluster.resize(db.name, app={"requests": {"cpu": "1500m"}})
    cluster.clock.advance(15)
    said = said_of(cluster, db.name)
    assert said.startswith("at 2026-01-01T00:01:")
    assert said.endswith(f", if it still waits: a node is asked for, so that default/{web.name} moves there")
    seen = set[str]()
    for _ in range(30):
        cluster.clock.advance(5)
        said = said_of(cluster, db.name)
        seen.add(said.partition(" ")[0])
        if not said:
            break
    assert not said_of(cluster, db.name)
    assert seen - {"at", "it", ""} <= {"a", f"default/{web.name}"}
    assert len(cluster.nodes()) == 2
    moved = next(pod for pod in cluster.pods() if pod.name.startswith("web-"))
    assert moved.name != web.name


@grouped
def test_a_neighbour_that_is_told_to_shrink_does(cluster: Cluster) -> None:
    """By the autoscaler, where nobody else makes room; nobody moves, and no node comes."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    batch, db = deployment("batch", 1, "900m"), deployment("db", 1, "900m")
    batch["spec"]["template"]["metadata"]["annotations"] = {"podfit.dev/minimum": "cpu=100m"}
    db["spec"]["template"]["spec"]["priorityClassName"] = "high"
    cluster.apply(high, batch, db)
    cluster.clock.advance(60)
    named = {pod.name.split("-")[0]: pod for pod in cluster.pods()}
    cluster.resize(named["db"].name, app={"requests": {"cpu": "1500m"}})
    cluster.clock.advance(15)
    said, waiting = said_of(cluster, named["db"].name), group_of(cluster, "small").pods
    assert said.endswith(f"default/{named['batch'].name} shrinks for it (cpu 900m → 500m)")
    assert [(pod.pod, pod.next) for pod in waiting] == [(f"default/{named['db'].name}", said)]
    cluster.clock.advance(40)
    sizes = {pod.name: pod.document["status"]["containerStatuses"][0]["allocatedResources"] for pod in cluster.pods()}
    assert {name: size["cpu"] for name, size in sizes.items()} == {
        named["db"].name: "1500m",
        named["batch"].name: "500m",
    }
    assert "GaveRoom" in [event.reason for event in cluster.events(named["batch"].name)]
    assert not said_of(cluster, named["db"].name)
    assert len(cluster.nodes()) == 1


@grouped
def test_what_no_group_can_give_is_said(cluster: Cluster) -> None:
    cluster.apply(deployment("web", 1, "64"))
    cluster.clock.advance(60)
    [pod] = cluster.pods()
    assert said_of(cluster, pod.name) == "no node comes: no node group can help: 2 Insufficient cpu"
    with pytest.raises(ApiError, match="not found"):
        group_of(cluster, "none")
