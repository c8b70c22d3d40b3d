"""The gRPC health protocol, asked of a server that says well, ill or nothing of the kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from podfit.kubelet.runtime.container_network import Failed
from podfit.kubelet.runtime.cri.health import check_health

STATUSES = {b"": b"\x08\x01", b"\n\x03ill": b"\x08\x02", b"\n\x05quiet": b""}


@asynccontextmanager
async def serving(*, health: bool = True) -> AsyncIterator[int]:
    async def check(request: bytes, context: Any) -> bytes:
        if request not in STATUSES:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return STATUSES[request]

    server = grpc.aio.server()
    if health:
        handlers: dict[str, Any] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def failure(port: int, service: str) -> str:
    with pytest.raises(Failed) as failed:
        await check_health("127.0.0.1", port, service, timeout=2)
    return str(failed.value)


async def test_what_servers_say_of_themselves() -> None:
    async with serving() as port:
        await check_health("127.0.0.1", port, "", timeout=2)
        assert await failure(port, "ill") == 'service unhealthy (responded with "NOT_SERVING")'
        assert await failure(port, "quiet") == 'service unhealthy (responded with "UNKNOWN")'
        assert await failure(port, "other") == "error: health rpc probe failed: NOT_FOUND: unknown service"
    async with serving(health=False) as port:
        assert "does not implement the grpc health protocol" in await failure(port, "")


async def test_nobody_listens() -> None:
    async with serving() as port:
        pass
    with pytest.raises(Failed) as failed:
        await check_health("127.0.0.1", port, "", timeout=0.3)
    place = f'timeout: failed to connect service "127.0.0.1:{port}" within 0.3s: context deadline exceeded'
    assert str(failed.value) == place
