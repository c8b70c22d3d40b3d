"""The client of a provider that speaks upstream's external gRPC protocol (C-001 to C-007).

Over mutual TLS or a Unix socket. Every call is cut after its deadline, every answer is bounded, and sizes that would
leave a group's bounds are refused here, before the provider is asked. gRPC takes 80 ms to import, so this module is
imported only where such a provider is named.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import DecodeError, Message

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta import codec
from podfit.autoscaler.external import cloudprovider_pb2 as pb
from podfit.autoscaler.provider import Provided, ProviderError
from podfit.decide.capacity.node_groups import (
    LONGEST_ID,
    MOST_GROUPS,
    MOST_INSTANCES,
    Instance,
    InstanceState,
    NodeGroup,
)

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
LARGEST_MESSAGE, LARGEST_NODE = 16 << 20, 1 << 20
AT_ONCE, MOST_ASKED = 8, 1000
"""Calls on their way together; Nodes of which the group is asked for in one refresh."""
WHOLE_REFRESH = 6
"""Deadlines of a call in which everything has to be told."""
OUT_OF_RESOURCES = 1
M = TypeVar("M", bound=Message)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """`address` is HOST:PORT, or unix:///PATH. With a certificate the three PEM texts are for mutual TLS; only a Unix
    socket and loopback do without."""

    address: str
    certificate: bytes = b""
    key: bytes = b""
    authority: bytes = b""
    timeout: float = 5.0


class ExternalProvider:
    def __init__(self, connection: Connection) -> None:
        self._seconds = connection.timeout
        options = [("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.use_local_subchannel_pool", 1)]
        if connection.certificate:
            secrets = grpc.ssl_channel_credentials(connection.authority, connection.key, connection.certificate)
            self._channel = grpc.aio.secure_channel(connection.address, secrets, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(connection.address, options=options)
        self._calls: dict[str, Callable[..., Awaitable[Any]]] = {}
        self._groups: dict[str, NodeGroup] = {}
        self._members: dict[str, str] = {}
        """By providerID, until the next refresh."""
        self._templates: dict[str, Node | None] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def close(self) -> None:
        try:
            await self._call("Cleanup", pb.CleanupRequest(), pb.CleanupResponse)
        except ProviderError:
            pass  # it is told as a courtesy
        finally:
            await self._channel.close()

    # ------------------------------------------------------------------ what there is

    async def refresh(self, nodes: Sequence[Node]) -> Provided:
        whole = WHOLE_REFRESH * self._seconds
        try:
            async with asyncio.timeout(whole):
                return await self._refreshed(nodes)
        except TimeoutError as error:
            raise ProviderError(f"not all of it was answered within {whole:g} s") from error

    async def _refreshed(self, nodes: Sequence[Node]) -> Provided:
        await self._call("Refresh", pb.RefreshRequest(), pb.RefreshResponse)
        answer = await self._call("NodeGroups", pb.NodeGroupsRequest(), pb.NodeGroupsResponse)
        told = list(answer.nodeGroups)[: MOST_GROUPS + 1]
        groups = await asyncio.gather(*map(self._group, told))
        self._groups = {group.id: group for group in groups}
        self._templates = {name: node for name, node in self._templates.items() if name in self._groups}
        return Provided(tuple(groups), await self._members_of(nodes))

    async def _group(self, told: pb.NodeGroup) -> NodeGroup:
        """A group of which something cannot be read has a `problem`."""
        name = told.id[: LONGEST_ID + 1]
        try:
            async with self._turns:
                size = await self._call(
                    "NodeGroupTargetSize", pb.NodeGroupTargetSizeRequest(id=name), pb.NodeGroupTargetSizeResponse
                )
                there = await self._call("NodeGroupNodes", pb.NodeGroupNodesRequest(id=name), pb.NodeGroupNodesResponse)
                template = await self._template(name)
        except ProviderError as error:
            return NodeGroup(id=name, min_size=told.minSize, max_size=told.maxSize, target=0, problem=str(error))
        return NodeGroup(
            id=name,
            min_size=told.minSize,
            max_size=told.maxSize,
            target=size.targetSize,
            instances=tuple(map(_instance, list(there.instances)[: MOST_INSTANCES + 1])),
            template=template,
        )

    async def _template(self, group: str) -> Node | None:
        """None where the provider knows none (C-001, C-004). It is asked for once."""
        if group not in self._templates:
            request = pb.NodeGroupTemplateNodeInfoRequest(id=group)
            answer = await self._optional("NodeGroupTemplateNodeInfo", request, pb.NodeGroupTemplateNodeInfoResponse)
            self._templates[group] = node_of(answer.nodeBytes, group) if answer is not None else None
        return self._templates[group]

    async def _members_of(self, nodes: Sequence[Node]) -> dict[str, str]:
        """An instance's Node is of its group. Of others the provider is asked; what it does not know is not autoscaled,
        and neither is a Node of a group that it has not told of."""
        own = {instance.id: group.id for group in self._groups.values() for instance in group.instances}
        there = {node.spec.provider_id for node in nodes}
        self._members = {key: group for key, group in self._members.items() if key in there}
        strangers = [
            node for node in nodes if node.spec.provider_id not in own and node.spec.provider_id not in self._members
        ]
        asked = strangers[:MOST_ASKED]
        for node, group in zip(asked, await asyncio.gather(*map(self._group_of, asked)), strict=True):
            self._members[node.spec.provider_id] = group
        found = {
            node.metadata.name: own.get(node.spec.provider_id) or self._members.get(node.spec.provider_id, "")
            for node in nodes
        }
        return {name: group for name, group in found.items() if group in self._groups}

    async def _group_of(self, node: Node) -> str:
        """Empty: not autoscaled (C-003), as is one of which nothing is told."""
        async with self._turns:
            request = pb.NodeGroupForNodeRequest(node=_message(node))
            try:
                answer = await self._call("NodeGroupForNode", request, pb.NodeGroupForNodeResponse)
            except ProviderError:
                return ""
            return answer.nodeGroup.id[:LONGEST_ID]

    # ------------------------------------------------------------------ what is asked for

    async def increase(self, group: str, by: int) -> None:
        known = self._known(group)
        if by < 1 or known.target + by > known.max_size:
            raise ProviderError(f"{group} has {known.target} nodes and may have {known.max_size}: no {by} more")
        request = pb.NodeGroupIncreaseSizeRequest(delta=by, id=group)
        await self._call("NodeGroupIncreaseSize", request, pb.NodeGroupIncreaseSizeResponse)
        self._groups[group] = msgspec.structs.replace(known, target=known.target + by)

    async def delete_nodes(self, group: str, nodes: Sequence[Node]) -> None:
        await self._delete(group, [_message(node) for node in nodes])

    async def delete_instances(self, group: str, ids: Sequence[str]) -> None:
        await self._delete(group, [pb.ExternalGrpcNode(providerID=name, name=name) for name in ids])

    async def _delete(self, group: str, nodes: Sequence[pb.ExternalGrpcNode]) -> None:
        known = self._known(group)
        own = {instance.id for instance in known.instances}
        foreign = [node.providerID for node in nodes if node.providerID not in own]
        if foreign:
            raise ProviderError(f"{foreign[0]} is no instance of group {group}")
        if known.target - len(nodes) < known.min_size:
            raise ProviderError(f"{group} has {known.target} nodes and keeps {known.min_size}: no {len(nodes)} less")
        request = pb.NodeGroupDeleteNodesRequest(nodes=nodes, id=group)
        await self._call("NodeGroupDeleteNodes", request, pb.NodeGroupDeleteNodesResponse)
        gone = {node.providerID for node in nodes}
        instances = tuple(instance for instance in known.instances if instance.id not in gone)
        self._groups[group] = msgspec.structs.replace(known, target=known.target - len(nodes), instances=instances)

    async def decrease(self, group: str, by: int) -> None:
        known = self._known(group)
        if by < 1 or known.target - by < len(known.instances):
            raise ProviderError(f"{group} has {len(known.instances)} instances: its target {known.target} stays")
        request = pb.NodeGroupDecreaseTargetSizeRequest(delta=-by, id=group)
        await self._call("NodeGroupDecreaseTargetSize", request, pb.NodeGroupDecreaseTargetSizeResponse)
        self._groups[group] = msgspec.structs.replace(known, target=known.target - by)

    def _known(self, group: str) -> NodeGroup:
        if group not in self._groups:
            raise ProviderError(f"there is no group {group}")
        return self._groups[group]

    # ------------------------------------------------------------------ calls

    async def _call(self, name: str, request: Message, answer: type[M]) -> M:
        reply = await self._optional(name, request, answer)
        if reply is None:
            raise ProviderError(f"{name}: the provider does not know this call")
        return reply

    async def _optional(self, name: str, request: Message, answer: type[M]) -> M | None:
        """None where the provider has no such call."""
        stub = self._calls.get(name)
        if stub is None:
            stub = self._calls[name] = self._channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
        try:
            reply: M = await stub(request, timeout=self._seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            text = (error.details() or "")[:200] or error.code().name
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                text = f"no answer within {self._seconds:g} s"
            raise ProviderError(f"{name}: {text}") from error
        return reply


def _message(node: Node) -> pb.ExternalGrpcNode:
    meta = node.metadata
    return pb.ExternalGrpcNode(
        providerID=node.spec.provider_id, name=meta.name, labels=meta.labels, annotations=meta.annotations
    )


def _instance(told: pb.Instance) -> Instance:
    status, error = told.status, told.status.errorInfo
    state = status.instanceState
    return Instance(
        id=told.id[:LONGEST_ID],
        state=InstanceState(state) if state in range(len(InstanceState)) else InstanceState.UNSPECIFIED,
        error_code=error.errorCode,
        error_message=error.errorMessage if error.errorCode else "",
        out_of_resources=error.instanceErrorClass == OUT_OF_RESOURCES,
    )


def node_of(data: bytes, group: str) -> Node | None:
    """A v1.Node in protobuf; None for nothing. Raises ProviderError for what is none."""
    if not data:
        return None
    if len(data) > LARGEST_NODE:
        raise ProviderError(f"the template of {group} has {len(data)} bytes")
    try:
        told = pb.Node.FromString(data)
        sizes = [_amounts(told.status.capacity), _amounts(told.status.allocatable)]
        document = {
            "metadata": {
                "name": told.metadata.name,
                "labels": dict(told.metadata.labels),
                "annotations": dict(told.metadata.annotations),
            },
            "spec": {
                "providerID": told.spec.providerID,
                "unschedulable": told.spec.unschedulable,
                "taints": [
                    {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in told.spec.taints
                ],
            },
            "status": {"capacity": sizes[0], "allocatable": sizes[1] or sizes[0]},
        }
        return codec.convert(document, Node)
    except (DecodeError, msgspec.ValidationError, ValueError) as error:
        raise ProviderError(f"the template of {group} is no Node: {error}") from error


def _amounts(told: Mapping[str, pb.Quantity]) -> dict[str, str]:
    return {name: amount.text for name, amount in told.items()}
