"""The gRPC health protocol (grpc.health.v1), as a probe asks it.

Two messages of one field each, written here by hand: the request's `service` is field 1, the answer's `status` too.
"""

import asyncio

import grpc
import grpc.aio

from podfit.kubelet.runtime.container_network import Failed

METHOD = "/grpc.health.v1.Health/Check"
STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
SERVING = 1
_OPTIONS = (
    ("grpc.primary_user_agent", "kube-probe/1.36"),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.enable_http_proxy", 0),
)


async def check_health(host: str, port: int, service: str, *, timeout: float) -> None:
    """Returns when the service says SERVING. Raises Failed."""
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    began = asyncio.get_running_loop().time()
    async with grpc.aio.insecure_channel(place, options=_OPTIONS) as channel:
        try:
            await asyncio.wait_for(channel.channel_ready(), timeout)
        except TimeoutError:
            text = f'timeout: failed to connect service "{place}" within {timeout:g}s: context deadline exceeded'
            raise Failed(text) from None
        ask = channel.unary_unary(METHOD, request_serializer=_request, response_deserializer=_status)
        left = max(0.01, timeout - (asyncio.get_running_loop().time() - began))
        try:
            status = await ask(service, timeout=left)
        except grpc.aio.AioRpcError as error:
            raise Failed(_text(error, timeout)) from error
    if status != SERVING:
        name = STATUSES[status] if status < len(STATUSES) else str(status)
        raise Failed(f'service unhealthy (responded with "{name}")')


def _text(error: grpc.aio.AioRpcError, timeout: float) -> str:
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            why = error.details() or ""
            return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {why}"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"timeout: health rpc did not complete within {timeout:g}s"
        case code:
            return f"error: health rpc probe failed: {code.name}: {error.details()}"


def _request(service: str) -> bytes:
    text = service.encode()
    return b"" if not text else b"\n" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _status(message: bytes) -> int:
    """Field 1 of the answer; a message without it says 0."""
    return message[1] if message[:1] == b"\x08" and len(message) > 1 else 0
