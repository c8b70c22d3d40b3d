"""A process of a container over the runtime's streaming server: the subprotocol `v4.channel.k8s.io`, carried by SPDY.

client opens     error, stdin, stdout, stderr, resize      each a stream, as far as it is wanted
server writes    stdout, stderr; at the end a Status on `error`
"""

from collections.abc import AsyncIterator
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from podfit.kubelet.runtime.errors import Unavailable
from podfit.kubelet.runtime.spdy import Spdy
from podfit.kubelet.runtime.types import Streams
from podfit.net.http_syntax import BadRequest, split_target
from podfit.net.raw_streams import Dialled, dial
from podfit.net.reachability import Unreachable
from podfit.net.wire import Request

PROTOCOL = "v4.channel.k8s.io"
PORT_FORWARD = "portforward.k8s.io"
Channel = Literal["error", "stdin", "stdout", "stderr", "resize"]


class Output(msgspec.Struct, frozen=True):
    """Bytes of stdout, stderr or error."""

    channel: Channel
    data: bytes


class RemoteCommand:
    """One process. `close` it."""

    def __init__(self, spdy: Spdy, streams: Streams) -> None:
        self._spdy = spdy
        wanted: dict[Channel, bool] = {
            "error": True,
            "stdin": streams.stdin,
            "stdout": streams.stdout,
            "stderr": streams.stderr and not streams.tty,
            "resize": streams.tty,
        }
        self._numbers = {name: spdy.open({"streamtype": name}) for name, is_wanted in wanted.items() if is_wanted}
        self._names = {number: name for name, number in self._numbers.items()}
        self._stdin_over = False

    async def write(self, channel: Channel, data: bytes) -> None:
        """To stdin or resize. What is not wanted, or comes after the end, is dropped. Raises ConnectionError."""
        number = self._numbers.get(channel)
        if number is not None and data and not (channel == "stdin" and self._stdin_over):
            await self._spdy.send(number, data)

    async def end_stdin(self) -> None:
        """The process reads the end of its input; what it writes goes on. Raises ConnectionError."""
        number = self._numbers.get("stdin")
        if number is not None and not self._stdin_over:
            self._stdin_over = True
            await self._spdy.send(number, b"", over=True)

    async def output(self) -> AsyncIterator[Output]:
        """Until the runtime has told how the process ended, or the connection is gone."""
        while (arrived := await self._spdy.receive()) is not None:
            name = self._names.get(arrived.stream)
            if name is None:
                continue
            if arrived.data:
                yield Output(name, arrived.data)
            if arrived.over and name == "error":
                return

    def close(self) -> None:
        self._spdy.close()


async def run(url: str, streams: Streams) -> RemoteCommand:
    """Begin what a URL of the runtime stands for. Raises Unavailable."""
    return RemoteCommand(Spdy(await upgraded(url, PROTOCOL)), streams)


async def upgraded(url: str, protocol: str) -> Dialled:
    """A connection that speaks SPDY. Raises Unavailable."""
    headers = {"upgrade": "SPDY/3.1", "x-stream-protocol-version": protocol}
    there = urlsplit(url)
    path, query = split_target(there._replace(scheme="", netloc="", fragment="").geturl() or "/")
    try:
        answered = await dial(f"{there.scheme}://{there.netloc}", Request("POST", path, query, headers))
    except (Unreachable, BadRequest) as error:
        raise Unavailable(f"the runtime's streaming server: {error}") from error
    if isinstance(answered, tuple):
        return answered[1]
    text = (await answered.read()).decode(errors="replace").strip()
    raise Unavailable(f"the runtime's streaming server refused with {answered.status}: {text[:500]}")
