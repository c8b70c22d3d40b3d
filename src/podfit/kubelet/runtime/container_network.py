"""The interface by which probes and hooks reach containers over the network."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

Headers = Sequence[tuple[str, str]]

KEPT = 10 * 1024  # bytes of an answer that a probe keeps


class Failed(Exception):
    """Nobody answered as asked; the text is what events show."""


class HttpAnswer(msgspec.Struct, frozen=True):
    """`redirected`: the answer leads to another host, which is not asked. `body` is cut off after `KEPT` bytes."""

    status: int
    body: bytes = b""
    redirected: bool = False


class ContainerReach(Protocol):
    """Each method raises Failed. `timeout` is in seconds for all of it."""

    async def http(self, url: str, headers: Headers, *, timeout: float) -> HttpAnswer:
        """GET, whoever the server says that it is, following redirects on the same host."""

    async def tcp(self, host: str, port: int, *, timeout: float) -> None:
        """Connect, and hang up."""

    async def grpc(self, host: str, port: int, service: str, *, timeout: float) -> None:
        """Ask grpc.health.v1.Health/Check of the service."""


class SimulatedReach:
    """The network of a simulated node: every container answers."""

    async def http(self, url: str, headers: Headers, *, timeout: float) -> HttpAnswer:
        return HttpAnswer(200)

    async def tcp(self, host: str, port: int, *, timeout: float) -> None:
        """It takes the connection."""

    async def grpc(self, host: str, port: int, service: str, *, timeout: float) -> None:
        """It serves."""
