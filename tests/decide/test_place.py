"""Where a pod goes, and the sentence when it goes nowhere (spec 4.2)."""

import pytest

from podfit.api.base import ResourceList
from podfit.api.codec import convert
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.core.quantity import Quantity
from podfit.decide.place import NodeView, Placed, Unschedulable, place
from podfit.decide.requeue import NodeChanged, PodGone, PodShrank, worth_retrying


def quantities(**amounts: str) -> ResourceList:
    return {name: Quantity.parse(text) for name, text in amounts.items()}


def a_node(name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **spec: object) -> NodeView:
    labels = spec.pop("labels", {})
    document = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
    }
    return NodeView(convert(document, Node))


def a_pod(**spec: object) -> Pod:
    return convert({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}, Pod)


CPU_1 = quantities(cpu="1")
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("pod", "views", "message"),
    [
        (a_pod(), [a_node("n1", cpu="500m")], "0/1 nodes are available: 1 Insufficient cpu."),
        (a_pod(), [a_node("n1", pods="0")], "0/1 nodes are available: 1 Too many pods."),
        (a_pod(), [], "no nodes available to schedule pods"),
        (
            a_pod(nodeSelector={"disk": "ssd"}),
            [a_node("n1")],
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        (a_pod(), [a_node("n1", taints=[TAINT])], "0/1 nodes are available: 1 node(s) had untolerated taint(s)."),
        (a_pod(), [a_node("n1", unschedulable=True)], "0/1 nodes are available: 1 node(s) were unschedulable."),
        (
            a_pod(),
            [a_node("n1", cpu="0"), a_node("n2", cpu="0"), a_node("n3", taints=[TAINT])],
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_says_why(pod: Pod, views: list[NodeView], message: str) -> None:
    verdict = place(pod, CPU_1, views)
    assert isinstance(verdict, Unschedulable)
    assert verdict.message == message


def test_both_short_resources_are_named() -> None:
    verdict = place(a_pod(), quantities(cpu="5", memory="9Gi"), [a_node("n1")])
    assert isinstance(verdict, Unschedulable)
    assert verdict.message == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    assert verdict.short_of == {"cpu", "memory"}


def test_exactly_what_is_left_fits() -> None:
    view = a_node("n1", cpu="2")
    taken = NodeView(view.node, requested=quantities(cpu="1500m"), pods=1)
    assert place(a_pod(), quantities(cpu="500m"), [taken]) == Placed("n1")
    assert isinstance(place(a_pod(), quantities(cpu="501m"), [taken]), Unschedulable)


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
    verdict = place(a_pod(tolerations=[toleration]), CPU_1, [a_node("n1", taints=[TAINT])])
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
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    pod = a_pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    verdict = place(pod, CPU_1, [a_node("n1", labels={"zone": "a", "cores": "16"})])
    assert isinstance(verdict, Placed) is fits


def test_host_ports_are_exclusive() -> None:
    pod = a_pod(containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080}]}])
    free = a_node("n1")
    held = NodeView(free.node, ports=frozenset({("127.0.0.1", "TCP", 8080)}))
    other = NodeView(free.node, ports=frozenset({("127.0.0.1", "UDP", 8080)}))
    assert isinstance(place(pod, {}, [held]), Unschedulable)
    assert place(pod, {}, [other]) == Placed("n1")


def test_the_emptier_node_wins_and_names_break_ties() -> None:
    full = NodeView(a_node("a").node, requested=quantities(cpu="3", memory="6Gi"))
    assert place(a_pod(), CPU_1, [full, a_node("b")]) == Placed("b")
    assert place(a_pod(), CPU_1, [a_node("b"), a_node("a")]) == Placed("a")


def test_a_soft_taint_only_repels() -> None:
    soft = a_node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert place(a_pod(), CPU_1, [soft, a_node("b")]) == Placed("b")
    assert place(a_pod(), CPU_1, [soft]) == Placed("a")


def test_constraints_that_are_not_evaluated_are_refused_by_name() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    verdict = place(a_pod(affinity={"podAntiAffinity": rules}), CPU_1, [a_node("n1")])
    assert isinstance(verdict, Unschedulable)
    assert "podfit does not evaluate required pod affinity" in verdict.message


def test_only_a_change_that_can_help_wakes_a_pod() -> None:
    waiting = place(a_pod(), CPU_1, [a_node("n1", cpu="0")])
    assert isinstance(waiting, Unschedulable)
    assert worth_retrying(waiting, PodShrank(frozenset({"cpu"})))
    assert not worth_retrying(waiting, PodShrank(frozenset({"memory"})))
    assert worth_retrying(waiting, PodGone())
    tainted = place(a_pod(), CPU_1, [a_node("n1", taints=[TAINT])])
    assert isinstance(tainted, Unschedulable)
    assert not worth_retrying(tainted, PodGone())
    assert worth_retrying(tainted, NodeChanged())
