"""HTTP for a program that asks a few questions and ends, such as `podfit why`.

The standard library's client, each exchange in a thread: importing aiohttp costs such a program more than all it asks.
What it offers is the same as `http_client.HttpsClient`; that one is for programs that stay, with hundreds of watches.
Connections are kept and used again, and no more than CONNECTIONS exchanges are under way at once. The threads are
daemons, so that Ctrl-C never waits for a server that is silent.
"""

import asyncio
import http.client
import select
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from podfit.net.reach import CONNECT_SECONDS, DIRECT, READ_SECONDS, Reach, Unreachable, target_of
from podfit.net.wire import Request, Response

T = TypeVar("T")

CONNECTIONS = 8
PIECE = 256 * 1024


class BriefClient:
    """Talks to one server, `https://host:port`. `token` is asked for with every request, because tokens rotate."""

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext,
        *,
        token: Callable[[], str] | None = None,
        reach: Reach = DIRECT,
        connect_timeout: float = CONNECT_SECONDS,
    ) -> None:
        self.server = server.rstrip("/")
        self._tls, self._token, self._reach, self._connect_timeout = tls, token, reach, connect_timeout
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def send(self, request: Request, *, read_timeout: float | None = READ_SECONDS) -> Response:
        """`read_timeout` is the longest silence, in seconds, before or between pieces of the answer. Raises
        `Unreachable`, here or out of a streamed body.
        """
        headers = self._headers(request)
        async with self._slots:
            connection = self._connection()
            try:
                answer, body = await _in_thread(lambda: connection.exchange(request, headers, read_timeout))
            except BaseException as error:
                self._drop(connection)
                if isinstance(error, (http.client.HTTPException, OSError)):
                    raise self._unreachable(error) from error
                raise
        told = {name.lower(): value for name, value in answer.getheaders()}
        if body is None:
            return Response(answer.status, told, _Stream(self, connection, answer))
        self._give_back(connection, answer)
        return Response(answer.status, told, body)

    async def close(self) -> None:
        for connection in (*self._open,):
            self._drop(connection)

    def _connection(self) -> "_Connection":
        """One that is free and has not been closed by the server meanwhile, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.alive:
                return connection
            self._drop(connection)
        connection = _Connection(self.server, self._tls, self._reach, self._connect_timeout)
        self._open.add(connection)
        return connection

    def _give_back(self, connection: "_Connection", answer: http.client.HTTPResponse) -> None:
        if answer.will_close or connection not in self._open:
            self._drop(connection)
        else:
            self._idle.append(connection)

    def _drop(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        connection.hang_up()

    def _headers(self, request: Request) -> list[tuple[str, str]]:
        headers = [*request.headers.items(), *self._reach.headers]
        if self._token is not None:
            headers.append(("authorization", f"Bearer {self._token()}"))
        if request.body and "content-type" not in request.headers:
            headers.append(("content-type", "application/json"))
        return headers

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"{self.server}: {str(error) or type(error).__name__}")


class _Connection:
    """One, opened by its first exchange. All but `hang_up` and `alive` blocks."""

    def __init__(self, server: str, tls: ssl.SSLContext, reach: Reach, connect_timeout: float) -> None:
        there, proxy = urlsplit(server), urlsplit(reach.proxy) if reach.proxy else None
        self._tls = tls if there.scheme == "https" else None
        self._name = reach.server_name or there.hostname or ""
        first = proxy or there
        self._http = http.client.HTTPConnection(first.hostname or "", _port(first), timeout=connect_timeout)
        self._prefix = there.path
        self._over = False
        if proxy and self._tls is not None:
            self._http.set_tunnel(there.hostname or "", _port(there), _credentials(proxy))
        elif proxy:  # a request in clear text is given to the proxy whole
            self._prefix = server

    def exchange(
        self, request: Request, headers: list[tuple[str, str]], read_timeout: float | None
    ) -> tuple[http.client.HTTPResponse, bytes | None]:
        """The answer, with its body when its length was announced."""
        self._connected().settimeout(read_timeout)
        self._http.putrequest(request.method, self._prefix + target_of(request), skip_accept_encoding=True)
        for name, value in headers:
            self._http.putheader(name, value)
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            self._http.putheader("content-length", str(len(request.body)))
        self._http.endheaders(request.body or None)
        answer = self._http.getresponse()
        return answer, answer.read() if answer.length is not None else None

    def _connected(self) -> socket.socket:
        found: socket.socket | None = self._http.sock
        if found is None:
            self._http.connect()
            found = self._http.sock
            if self._tls is not None:
                found = self._http.sock = self._tls.wrap_socket(found, server_hostname=self._name)
            if self._over:  # while it was being opened, so nobody else closes it
                self._http.close()
                raise ConnectionAbortedError("hung up")
        return found

    @property
    def alive(self) -> bool:
        """Whether nothing has come since the last answer: what comes then is the server's goodbye."""
        poll = select.poll()
        poll.register(self._http.sock, select.POLLIN)
        return not poll.poll(0)

    def hang_up(self) -> None:
        """Whoever still waits for a piece of the answer gets an error."""
        self._over = True
        if self._http.sock is not None:
            with suppress(OSError):  # the other side was quicker
                self._http.sock.shutdown(socket.SHUT_RDWR)
        self._http.close()


class _Stream:
    """The pieces of an answer. A class and not a generator: closing a generator that never began would not hang up."""

    def __init__(self, client: BriefClient, connection: _Connection, answer: http.client.HTTPResponse) -> None:
        self._client, self._connection, self._answer = client, connection, answer
        self._ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        try:
            piece = await _in_thread(lambda: self._answer.read1(PIECE))
        except (http.client.HTTPException, OSError, ValueError) as error:  # ValueError: hung up while it was read
            await self.aclose()
            raise self._client._unreachable(error) from error
        if not piece:
            self._ended = True
            self._client._give_back(self._connection, self._answer)
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Hang up, unless the answer was read to its end; then the connection has been given back already."""
        if not self._ended:
            self._ended = True
            self._client._drop(self._connection)


async def _in_thread(work: Callable[[], T]) -> T:
    """What blocks, in a thread of its own that nobody waits for when the loop ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # T may be optional itself

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  (raised again where it is awaited)
            problem = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result, problem)

    threading.Thread(target=run, name="podfit-http", daemon=True).start()
    return await done


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
