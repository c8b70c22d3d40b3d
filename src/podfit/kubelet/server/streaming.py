"""exec, attach and port-forward: a client's WebSocket joined to the runtime's streaming server.

    client                                          kubelet                       runtime
    v5, v4 or v1.channel.k8s.io, in messages   ──▶  channels to streams      ──▶  v4.channel.k8s.io over SPDY
    SPDY/3.1+portforward.k8s.io, in messages   ──▶  bytes, as they come      ──▶  portforward.k8s.io over SPDY

The first byte of a message is its channel; 255 (v5) ends the one that it names. Nothing is gathered: who does not read
is not read from either, and what ends on one side ends on the other.

The runtime is asked for a session once the client has its 101, so what it refuses is told inside of the WebSocket: it
holds only so many sessions that nobody has come for (containerd 1,000, for a minute), and who is refused costs none.
"""

import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.lifecycle.facts import SandboxState
from podfit.kubelet.runtime.errors import CRIError, NotFound
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.remote_command import PORT_FORWARD, Channel, RemoteCommand, run, upgraded
from podfit.kubelet.runtime.types import Streams
from podfit.net.raw_streams import Dialled, until_one_is_over
from podfit.net.websocket import Handshake, Part, WebSocket, shake_hands
from podfit.net.wire import Duplex, Request, Response, Upgrade

log = logging.getLogger(__name__)

V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
MOST_SESSIONS, MOST_OF_ONE, MOST_OF_POD = 1000, 800, 100
"""Of a node; of one identity there (the API server is one; it bounds its users by itself); of one pod, all of whose
sessions go through one shim: containerd 1.6 and its shim block one another for ever when some 600 end at once."""
LOOK_SECONDS = 5.0  # between two looks at whether the pod of a port-forward is still there
_CHANNELS: tuple[Channel, ...] = ("stdin", "stdout", "stderr", "error", "resize")
_STDIN, _RESIZE = _CHANNELS.index("stdin"), _CHANNELS.index("resize")
_CLOSE = 255
MOST_TOLD = 4096
"""Bytes of a message that resizes a terminal or closes a channel; a longer one is none."""
_TRUE = ("1", "true", "True")


def streams_of(request: Request) -> Streams:
    """The streams by the kubelet's own names of the parameters."""
    given = {name: request.param(name) in _TRUE for name in ("input", "output", "error", "tty")}
    return Streams(stdin=given["input"], stdout=given["output"], stderr=given["error"], tty=given["tty"])


class Streaming:
    """The sessions of a node. Each method raises ApiError for what is no such request, and CRIError."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._by_user: Counter[str] = Counter()
        self._by_pod: Counter[str] = Counter()
        """By UID."""

    @property
    def sessions(self) -> int:
        return self._by_user.total()

    def agree(self, request: Request, verb: str) -> Handshake:
        """On a WebSocket for `exec`, `attach`, or a port-forward where it is empty. Asks nobody."""
        return shake_hands(request, (V5, V4, V1) if verb else (TUNNEL,))

    def exec(self, request: Request, hands: Handshake, pod: str, container_id: str) -> Response:
        wanted, command = streams_of(request), request.query.get("command", ())
        if not command:
            raise ApiError(400, "BadRequest", "you must specify at least 1 command")
        return self._command(
            request, hands, pod, wanted, partial(self._runtime.exec_url, container_id, command, wanted)
        )

    def attach(self, request: Request, hands: Handshake, pod: str, container_id: str) -> Response:
        wanted = streams_of(request)
        return self._command(request, hands, pod, wanted, partial(self._runtime.attach_url, container_id, wanted))

    def port_forward(self, request: Request, hands: Handshake, pod: str, sandbox_id: str) -> Response:
        async def serve(duplex: Duplex) -> None:
            remote = await upgraded(await self._runtime.port_forward_url(sandbox_id), PORT_FORWARD)
            try:
                socket = WebSocket(duplex)
                await until_one_is_over(_there(socket, remote), _back(socket, remote), self._while_ready(sandbox_id))
                await socket.close()
            finally:
                remote.close()

        return self._begin(request, hands, pod, serve)

    def _command(
        self, request: Request, hands: Handshake, pod: str, wanted: Streams, find: Callable[[], Awaitable[str]]
    ) -> Response:
        if not (wanted.stdin or wanted.stdout or wanted.stderr):
            raise ApiError(400, "BadRequest", "you must specify at least 1 of stdin, stdout, stderr")

        async def serve(duplex: Duplex) -> None:
            remote = await run(await find(), wanted)
            try:
                await _converse(WebSocket(duplex), remote, wanted, hands.protocol)
            finally:
                remote.close()

        return self._begin(request, hands, pod, serve)

    def _begin(self, request: Request, hands: Handshake, pod: str, serve: Upgrade) -> Response:
        user = request.identity.user if request.identity is not None else ""
        if problem := self._too_many(user, pod):
            raise ApiError(429, "TooManyRequests", problem)

        async def counted(duplex: Duplex) -> None:
            if problem := self._too_many(user, pod):  # others have begun since
                await _refused(WebSocket(duplex), problem, hands.protocol)
                return
            self._by_user[user] += 1
            self._by_pod[pod] += 1
            try:
                await serve(duplex)
            except CRIError as error:
                await _refused(WebSocket(duplex), str(error), hands.protocol)
            finally:
                self._by_user -= Counter((user,))  # forgets who has none
                self._by_pod -= Counter((pod,))

        return Response(101, hands.headers, upgrade=counted)

    def _too_many(self, user: str, pod: str) -> str:
        """Why no more may begin; empty when they may."""
        if self.sessions >= MOST_SESSIONS:
            return f"this node has {MOST_SESSIONS} streams open, which is the limit"
        if self._by_user[user] >= MOST_OF_ONE:
            return f"{user} has {MOST_OF_ONE} streams open on this node, which is the limit of one user"
        if self._by_pod[pod] >= MOST_OF_POD:
            return f"the pod has {MOST_OF_POD} streams open, which is the limit of one pod"
        return ""

    async def _while_ready(self, sandbox_id: str) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                if (await self._runtime.sandbox_status(sandbox_id)).state is not SandboxState.READY:
                    return
            except NotFound:
                return
            except CRIError:
                continue  # a runtime that is being restarted; the connection to it tells


async def _converse(socket: WebSocket, remote: RemoteCommand, wanted: Streams, protocol: str) -> None:
    first = 1 if wanted.stdout else 2 if wanted.stderr else 3
    told = False

    async def listen() -> None:
        ear = _Ear(remote, protocol)
        while (part := await socket.part()) is not None:
            try:
                await ear.hear(part)
            except ConnectionError:
                return

    async def tell() -> None:
        nonlocal told
        try:
            await socket.send(bytes((first,)))  # clients take it as the sign that all is set up
            async for output in remote.output():
                data = output.data
                if output.channel == "error":
                    told, data = True, data if protocol != V1 else _plain(data)
                await socket.send(bytes((_CHANNELS.index(output.channel),)), data)
        except ConnectionError:
            told = True  # by its own leaving

    await until_one_is_over(listen(), tell())
    if not told:
        await _refused(socket, "the container runtime has ended the connection", protocol)
    await socket.close()


class _Ear:
    """Takes a client's messages by their channels, as they come; only those to resize or to close are put together."""

    def __init__(self, remote: RemoteCommand, protocol: str) -> None:
        self._remote, self._protocol = remote, protocol
        self._channel = -1
        self._message = b""

    async def hear(self, part: Part) -> None:
        """Raises ConnectionError."""
        data = part.data
        if part.first:
            self._channel, self._message = -1, b""
        if self._channel < 0 and data:
            self._channel, data = data[0], data[1:]
        if self._channel == _STDIN:
            await self._remote.write("stdin", data)
        elif len(self._message) <= MOST_TOLD:
            self._message += data
            if part.last:
                await self._told()

    async def _told(self) -> None:
        if self._channel == _CLOSE and self._protocol == V5 and self._message == b"\0":
            await self._remote.end_stdin()
        elif self._channel == _RESIZE and len(self._message) <= MOST_TOLD:
            await self._remote.write("resize", self._message)


async def _refused(socket: WebSocket, text: str, protocol: str) -> None:
    """Tell a client that has its 101 already. It reads the status only if the WebSocket ends well. A tunnel, whose
    messages are SPDY, is closed.
    """
    log.info("streaming refused protocol=%s error=%s", protocol, text)
    status = ApiError(500, "InternalError", text).status()
    try:
        if protocol != TUNNEL:
            await socket.send(b"\x03", json.dumps(status).encode())
        await socket.close()
    except ConnectionError:
        return


def _plain(status: bytes) -> bytes:
    """In the first protocol the error channel has the text of a failure, and nothing after a success."""
    try:
        found = json.loads(status)
    except ValueError:
        return status
    return b"" if found.get("status") == "Success" else str(found.get("message", "")).encode()


async def _there(socket: WebSocket, remote: Dialled) -> None:
    try:
        while (part := await socket.part()) is not None:
            remote.write(part.data)
            if not remote.ready:
                await remote.drained()
    except ConnectionError:
        return


async def _back(socket: WebSocket, remote: Dialled) -> None:
    try:
        while data := await remote.read():
            await socket.send(data)
    except ConnectionError:
        return
