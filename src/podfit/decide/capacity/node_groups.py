"""Node groups as their provider tells of them, and what of its answers is believed.

A provider is another program. One that lies must not make the autoscaler act on it: a group whose numbers cannot be is
kept with a `problem`, and then nothing is asked of it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node

MOST_GROUPS, MOST_INSTANCES, LONGEST_ID, LONGEST_TEXT = 1000, 5000, 253, 1024
"""Of an answer; characters."""
MOST_SIZE = 100_000


class InstanceState(Enum):
    UNSPECIFIED = 0
    RUNNING = 1
    CREATING = 2
    DELETING = 3


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of a group; `id` is the providerID of its Node. With an empty `error_code` it has no error (C-006)."""

    id: str
    state: InstanceState = InstanceState.UNSPECIFIED
    error_code: str = ""
    error_message: str = ""
    out_of_resources: bool = False

    @property
    def failed(self) -> bool:
        """Whether it is not going to come."""
        return self.state is InstanceState.CREATING and bool(self.error_code)


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the size that was asked for, with nodes that have yet to come. `template` is what a new node would be
    like, None where nobody tells; `problem` says why nothing is done with the group."""

    id: str
    min_size: int
    max_size: int
    target: int
    instances: tuple[Instance, ...] = ()
    template: Node | None = None
    problem: str = ""

    @property
    def headroom(self) -> int:
        return max(self.max_size - self.target, 0)


class Answers(msgspec.Struct, frozen=True):
    """Groups in the provider's order. `refused` says what of the answers as a whole is not believed."""

    groups: tuple[NodeGroup, ...] = ()
    refused: tuple[str, ...] = ()


def believed(groups: Iterable[NodeGroup]) -> Answers:
    """Groups with ids of their own, as many as there may be; of each what can be."""
    kept: dict[str, NodeGroup] = {}
    owners: dict[str, str] = {}
    refused: list[str] = []
    for group in groups:
        if len(kept) == MOST_GROUPS:
            refused.append(f"there are more than {MOST_GROUPS} node groups")
            break
        if not group.id.strip() or len(group.id) > LONGEST_ID or not group.id.isprintable():
            refused.append(f"a node group has the id {group.id[:LONGEST_ID]!r}")
        elif group.id in kept:
            refused.append(f"two node groups have the id {group.id}")
        else:
            kept[group.id] = _checked(group, owners)
    return Answers(tuple(kept.values()), tuple(refused))


def _checked(group: NodeGroup, owners: dict[str, str]) -> NodeGroup:
    """`owners` says of which group an instance is; one of two groups is that of the first."""
    problem = group.problem or _sizes_problem(group)
    instances = group.instances
    if len(instances) > MOST_INSTANCES:
        problem = problem or f"it has more than {MOST_INSTANCES} instances"
        instances = ()
    strangers = [instance.id for instance in instances if owners.setdefault(instance.id, group.id) != group.id]
    if strangers:
        problem = problem or f"instance {strangers[0][:LONGEST_ID]} is of group {owners[strangers[0]]}"
        instances = tuple(instance for instance in instances if owners[instance.id] == group.id)
    if len({instance.id for instance in instances}) < len(instances):
        problem = problem or "it names an instance twice"
        instances = tuple({instance.id: instance for instance in instances}.values())
    return replace(group, problem=problem[:LONGEST_TEXT], instances=tuple(map(_shortened, instances)))


def _sizes_problem(group: NodeGroup) -> str:
    if group.min_size < 0 or group.max_size < group.min_size or group.max_size > MOST_SIZE:
        return f"sizes from {group.min_size} to {group.max_size} cannot be"
    if group.target < 0:
        return f"its target size is {group.target}"
    if group.target > group.max_size:
        return f"its target size {group.target} is above its largest, {group.max_size}"
    return ""


def _shortened(instance: Instance) -> Instance:
    if len(instance.error_message) <= LONGEST_TEXT and len(instance.error_code) <= LONGEST_TEXT:
        return instance
    code, message = instance.error_code[:LONGEST_TEXT], instance.error_message[:LONGEST_TEXT]
    return replace(instance, error_code=code, error_message=message)


Members = Mapping[str, str]
"""By the name of a Node, the id of its group; a Node that is not there is not autoscaled."""
