"""The Static memory manager policy, as arithmetic: how much memory of which NUMA nodes a container gets.

A container of a Guaranteed pod has its memory request set aside on one node and is bound to that node's memory. Blocks
that span nodes are not made: a request that no single node can hold is refused.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import all_containers, is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO
from podfit.decide.pod.qos import may_be_exclusive


class Bank(msgspec.Struct, frozen=True):
    """The memory of one NUMA node and the part of it that pods never get, in bytes."""

    total: int
    reserved: int = 0


class Block(msgspec.Struct, frozen=True):
    node: int
    size: int


Blocks = Mapping[str, Mapping[str, Block]]
"""By pod UID and container name."""


class MemoryState(msgspec.Struct, frozen=True, kw_only=True):
    banks: Mapping[int, Bank]
    assigned: Blocks = msgspec.field(default_factory=dict)

    def held(self, node: int) -> int:
        """Bytes assigned to containers."""
        return sum(block.size for pod in self.assigned.values() for block in pod.values() if block.node == node)

    def free(self, node: int) -> int:
        bank = self.banks[node]
        return bank.total - bank.reserved - self.held(node)


class NoNode(msgspec.Struct, frozen=True):
    """No node has that much left."""

    def __str__(self) -> str:
        return "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"


def pinned_memory(pod: Pod, container: Container, gates: FeatureGates) -> int:
    """Bytes that are set aside for the container; 0 when its memory may be anywhere."""
    if not may_be_exclusive(pod, gates):
        return 0
    return container.resources.requests.get("memory", ZERO).value()


def assign(pod: Pod, state: MemoryState, gates: FeatureGates) -> MemoryState | NoNode:
    """Set memory aside for each container of `pod` that is due it and has none; a block never changes.

    What a plain init container held passes to those that come after it.
    """
    uid = pod.metadata.uid
    blocks = dict(state.assigned.get(uid, {}))
    left_behind: list[str] = []
    for container in all_containers(pod.spec):
        size = pinned_memory(pod, container, gates)
        if size and container.name not in blocks:
            node = _node(replace(state, assigned={**state.assigned, uid: blocks}), uid, size, left_behind)
            if node is None:
                return NoNode()
            blocks = _taken_over(blocks, left_behind, node, size) | {container.name: Block(node, size)}
        if container.name in blocks and container not in pod.spec.containers and not is_sidecar(container):
            left_behind.append(container.name)
    if blocks == state.assigned.get(uid, {}):
        return state
    return replace(state, assigned={**state.assigned, uid: blocks})


def _node(state: MemoryState, uid: str, size: int, left_behind: list[str]) -> int | None:
    """The first node that can hold `size` bytes, counting what the pod's init containers left behind there."""
    own = state.assigned[uid]
    for node in sorted(state.banks):
        reusable = sum(own[name].size for name in left_behind if own[name].node == node)
        if size <= state.free(node) + reusable:
            return node
    return None


def _taken_over(own: Mapping[str, Block], left_behind: list[str], node: int, size: int) -> dict[str, Block]:
    """The blocks of init containers, smaller by what is used again."""
    blocks, wanted = dict(own), size
    for name in left_behind:
        if own[name].node == node:
            reused = min(wanted, own[name].size)
            blocks[name], wanted = Block(node, own[name].size - reused), wanted - reused
    return blocks


def release(uid: str, state: MemoryState) -> MemoryState:
    """The pod is over."""
    if uid not in state.assigned:
        return state
    return replace(state, assigned={pod: blocks for pod, blocks in state.assigned.items() if pod != uid})
