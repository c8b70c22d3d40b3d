"""A provider of node groups by upstream's external gRPC protocol, which a test makes lie, hang or forget."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import msgspec

from podfit.autoscaler.external import cloudprovider_pb2 as pb
from podfit.autoscaler.external.provider import SERVICE

CALLS: dict[str, tuple[Any, Any]] = {
    name: (getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response"))
    for name in (
        *("NodeGroups", "NodeGroupForNode", "Refresh", "Cleanup", "NodeGroupTargetSize", "NodeGroupIncreaseSize"),
        *("NodeGroupDeleteNodes", "NodeGroupDecreaseTargetSize", "NodeGroupNodes", "NodeGroupTemplateNodeInfo"),
    )
}


class FakeGroup(msgspec.Struct, kw_only=True):
    least: int = 0
    most: int = 10
    target: int = 0
    instances: list[str] = msgspec.field(default_factory=list)
    template: bytes = b""


class FakeProvider:
    """`calls` are the names of those that came, in order."""

    def __init__(self, **groups: FakeGroup) -> None:
        self.groups = groups
        self.calls: list[str] = []
        self.lacks: set[str] = set()
        self.hangs: set[str] = set()
        self.refuses: dict[str, str] = {}
        self.answers: dict[str, Any] = {}
        """By call, a message that is sent instead of the truth."""
        self.members: dict[str, str] = {}
        self._server = grpc.aio.server()

    async def start(self, address: str, credentials: Any = None) -> int:
        """Of a Unix socket or of a port; answers the port."""
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._handler(name), request_deserializer=kinds[0].FromString, response_serializer=_bytes
            )
            for name, kinds in CALLS.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        port = (
            self._server.add_secure_port(address, credentials)
            if credentials is not None
            else self._server.add_insecure_port(address)
        )
        await self._server.start()
        return int(port)

    async def stop(self) -> None:
        await self._server.stop(None)

    def _handler(self, name: str) -> Callable[[Any, Any], Awaitable[Any]]:
        async def handle(request: Any, context: Any) -> Any:
            self.calls.append(name)
            if name in self.hangs:
                await asyncio.Event().wait()
            if name in self.lacks:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
            if name in self.refuses:
                await context.abort(grpc.StatusCode.INTERNAL, self.refuses[name])
            return self.answers[name] if name in self.answers else self._answered(name, request)

        return handle

    def _answered(self, name: str, request: Any) -> Any:
        match name:
            case "NodeGroups":
                groups = [
                    pb.NodeGroup(id=name, minSize=one.least, maxSize=one.most) for name, one in self.groups.items()
                ]
                return pb.NodeGroupsResponse(nodeGroups=groups)
            case "NodeGroupForNode":
                group = self.members.get(request.node.providerID, "")
                return pb.NodeGroupForNodeResponse(nodeGroup=pb.NodeGroup(id=group))
            case "NodeGroupTargetSize":
                return pb.NodeGroupTargetSizeResponse(targetSize=self.groups[request.id].target)
            case "NodeGroupNodes":
                told = [pb.Instance(id=own) for own in self.groups[request.id].instances]
                return pb.NodeGroupNodesResponse(instances=told)
            case "NodeGroupTemplateNodeInfo":
                return pb.NodeGroupTemplateNodeInfoResponse(nodeBytes=self.groups[request.id].template)
        self._change(name, request)
        return CALLS[name][1]()

    def _change(self, name: str, request: Any) -> None:
        match name:
            case "NodeGroupIncreaseSize" | "NodeGroupDecreaseTargetSize":
                self.groups[request.id].target += request.delta
            case "NodeGroupDeleteNodes":
                group = self.groups[request.id]
                gone = {node.providerID for node in request.nodes}
                group.instances = [own for own in group.instances if own not in gone]
                group.target -= len(gone)


def _bytes(message: Any) -> bytes:
    return message if isinstance(message, bytes) else bytes(message.SerializeToString())


def node_bytes(cpu: str = "4", memory: str = "8Gi", **labels: str) -> bytes:
    """A v1.Node as a provider sends it, with fields that nobody reads."""
    status = pb.NodeStatus()
    for name, amount in (("cpu", cpu), ("memory", memory), ("pods", "110")):
        status.capacity[name].text = amount
    node = pb.Node(metadata=pb.ObjectMeta(name="template", labels=labels), status=status)
    node.spec.taints.append(pb.Taint(key="dedicated", value="x", effect="NoSchedule"))
    return bytes(node.SerializeToString()) + b"\xa2\x06\x03abc"
