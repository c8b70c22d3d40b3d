"""The static CPU manager policy, as arithmetic on sets: which CPUs a container gets for itself.

A container of a Guaranteed pod that asks for whole CPUs gets them alone, for as long as its pod lives; everything else
shares what is left. The reserved CPUs are shared for ever. A decision is a new state, so a batch of pods can be tried
and thrown away.

    sets      0-3,8         as the kernel and the state file write them
    take      whole sockets, then whole cores, then single CPUs next to what is taken already
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import all_containers, is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.pod.qos import may_be_exclusive

Cpus = frozenset[int]
Assignments = Mapping[str, Mapping[str, Cpus]]
"""CPUs by pod UID and container name."""

NONE: Cpus = frozenset()
MILLI = 1000


class BadCpuSet(ValueError):
    """The text is no list of CPUs."""


def parse(text: str) -> Cpus:
    """`0-2,7` -> {0, 1, 2, 7}; empty text is the empty set. Raises BadCpuSet."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError as error:
            raise BadCpuSet(f'cannot read "{part}" in cpu set "{text}"') from error
        if low < 0 or high < low:
            raise BadCpuSet(f'cannot read "{part}" in cpu set "{text}"')
        found.update(range(low, high + 1))
    return frozenset(found)


def show(cpus: Iterable[int]) -> str:
    """{0, 1, 2, 7} -> `0-2,7`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


class CpuLocation(msgspec.Struct, frozen=True):
    """Where a CPU sits. `core` is a number of its own on the whole machine."""

    core: int
    socket: int = 0
    node: int = 0


Topology = Mapping[int, CpuLocation]


def flat(count: int) -> Topology:
    """One socket, one thread to each core."""
    return {cpu: CpuLocation(core=cpu) for cpu in range(count)}


def take(topology: Topology, free: Cpus, count: int) -> Cpus | None:
    """`count` CPUs of `free`, packed together; None when there are not that many."""
    if count > len(free):
        return None
    taken: set[int] = set()
    for part in ("socket", "core"):
        members: dict[int, set[int]] = {}
        for cpu, place in topology.items():
            members.setdefault(getattr(place, part), set()).add(cpu)
        for _, whole in sorted(members.items()):
            if whole <= free - taken and len(whole) <= count - len(taken):
                taken |= whole
    while len(taken) < count:
        taken.add(min(free - taken, key=lambda cpu: _distance(topology, free - taken, taken, cpu)))
    return frozenset(taken)


def _distance(topology: Topology, free: Collection[int], taken: Collection[int], cpu: int) -> tuple[object, ...]:
    """Close to what is taken first, then where the least is free, so that whole cores and sockets stay whole."""
    place = topology[cpu]
    sockets = {topology[cpu].socket for cpu in taken}
    return (
        place.socket not in sockets,
        sum(topology[cpu].socket == place.socket for cpu in free),
        sum(topology[cpu].core == place.core for cpu in free),
        cpu,
    )


def exclusive_count(pod: Pod, container: Container, gates: FeatureGates) -> int:
    """How many CPUs the container has to itself: all it asks for, if its pod is due them and the number is whole."""
    if not may_be_exclusive(pod, gates):
        return 0
    whole, rest = divmod(container.resources.requests.get("cpu", ZERO).milli(), MILLI)
    return 0 if rest else whole


class CpuState(msgspec.Struct, frozen=True, kw_only=True):
    """`shared` is the pool, reserved CPUs included. `seen` is what containers that run were found pinned to when the
    record was lost: their CPUs are theirs again as soon as their pod is known.
    """

    topology: Topology
    reserved: Cpus
    shared: Cpus
    assigned: Assignments = msgspec.field(default_factory=dict)
    seen: Assignments = msgspec.field(default_factory=dict)

    @staticmethod
    def fresh(topology: Topology, reserved: Cpus) -> "CpuState":
        return CpuState(topology=topology, reserved=reserved, shared=frozenset(topology))

    def of(self, uid: str, container: str) -> Cpus | None:
        """The container's own CPUs; None when it shares."""
        return self.assigned.get(uid, {}).get(container)

    def usable(self, uid: str) -> Cpus:
        """What may be given to a pod of this UID."""
        others = (cpus for pod, assigned in self.seen.items() if pod != uid for cpus in assigned.values())
        return self.shared - self.reserved - NONE.union(*others)


class TooFew(msgspec.Struct, frozen=True):
    """A container cannot have CPUs of its own now."""

    requested: int
    available: int

    def __str__(self) -> str:
        return f"not enough cpus available to satisfy request: requested={self.requested}, available={self.available}"


def assign(pod: Pod, state: CpuState, gates: FeatureGates) -> CpuState | TooFew:
    """Give each container of `pod` that is due CPUs of its own, unless it has them: an assignment never changes.

    Containers take over what plain init containers of the same pod leave behind.
    """
    uid = pod.metadata.uid
    own, shared, reusable = dict(state.assigned.get(uid, {})), state.shared, NONE
    for container in all_containers(pod.spec):
        count = exclusive_count(pod, container, gates)
        if count and container.name not in own:
            free = replace(state, shared=shared).usable(uid) | reusable
            cpus = _seen(state, uid, container.name, count, free) or _take(state.topology, reusable, free, count)
            if cpus is None:
                return TooFew(count, len(free))
            own[container.name] = cpus
            shared -= cpus
        mine = own.get(container.name, NONE)
        lasting = container in pod.spec.containers or is_sidecar(container)
        reusable = reusable - mine if lasting else reusable | mine
    if own == state.assigned.get(uid, {}):
        return state
    return replace(state, shared=shared, assigned={**state.assigned, uid: own})


def _take(topology: Topology, reusable: Cpus, free: Cpus, count: int) -> Cpus | None:
    """CPUs of what is left behind first, and of the rest of `free` what is still needed."""
    if count <= len(reusable):
        return take(topology, reusable, count)
    rest = take(topology, free - reusable, count - len(reusable))
    return None if rest is None else reusable | rest


def _seen(state: CpuState, uid: str, name: str, count: int, free: Cpus) -> Cpus | None:
    cpus = state.seen.get(uid, {}).get(name, NONE)
    return cpus if len(cpus) == count and cpus <= free else None


def release(uid: str, state: CpuState) -> CpuState:
    """The pod is over: its CPUs are shared again."""
    if uid not in state.assigned and uid not in state.seen:
        return state
    assigned, seen = dict(state.assigned), dict(state.seen)
    gone = assigned.pop(uid, {})
    seen.pop(uid, None)
    return replace(state, shared=state.shared.union(*gone.values()), assigned=assigned, seen=seen)
