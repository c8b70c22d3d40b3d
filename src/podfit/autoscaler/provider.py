"""A provider of nodes, as the autoscaler asks it. What it answers is judged by `decide.capacity.node_groups`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.decide.capacity.node_groups import NodeGroup


class ProviderError(Exception):
    """It refused, or did not answer in time; the text says which call."""


class Provided(msgspec.Struct, frozen=True):
    """All groups, and by the name of a Node the id of its group."""

    groups: tuple[NodeGroup, ...]
    members: Mapping[str, str]


class Provider(Protocol):
    """Every call raises ProviderError."""

    async def refresh(self, nodes: Sequence[Node]) -> Provided:
        """What there is now, with these Nodes."""

    async def increase(self, group: str, by: int) -> None: ...

    async def delete_nodes(self, group: str, nodes: Sequence[Node]) -> None:
        """These machines go, and the group's target with them. A Node that has no machine any more goes as well."""

    async def delete_instances(self, group: str, ids: Sequence[str]) -> None:
        """The same of machines that have no Node."""

    async def decrease(self, group: str, by: int) -> None:
        """Give up nodes that have not come; none that is there goes."""

    async def close(self) -> None: ...
