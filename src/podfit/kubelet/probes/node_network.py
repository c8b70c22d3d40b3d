"""The network as this node sees it, for probes and hooks."""

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from podfit.kubelet.runtime.container_network import KEPT, Failed, Headers, HttpAnswer
from podfit.net.plain_get import GetFailed, connect, get


class AskHealth(Protocol):
    def __call__(self, host: str, port: int, service: str, *, timeout: float) -> Awaitable[None]:
        """Raises Failed."""


class NodeReach(msgspec.Struct, frozen=True):
    """`health` asks over gRPC, which is imported only where there is a real runtime."""

    health: AskHealth

    async def http(self, url: str, headers: Headers, *, timeout: float) -> HttpAnswer:
        try:
            got = await get(url, headers, timeout=timeout, kept=KEPT)
        except GetFailed as error:
            raise Failed(str(error)) from error
        return HttpAnswer(got.status, got.body, got.elsewhere)

    async def tcp(self, host: str, port: int, *, timeout: float) -> None:
        try:
            await connect(host, port, timeout=timeout)
        except GetFailed as error:
            raise Failed(str(error)) from error

    async def grpc(self, host: str, port: int, service: str, *, timeout: float) -> None:
        await self.health(host, port, service, timeout=timeout)
