"""Node groups by KWOK's contract: a node is its Node object, which whoever plays fake nodes brings to life.

Templates are Nodes in a file, with upstream's annotations (cluster-autoscaler, cloudprovider/kwok):

    cluster-autoscaler.kwok.nodegroup/name        the group
    cluster-autoscaler.kwok.nodegroup/min-count   its least size, 0
    cluster-autoscaler.kwok.nodegroup/max-count   its largest size, 200
    cluster-autoscaler.kwok.nodegroup/desired-count   how many there are at first

A Node is made from its template with `kwok.x-k8s.io/node: fake`, and deleted when it is not needed.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.autoscaler.provider import Provided, ProviderError
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.decide.capacity.node_groups import MOST_GROUPS, Instance, InstanceState, NodeGroup
from podfit.decide.placement.default_spread import HOSTNAME

PREFIX = "cluster-autoscaler.kwok.nodegroup/"
NAME, LEAST, MOST, DESIRED, MANAGED = (
    PREFIX + word for word in ("name", "min-count", "max-count", "desired-count", "managed")
)
FAKE, GROUP_LABEL = "kwok.x-k8s.io/node", "kwok-nodegroup"
LARGEST_FILE = 4 << 20
USUAL_MOST = 200
"""Upstream's."""
NOT_FOUND, CONFLICT = 404, 409


class BadGroups(ValueError):
    """The file says nothing that node groups could be made of; the text says where."""


class GroupTemplate(msgspec.Struct, frozen=True):
    name: str
    least: int
    most: int
    desired: int
    node: Node


def read_groups(text: str) -> tuple[GroupTemplate, ...]:
    """The groups of a YAML text: Nodes, in documents of their own or in Lists. Raises BadGroups."""
    if len(text) > LARGEST_FILE:
        raise BadGroups(f"it is larger than {LARGEST_FILE >> 20} MiB")
    try:
        documents = list(yaml.load_all(text, yaml.CSafeLoader))
    except yaml.YAMLError as error:
        raise BadGroups(f"it is no YAML: {error}") from error
    groups: dict[str, GroupTemplate] = {}
    for document in documents:
        for place, item in enumerate(_items(document)):
            group = _group(item, place)
            if group.name in groups:
                raise BadGroups(f"group {group.name} is there twice")
            groups[group.name] = group
    if not groups:
        raise BadGroups("it has no Node")
    if len(groups) > MOST_GROUPS:
        raise BadGroups(f"it has more than {MOST_GROUPS} groups")
    return tuple(groups.values())


def _items(document: Any) -> list[Any]:
    if document is None:
        return []
    if not isinstance(document, dict):
        raise BadGroups("a document is no object")
    if str(document.get("kind", "")).endswith("List"):
        items = document.get("items") or []
        if not isinstance(items, list):
            raise BadGroups("items of a List are a list")
        return items
    return [document]


def _group(item: Any, place: int) -> GroupTemplate:
    if not isinstance(item, dict) or item.get("kind") != "Node":
        raise BadGroups(f"object {place} is not of kind Node")
    try:
        node = codec.convert(item, Node)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadGroups(f"Node {place}: {error}") from error
    meta = node.metadata
    name = meta.annotations.get(NAME) or meta.labels.get(GROUP_LABEL) or meta.name
    if (
        not name
        or len(name) > 57
        or not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in name)
    ):
        raise BadGroups(f"Node {place}: a group's name has at most 57 letters, digits and dashes, not {name!r}")
    if not node.status.capacity.get("cpu") or not node.status.capacity.get("memory"):
        raise BadGroups(f"group {name}: its Node has no status.capacity with cpu and memory")
    least, most = _number(node, LEAST, 0), _number(node, MOST, USUAL_MOST)
    desired = _number(node, DESIRED, least)
    if not least <= desired <= most:
        raise BadGroups(
            f"group {name}: min-count {least}, desired-count {desired} and max-count {most} do not go together"
        )
    return GroupTemplate(name.lower(), least, most, desired, node)


def _number(node: Node, annotation: str, usual: int) -> int:
    text = node.metadata.annotations.get(annotation, str(usual))
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise BadGroups(f"{annotation}: {text!r} is no number from 0 to 999999")
    return int(text)


class KwokProvider:
    """Nodes of the cluster that `client` talks to."""

    def __init__(self, client: Client, groups: Sequence[GroupTemplate]) -> None:
        self._client = client
        self._groups = {group.name: group for group in groups}
        self._begun = False
        self._nodes: tuple[Node, ...] = ()

    async def refresh(self, nodes: Sequence[Node]) -> Provided:
        self._nodes = tuple(node for node in nodes if self._group_of(node))
        if not self._begun:
            await self._begin()
        members = {node.metadata.name: self._group_of(node) for node in self._nodes}
        return Provided(tuple(map(self._told, self._groups.values())), members)

    def _group_of(self, node: Node) -> str:
        """Empty for a Node that is no group's; what others have made under a group's name is its own all the same."""
        name = node.metadata.annotations.get(NAME) or node.metadata.labels.get(GROUP_LABEL, "")
        return name if name in self._groups and node.metadata.annotations.get(FAKE) == "fake" else ""

    def _told(self, group: GroupTemplate) -> NodeGroup:
        own = [node for node in self._nodes if self._group_of(node) == group.name]
        return NodeGroup(
            id=group.name,
            min_size=group.least,
            max_size=group.most,
            target=len(own),
            instances=tuple(Instance(id=node.spec.provider_id, state=InstanceState.RUNNING) for node in own),
            template=self._made(group, group.name),
        )

    async def _begin(self) -> None:
        """What is desired at first is there from the start."""
        for group in self._groups.values():
            there = sum(self._group_of(node) == group.name for node in self._nodes)
            if there < group.desired:
                await self.increase(group.name, group.desired - there)
        self._begun = True

    async def increase(self, group: str, by: int) -> None:
        template, there = self._known(group), sum(self._group_of(node) == group for node in self._nodes)
        if by < 1 or there + by > template.most:
            raise ProviderError(f"{group} has {there} nodes and may have {template.most}: no {by} more")
        for _ in range(by):
            made = self._made(template, f"{group}-{self._client.random.uuid()[:8]}")
            try:
                node = await self._client.create(made)
            except (ApiError, ConnectionError) as error:
                raise ProviderError(f"a Node of {group} is not made: {error}") from error
            self._nodes = (*self._nodes, node)

    def _made(self, group: GroupTemplate, name: str) -> Node:
        meta, spec = group.node.metadata, group.node.spec
        labels = {**meta.labels, HOSTNAME: name, GROUP_LABEL: group.name}
        marks = {FAKE: "fake", NAME: group.name, MANAGED: "true"}
        own = {key: value for key, value in meta.annotations.items() if not key.startswith(PREFIX)}
        taints = tuple(taint for taint in spec.taints if not taint.key.startswith("node.kubernetes.io/"))
        status = group.node.status
        allocatable = status.allocatable or status.capacity
        return Node(
            metadata=ObjectMeta(name=name, labels=labels, annotations={**own, **marks}),
            spec=replace(spec, provider_id=f"kwok:{name}", taints=taints, unschedulable=False),
            status=replace(status, allocatable=allocatable, conditions=(), addresses=(), images=()),
        )

    async def delete_nodes(self, group: str, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if self._group_of(node) != group:
                raise ProviderError(f"node {node.metadata.name} is not of group {group}")
            await self._delete(node.metadata.name)

    async def delete_instances(self, group: str, ids: Sequence[str]) -> None:
        """A machine is its Node, so there is none without."""
        self._known(group)

    async def decrease(self, group: str, by: int) -> None:
        """Nothing is asked for that is not there at once."""
        raise ProviderError(f"{group} has no nodes that have yet to come")

    async def close(self) -> None:
        """The client is its maker's."""

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(Node, name)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise ProviderError(f"Node {name} is not deleted: {error}") from error
        except ConnectionError as error:
            raise ProviderError(f"Node {name} is not deleted: {error}") from error

    def _known(self, group: str) -> GroupTemplate:
        if group not in self._groups:
            raise ProviderError(f"there is no group {group}")
        return self._groups[group]
