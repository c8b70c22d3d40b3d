"""The verdict on a resize: Fits, Deferred or Infeasible; and on the admission of a pod.

The same question is asked of a new pod, of a resize and, by `podfit why`, of a resize that nobody has asked for. The
answer is a value: it names what is short and who is in the way, and leaves conditions and events to the caller.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.cgroup.container_resources import Machine, limited_swap
from podfit.decide.managers import cpu as cpusets
from podfit.decide.managers import memory as memory_blocks
from podfit.decide.placement.node_filters import NO_FREE_PORTS, clash, matches_node, tolerates
from podfit.decide.placement.view import host_ports
from podfit.decide.pod.allocated import NOTHING, resizable
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import INFEASIBLE, Shortage
from podfit.decide.pod.system_priority import is_critical
from podfit.decide.resize.neighbours import Neighbour, Others
from podfit.decide.resize.restart_policy import restarting


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """This node as its kubelet knows it. `pressure` holds the names of conditions such as `DiskPressure`.

    `cpus` and `memory` say who has CPUs and memory set aside; None where the manager's policy sets nothing aside.
    """

    allocatable: ResourceList
    machine: Machine
    node: Node | None = None
    platform: str = "linux"
    cpu_manager: str = "none"
    memory_manager: str = "None"
    cpus: cpusets.CpuState | None = None
    memory: memory_blocks.MemoryState | None = None
    pressure: tuple[str, ...] = ()
    shutting_down: bool = False

    @property
    def gates(self) -> FeatureGates:
        return self.machine.gates


class Fits(msgspec.Struct, frozen=True):
    """There is room."""


class Deferred(msgspec.Struct, frozen=True):
    """Not now. `reason` is the handler's (`OutOfcpu`), `blocked_by` names who holds what is short, largest first."""

    reason: str
    message: str
    short_by: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    blocked_by: tuple[str, ...] = ()


class Infeasible(msgspec.Struct, frozen=True):
    """Not while the node is as it is. `detail` is from the closed set of the metric's reason_detail (R-189)."""

    message: str
    detail: str
    reason: str = INFEASIBLE


_MEMORY_PRESSURE = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
Verdict = Fits | Deferred | Infeasible


def admit(pod: Pod, node: NodeView, others: Others) -> Fits | Deferred:
    """A new pod, at the size given by its spec. First refusal wins: pressure, managers, resources, affinity, ports of
    the host, shutdown.

    The caller goes on with `occupied(pod, node)` when it fits.
    """
    checks = (
        _pressure(pod, node),
        _set_aside(pod, node),
        _resources(pod, node, others),
        _affinity(pod, node),
        ports_taken(pod, others),
        _shutdown(node),
    )
    return next((refusal for refusal in checks if refusal is not None), Fits())


def occupied(pod: Pod, node: NodeView) -> NodeView:
    """The node once `pod` is admitted: its CPUs and its memory are set aside."""
    cpus = cpusets.assign(pod, node.cpus, node.gates) if node.cpus is not None else None
    memory = memory_blocks.assign(pod, node.memory, node.gates) if node.memory is not None else None
    if cpus is node.cpus and memory is node.memory:
        return node
    return replace(
        node,
        cpus=cpus if isinstance(cpus, cpusets.CpuState) else node.cpus,
        memory=memory if isinstance(memory, memory_blocks.MemoryState) else node.memory,
    )


def resize(desired: Pod, allocated: Pod, node: NodeView, others: Others) -> Verdict:
    """A pod that runs at `allocated` and wants `desired`, all of it or nothing of it (R-109)."""
    infeasible = next(_infeasible(desired, allocated, node), None)
    return infeasible if infeasible is not None else admit(desired, node, others)


def _infeasible(desired: Pod, allocated: Pod, node: NodeView) -> Iterator[Infeasible]:
    """Every reason why no amount of room would help, in upstream's order."""
    gates, guaranteed = node.gates, desired.status.qos_class == "Guaranteed"
    if node.platform == "windows":
        yield Infeasible("In-place pod resize is not supported on Windows", "windows")
    elif node.platform != "linux":
        yield Infeasible("In-place pod resize is not supported on this node", "unsupported_platform")
    if not gates["InPlacePodVerticalScaling"]:
        yield Infeasible("InPlacePodVerticalScaling is disabled", "feature_gate_off")
    if _touches_swap(desired, allocated, node.machine):
        yield Infeasible("In-place resize of containers with swap is not supported.", "swap_limitation")
    level_changed = (desired.spec.resources or NOTHING) != (allocated.spec.resources or NOTHING)
    if level_changed and not gates["InPlacePodLevelResourcesVerticalScaling"]:
        yield Infeasible("InPlacePodLevelResourcesVerticalScaling is disabled", "plr_feature_gate_off")
    cpu_is_fixed = node.cpu_manager == "static" and not gates["InPlacePodVerticalScalingExclusiveCPUs"]
    if guaranteed and cpu_is_fixed and _requests_differ(desired, allocated, "cpu", gates):
        text = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
        yield Infeasible(text, "guaranteed_pod_cpu_manager_static_policy")
    memory_is_fixed = node.memory_manager == "Static" and not gates["InPlacePodVerticalScalingExclusiveMemory"]
    if guaranteed and memory_is_fixed and _requests_differ(desired, allocated, "memory", gates):
        text = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
        yield Infeasible(text, "guaranteed_pod_memory_manager_static_policy")


def _requests_differ(desired: Pod, allocated: Pod, name: str, gates: FeatureGates) -> bool:
    return any(
        new.resources.requests.get(name, ZERO) != old.resources.requests.get(name, ZERO)
        for new, old in zip(resizable(desired, gates), resizable(allocated, gates), strict=True)
    )


def _touches_swap(desired: Pod, allocated: Pod, machine: Machine) -> bool:
    """Whether a container that may swap would get another memory request without a restart (R-116)."""
    if not machine.swap:
        return False
    pairs = zip(all_containers(desired.spec), all_containers(allocated.spec), strict=True)
    return any(
        new.resources.requests.get("memory", ZERO) != old.resources.requests.get("memory", ZERO)
        and not restarting(new, ["memory"])
        and (limited_swap(desired, new, machine) or limited_swap(allocated, old, machine))
        for new, old in pairs
    )


def _pressure(pod: Pod, node: NodeView) -> Deferred | None:
    """Memory pressure turns away BestEffort pods only, and not those that tolerate it; the other conditions everyone
    but critical pods (R-118).
    """
    conditions = list(node.pressure)
    if not conditions or is_critical(pod):
        return None
    bears_it = any(tolerates(toleration, _MEMORY_PRESSURE) for toleration in pod.spec.tolerations)
    if conditions == ["MemoryPressure"] and (pod.status.qos_class != "BestEffort" or bears_it):
        return None
    return Deferred("Evicted", f"The node had condition: [{' '.join(conditions)}]. ")


def _set_aside(pod: Pod, node: NodeView) -> Deferred | None:
    """CPUs and memory of its own, where the node's managers are static and the pod is due them."""
    cpus = cpusets.assign(pod, node.cpus, node.gates) if node.cpus is not None else None
    memory = memory_blocks.assign(pod, node.memory, node.gates) if node.memory is not None else None
    for outcome in (cpus, memory):
        if isinstance(outcome, cpusets.TooFew | memory_blocks.NoNode):
            text = f"Allocate failed due to {outcome}, which is unexpected"
            return Deferred("UnexpectedAdmissionError", text)
    return None


def _affinity(pod: Pod, node: NodeView) -> Deferred | None:
    if node.node is None or matches_node(pod, node.node):
        return None
    return Deferred("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")


def ports_taken(pod: Pod, others: Others) -> Deferred | None:
    """The scheduler's rule: who is placed by another way, or by a file, meets it here."""
    wanted = host_ports(pod)
    if not wanted or not any(clash(wanted, other.ports) for other in others.one_by_one()):
        return None
    return Deferred("NodePorts", f"Predicate NodePorts failed: {NO_FREE_PORTS}")


def _shutdown(node: NodeView) -> Deferred | None:
    return Deferred("NodeShutdown", "Pod was rejected as the node is shutting down.") if node.shutting_down else None


def _resources(pod: Pod, node: NodeView, others: Others) -> Deferred | None:
    """The pod's whole request beside what the others hold. The first resource that is short gives the reason."""
    short = shortage(pod, node, others)
    if not short:
        return None
    first, capacity, totals = next(iter(short)), node.allocatable, others.totals
    if first == "pods":
        figures = (Quantity.of(1), Quantity.of(totals.pods), capacity[first])
    else:
        requested = pod_requests(pod, gates=node.gates)
        figures = (requested[first], Quantity(totals.nano.get(first, 0)), capacity.get(first, ZERO))
    told = Shortage(first, *(_count(first, figure) for figure in figures))
    return Deferred(f"OutOf{first}", str(told), short, _blockers(first, others.one_by_one()))


def shortage(pod: Pod, node: NodeView, others: Others) -> dict[str, Quantity]:
    """What is missing for the pod beside the others, in the order in which it is reported: places for pods first."""
    limit = node.allocatable.get("pods")
    above = 0 if limit is None else others.totals.pods + 1 - limit.value()
    places = {"pods": Quantity.of(above)} if above > 0 else {}
    return places | _missing(pod_requests(pod, gates=node.gates), node.allocatable, others.totals.nano)


def short_by(requested: ResourceList, allocatable: ResourceList, held: Collection[ResourceList]) -> dict[str, Quantity]:
    """What is missing beside what others hold, in the order in which it is reported; empty when there is room."""
    return _missing(requested, allocatable, {name: _sum(name, held) for name in requested})


def _missing(requested: ResourceList, allocatable: ResourceList, held: Mapping[str, int]) -> dict[str, Quantity]:
    missing = {
        name: requested[name] + Quantity(held.get(name, 0)) - allocatable.get(name, ZERO)
        for name in sorted(requested, key=_reporting_order)
        if requested[name]
    }
    return {name: amount for name, amount in missing.items() if amount > ZERO}


def _reporting_order(name: str) -> tuple[int, str]:
    order = ("cpu", "memory", "ephemeral-storage")
    return (order.index(name) if name in order else len(order), name)


def _sum(name: str, held: Iterable[ResourceList]) -> int:
    return sum(resource_list[name].nano for resource_list in held if name in resource_list)


def _count(name: str, amount: Quantity) -> int:
    return amount.milli() if name == "cpu" else amount.value()


def _blockers(name: str, others: Iterable[Neighbour]) -> tuple[str, ...]:
    held = ((-other.requests[name].nano, other.name) for other in others if other.requests.get(name))
    return tuple(holder for _, holder in sorted(held))
