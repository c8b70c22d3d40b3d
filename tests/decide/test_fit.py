"""The verdict on a pod, and its exact words."""

import pytest

from podfit.api.core.v1.pods.affinity import Toleration
from podfit.api.core.v1.pods.containers import ContainerPort, ResourceRequirements
from podfit.core.features import FeatureGates
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import NOBODY, Neighbour, neighbour, others_of
from podfit.decide.resize.verdict import Deferred, Fits, Infeasible, NodeView
from support.placed import RESTART_MEMORY, placed, resized
from support.pods import amounts, container, needs, pod

MACHINE = Machine(memory=8 << 30)
NODE = NodeView(allocatable=amounts({"cpu": "4", "memory": "8Gi", "pods": "3"}), machine=MACHINE)
HOG = Neighbour("default/hog", amounts({"cpu": "3", "memory": "1Gi"}))
MOUSE = Neighbour("default/mouse", amounts({"cpu": "100m"}))
GUARANTEED = {"cpu": "1", "memory": "1Gi"}


def node(**changes: object) -> NodeView:
    fields = {"allocatable": NODE.allocatable, "machine": MACHINE, **changes}
    return NodeView(**fields)  # type: ignore[arg-type]  # keywords of several types


@pytest.mark.row("R-096")
def test_too_little_room_names_what_is_short_and_who_has_it() -> None:
    asks = placed(pod(container("c1", {"cpu": "2"})))
    assert verdicts.admit(asks, NODE, others_of([MOUSE, HOG])) == Deferred(
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 2000, used: 3100, capacity: 4000",
        amounts({"cpu": "1100m"}),
        ("default/hog", "default/mouse"),
    )
    assert verdicts.admit(asks, NODE, others_of([MOUSE])) == Fits()


TAKEN = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"


@pytest.mark.parametrize(
    ("holds", "asks", "free"),
    [
        (ContainerPort(host_port=80), ContainerPort(host_port=80), False),
        (ContainerPort(host_port=80), ContainerPort(host_port=81), True),
        (ContainerPort(host_port=80), ContainerPort(host_port=80, protocol="UDP"), True),
        (ContainerPort(host_port=80, host_ip="10.0.0.1"), ContainerPort(host_port=80, host_ip="10.0.0.2"), True),
        (ContainerPort(host_port=80, host_ip="10.0.0.1"), ContainerPort(host_port=80, host_ip="10.0.0.1"), False),
        (ContainerPort(host_port=80, host_ip="10.0.0.1"), ContainerPort(host_port=80), False),
        (ContainerPort(host_port=80, host_ip="0.0.0.0"), ContainerPort(host_port=80, host_ip="10.0.0.1"), False),
        (ContainerPort(container_port=80), ContainerPort(container_port=80), True),
    ],
)
def test_a_port_of_the_host_is_held_by_one_pod(holds: ContainerPort, asks: ContainerPort, free: bool) -> None:
    """By address and protocol; the scheduler's filter is the same function."""
    first, second = (placed(pod(container("c1", ports=(port,)))) for port in (holds, asks))
    others = others_of([neighbour(first, NODE.gates)])
    assert verdicts.admit(second, NODE, others) == (Fits() if free else Deferred("NodePorts", TAKEN))


def test_ports_are_looked_at_after_room() -> None:
    web = container("c1", {"cpu": "3"}, ports=(ContainerPort(host_port=80),))
    others = others_of([neighbour(placed(pod(web)), NODE.gates)])
    refusal = verdicts.admit(placed(pod(web)), NODE, others)
    assert isinstance(refusal, Deferred)
    assert refusal.reason == "OutOfcpu"


def test_memory_is_in_bytes_and_cpu_speaks_first() -> None:
    asks = placed(pod(container("c1", {"memory": "8Gi"})))
    assert verdicts.admit(asks, NODE, others_of([HOG])) == Deferred(
        "OutOfmemory",
        "Node didn't have enough resource: memory, requested: 8589934592, used: 1073741824, capacity: 8589934592",
        amounts({"memory": "1Gi"}),
        ("default/hog",),
    )
    both = verdicts.admit(placed(pod(container("c1", {"memory": "9Gi", "cpu": "5"}))), NODE, NOBODY)
    assert isinstance(both, Deferred)
    assert (both.reason, set(both.short_by)) == ("OutOfcpu", {"cpu", "memory"})


def test_pods_are_counted() -> None:
    verdict = verdicts.admit(placed(pod(container("c1"))), NODE, others_of([MOUSE, MOUSE, HOG]))
    assert isinstance(verdict, Deferred)
    assert verdict.message == "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (node(shutting_down=True), "Pod was rejected as the node is shutting down."),
        (node(pressure=("DiskPressure",)), "The node had condition: [DiskPressure]. "),
    ],
)
@pytest.mark.row("R-118")
def test_node_conditions_defer(view: NodeView, message: str) -> None:
    verdict = verdicts.admit(placed(pod(container("c1", {"cpu": "1"}))), view, NOBODY)
    assert isinstance(verdict, Deferred)
    assert verdict.message == message


def test_memory_pressure_turns_away_besteffort_only() -> None:
    pressed = node(pressure=("MemoryPressure",))
    assert verdicts.admit(placed(pod(container("c1", {"cpu": "1"}))), pressed, NOBODY) == Fits()
    assert verdicts.admit(placed(pod(container("c1"))), pressed, NOBODY) != Fits()
    bears_it = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")
    assert verdicts.admit(placed(pod(container("c1"), tolerations=(bears_it,))), pressed, NOBODY) == Fits()
    both = node(pressure=("DiskPressure", "MemoryPressure"))
    refusal = Deferred("Evicted", "The node had condition: [DiskPressure MemoryPressure]. ")
    assert verdicts.admit(placed(pod(container("c1", {"cpu": "1"}))), both, NOBODY) == refusal


STATIC_CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
STATIC_MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
SWAP = "In-place resize of containers with swap is not supported."
MORE_CPU, MORE_MEMORY = {**GUARANTEED, "cpu": "2"}, {**GUARANTEED, "memory": "2Gi"}


@pytest.mark.parametrize(
    ("view", "before", "after", "verdict"),
    [
        (
            node(platform="windows"),
            GUARANTEED,
            MORE_CPU,
            Infeasible("In-place pod resize is not supported on Windows", "windows"),
        ),
        (
            node(platform="plan9"),
            GUARANTEED,
            MORE_CPU,
            Infeasible("In-place pod resize is not supported on this node", "unsupported_platform"),
        ),
        (
            node(cpu_manager="static"),
            GUARANTEED,
            MORE_CPU,
            Infeasible(STATIC_CPU, "guaranteed_pod_cpu_manager_static_policy"),
        ),
        (node(cpu_manager="static"), GUARANTEED, MORE_MEMORY, Fits()),
        (
            node(memory_manager="Static"),
            GUARANTEED,
            MORE_MEMORY,
            Infeasible(STATIC_MEMORY, "guaranteed_pod_memory_manager_static_policy"),
        ),
        (node(memory_manager="Static"), GUARANTEED, MORE_CPU, Fits()),
    ],
)
@pytest.mark.row("R-113", "R-114", "R-189")
def test_guaranteed_pods_on_static_nodes(
    view: NodeView, before: dict[str, str], after: dict[str, str], verdict: object
) -> None:
    old = placed(pod(container("c1", before, before)))
    assert verdicts.resize(resized(old, c1=needs(after, after)), old, view, NOBODY) == verdict


@pytest.mark.row("R-115")
def test_burstable_pods_resize_on_static_nodes() -> None:
    old = placed(pod(container("c1", {"cpu": "1", "memory": "1Gi"})))
    view = node(cpu_manager="static", memory_manager="Static")
    assert verdicts.resize(resized(old, c1=needs(MORE_CPU)), old, view, NOBODY) == Fits()


@pytest.mark.row("R-116")
def test_swap_forbids_another_memory_request_without_restart() -> None:
    view = node(machine=Machine(memory=8 << 30, cgroup="v2", swap=1 << 30, swap_controller=True))
    limits = {"memory": "2Gi"}
    old = placed(pod(container("c1", {"memory": "1Gi"}, limits)))
    bigger = resized(old, c1=needs({"memory": "1536Mi"}, limits))
    assert verdicts.resize(bigger, old, view, NOBODY) == Infeasible(SWAP, "swap_limitation")
    restarting = placed(pod(container("c1", {"memory": "1Gi"}, limits, resize_policy=(RESTART_MEMORY,))))
    assert (
        verdicts.resize(resized(restarting, c1=needs({"memory": "1536Mi"}, limits)), restarting, view, NOBODY) == Fits()
    )
    only_limit = resized(old, c1=needs({"memory": "1Gi"}, {"memory": "3Gi"}))
    assert verdicts.resize(only_limit, old, view, NOBODY) == Fits()


def test_pod_level_needs_its_gate() -> None:
    gates = FeatureGates({"InPlacePodLevelResourcesVerticalScaling": False})
    old = placed(pod(container("c1", {"cpu": "1"}), resources=needs({"cpu": "1"})))
    verdict = verdicts.resize(
        resized(old, level=needs({"cpu": "2"})), old, node(machine=Machine(memory=1 << 30, gates=gates)), NOBODY
    )
    assert verdict == Infeasible("InPlacePodLevelResourcesVerticalScaling is disabled", "plr_feature_gate_off")


@pytest.mark.row("R-109")
def test_whole_pod_or_nothing() -> None:
    one: ResourceRequirements = needs({"cpu": "1"})
    old = placed(pod(container("a", {"cpu": "1"}), container("b", {"cpu": "1"})))
    assert isinstance(verdicts.resize(resized(old, a=one, b=needs({"cpu": "4"})), old, NODE, NOBODY), Deferred)
