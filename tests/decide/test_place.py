"""Where a pod goes, and the sentence when it goes nowhere."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.placement.fit_score import FitScoring, Strategy
from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.score import DEFAULT_WEIGHTS
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import a_node, a_pod

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
ONE_CPU = a_pod(cpu="1")


def refused(pod: Resident, *views: NodeInfo) -> str:
    verdict = place(pod, views)
    assert isinstance(verdict, Unschedulable)
    return verdict.message


@pytest.mark.parametrize(
    ("pod", "views", "message"),
    [
        (ONE_CPU, [a_node("n1", cpu="500m")], "0/1 nodes are available: 1 Insufficient cpu."),
        (ONE_CPU, [a_node("n1", pods="0")], "0/1 nodes are available: 1 Too many pods."),
        (ONE_CPU, [], "no nodes available to schedule pods"),
        (
            a_pod(nodeSelector={"disk": "ssd"}),
            [a_node("n1")],
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        (ONE_CPU, [a_node("n1", taints=[TAINT])], "0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
        (ONE_CPU, [a_node("n1", unschedulable=True)], "0/1 nodes are available: 1 node(s) were unschedulable."),
        (
            ONE_CPU,
            [a_node("n1", cpu="0"), a_node("n2", cpu="0"), a_node("n3", taints=[TAINT])],
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
        ),
        (
            a_pod(cpu="5", memory="9Gi"),
            [a_node("n1")],
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
        ),
        (
            a_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
            [a_node("n1")],
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found',
        ),
    ],
)
def test_a_pod_that_fits_nowhere_says_why(pod: Resident, views: list[NodeInfo], message: str) -> None:
    assert refused(pod, *views) == message


@pytest.mark.parametrize(
    ("pod", "view", "final"),
    [
        (ONE_CPU, a_node("n", cpu="500m"), True),
        (ONE_CPU, a_node("n", a_pod("q", cpu="4")), False),
        (ONE_CPU, a_node("n", pods="0"), False),
        (ONE_CPU, a_node("n", taints=[TAINT]), True),
    ],
)
def test_only_what_others_hold_can_be_freed_by_eviction(pod: Resident, view: NodeInfo, final: bool) -> None:
    verdict = place(pod, [view])
    assert isinstance(verdict, Unschedulable)
    assert verdict.refusals["n"].final is final


def test_exactly_what_is_left_fits() -> None:
    view = a_node("n1", a_pod("q", cpu="1500m"), cpu="2")
    assert place(a_pod(cpu="500m"), [view]) == Placed("n1")
    assert refused(a_pod(cpu="501m"), view)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], fits: bool) -> None:
    verdict = place(a_pod(tolerations=[toleration]), [a_node("n1", taints=[TAINT])])
    assert isinstance(verdict, Placed) is fits


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "cores", "operator": "Gt", "values": ["8"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "absent", "operator": "DoesNotExist"}, True),
    ],
)
def test_required_node_affinity(expression: dict[str, object], fits: bool) -> None:
    pod = a_pod(affinity=node_affinity({"matchExpressions": [expression]}))
    verdict = place(pod, [a_node("n1", labels={"zone": "a", "cores": "16"})])
    assert isinstance(verdict, Placed) is fits


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def test_when_every_term_names_nodes_the_others_are_not_even_looked_at() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    labelled = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    full, other = a_node("n1", cpu="0"), a_node("n2")
    assert refused(a_pod(cpu="1", affinity=node_affinity(named)), full, other) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert refused(a_pod(cpu="1", affinity=node_affinity(named, labelled)), full, other) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    )


def test_host_ports_are_exclusive() -> None:
    def binding(protocol: str = "TCP", **port: str) -> Resident:
        ports = [{"containerPort": 80, "hostPort": 8080, "protocol": protocol, **port}]
        return a_pod(containers=[{"name": "c", "ports": ports}])

    assert refused(binding(), a_node("n1", binding(hostIP="127.0.0.1"))) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert place(binding(), [a_node("n1", binding("UDP", hostIP="127.0.0.1"))]) == Placed("n1")


def test_the_emptier_node_wins_and_names_break_ties() -> None:
    full = a_node("a", a_pod("q", cpu="3", memory="6Gi"))
    assert place(ONE_CPU, [full, a_node("b")]) == Placed("b")
    assert place(ONE_CPU, [a_node("b"), a_node("a")]) == Placed("a")


def test_a_soft_taint_only_repels() -> None:
    soft = a_node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert place(ONE_CPU, [soft, a_node("b")]) == Placed("b")
    assert place(ONE_CPU, [soft]) == Placed("a")


def test_a_node_that_the_pod_is_nominated_for_goes_before_a_better_one() -> None:
    views = [a_node("a"), a_node("b", a_pod("q", cpu="3"))]
    assert place(a_pod(cpu="1", status={"nominatedNodeName": "b"}), views) == Placed("b")
    assert place(a_pod(cpu="2", status={"nominatedNodeName": "b"}), views) == Placed("a")


@pytest.mark.parametrize(("priority", "fits"), [(5, False), (10, False), (11, True)])
def test_promised_room_is_kept_against_pods_of_the_same_or_lower_priority(priority: int, fits: bool) -> None:
    view = a_node("n1", cpu="2")
    promised = NodeInfo(view.node, nominated=(a_pod("q", cpu="2", priority=10),))
    verdict = place(a_pod(cpu="1", priority=priority), [promised])
    assert isinstance(verdict, Placed) is fits


@pytest.mark.row("R-087")
@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"resources": {"requests": {"cpu": "1"}}}, ""),
        ({"initContainers": [{"name": "i"}]}, ""),
        ({"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport"),
        ({"hostUsers": False}, ""),
        (
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "RestartAllContainersOnContainerExits",
        ),
    ],
)
def test_features_that_a_node_has_to_declare(spec: dict[str, Any], needed: str) -> None:
    pod = a_pod(**spec)
    bare = place(pod, [a_node("n1")])
    if not needed:
        assert bare == Placed("n1")
        return
    assert isinstance(bare, Unschedulable)
    assert bare.message == "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    assert bare.refusals["n1"].final
    assert place(pod, [a_node("n1", features=(needed,))]) == Placed("n1")


def test_most_allocated_fills_a_node_before_the_next() -> None:
    weights, full = {**DEFAULT_WEIGHTS, "NodeResourcesBalancedAllocation": 0}, FitScoring(Strategy.MOST_ALLOCATED)
    views = [a_node("empty"), a_node("half", a_pod("there", cpu="2", memory="4Gi")), a_node("small", cpu="1")]
    assert place(a_pod(cpu="500m", memory="1Gi"), views, weights=weights, fit=full) == Placed("half")
    assert place(a_pod(cpu="500m", memory="1Gi"), views) == Placed("empty")


def test_what_was_counted_on_a_node_is_counted_anew_when_its_pods_change() -> None:
    """Pods of one workload ask the same of each node; the answer is remembered with the node as it is."""
    asked: list[str] = []

    def matches(pod: Pod) -> bool:
        asked.append(pod.metadata.labels["app"])
        return pod.metadata.labels["app"] == "web"

    web, other = a_pod(labels={"app": "web"}), a_pod(labels={"app": "db"})
    view = a_node("n1").plus(web).plus(other)
    assert (view.count("web", matches), view.count("web", matches)) == (1, 1)
    assert asked == ["web", "db"]
    assert view.plus(web).count("web", matches) == 2
    assert view.count("others", lambda pod: not matches(pod)) == 1
