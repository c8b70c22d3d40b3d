"""A proxy of the CRI before a real runtime, which hears and forges what is said about a container's update.

kubelet ──unix──▶ CriProxy ──unix──▶ containerd       bytes pass as they are; `UpdateContainerResources` by `update`
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb

UPDATE = "/runtime.v1.RuntimeService/UpdateContainerResources"
EVENTS = "/runtime.v1.RuntimeService/GetContainerEvents"


class CriProxy(grpc.GenericRpcHandler):
    """What it does with an update: `refusal` is what it says instead; while `open` is not set nothing goes on, and
    while `answers` is not set the runtime has done it and nobody hears; `changes` makes other resources of those asked
    for, of new containers too, as a plugin of the runtime may. `updates` counts those that have come.
    """

    def __init__(self) -> None:
        self.refusal = ""
        self.open, self.answers = asyncio.Event(), asyncio.Event()
        self.open.set()
        self.answers.set()
        self.changes: Callable[[pb.LinuxContainerResources], None] = lambda _: None
        self.updates = 0
        self._channel: grpc.aio.Channel | None = None

    @asynccontextmanager
    async def before(self, runtime: Path, endpoint: Path) -> AsyncIterator[None]:
        """Listen at `endpoint`, another Unix socket than the runtime's."""
        self._channel = grpc.aio.insecure_channel(f"unix://{runtime}")
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self,))
        server.add_insecure_port(f"unix://{endpoint}")
        await server.start()
        try:
            yield
        finally:
            await server.stop(0)
            await self._channel.close()

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if method == EVENTS:
            return None  # as a runtime that has no events

        async def passed(request: bytes, context: Any) -> bytes:
            return await self._pass(method, request, context)

        return grpc.unary_unary_rpc_method_handler(passed)

    async def _pass(self, method: str, request: bytes, context: Any) -> bytes:
        if method == UPDATE:
            request = await self._update(request, context)
        elif method.endswith("/CreateContainer"):
            created = pb.CreateContainerRequest.FromString(request)
            self.changes(created.config.linux.resources)
            request = created.SerializeToString()
        assert self._channel is not None
        call: Any = self._channel.unary_unary(method)
        try:
            answer: bytes = await call(request, timeout=context.time_remaining())
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "")
            raise
        if method == UPDATE:
            await self.answers.wait()
        return answer

    async def _update(self, request: bytes, context: Any) -> bytes:
        self.updates += 1
        await self.open.wait()
        if self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        update = pb.UpdateContainerResourcesRequest.FromString(request)
        self.changes(update.linux)
        return update.SerializeToString()
