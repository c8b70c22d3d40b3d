"""Accepts connections: limits their number, times the TLS handshake, and closes the idlest when there are too many.

    accepted ─▶ says something ─▶ TLS, a few in each turn of the loop ─▶ `Connection`

A socket whose client is silent has no TLS yet, which is most of what a connection costs. Of those whose handshake is
not over there are at most `MOST_ARRIVING`; the oldest makes room. When there are too many in all, whoever has kept the
server waiting longest makes room; when all of them are being answered, the new one is refused.

Sockets are accepted here and given to the loop with `connect_accepted_socket`, and not by `create_server`: its sockets
belong to nobody until their handshake is over, so a silent client's would outlive the server.
"""

import asyncio
import ctypes
import errno
import gc
import logging
import resource
import socket
import ssl
from collections import deque
from functools import lru_cache
from typing import Any

from podfit.net.http_connection import Answering, Connection
from podfit.net.http_intake import READ, Intake
from podfit.net.memory_budget import MemoryBudget


def give_back() -> None:
    """Takes some milliseconds for a hundred MiB; to be called in a thread. Without glibc there is nothing to do. What
    connections leave in cycles is young, so the old objects are not looked through."""
    gc.collect(1)
    if (trim := _trim()) is not None:
        trim(0)


@lru_cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10  # to begin it, and again to end it
SHUTDOWN_SECONDS = 2  # for the client's half of closing TLS
MOST_ARRIVING = 512
MOST_CONNECTIONS = 4096  # at about 60 KiB each
OF_FILES = 0.75  # no more than this part of the files that the process may open
ACCEPTED = 64  # in one turn of the loop
HANDSHAKES = 4  # begun in one turn of the loop
BACKLOG = 1024
ENDED = 256  # connections, after which memory is given back
AGAIN_SECONDS = (8.0, 24.0)  # after that once more: what ends late, and what Python finds in cycles
GIVE_BACK_SECONDS, GIVE_BACK_LOOKS = 3.0, 10  # when none has ended for so long, looked so often
RECEIVED_IN_KERNEL = 32 * 1024  # bytes: what comes at once, which TLS keeps room for as long as the connection lasts
UNSENT_IN_KERNEL = 128 * 1024  # bytes that the kernel takes before it can send them
TCP_NOTSENT_LOWAT = 25  # linux/tcp.h; the module socket has no name for it
SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # what the machine may have no more of
RETRY_SECONDS = 1.0  # until accepting is tried again then
STEP_SECONDS, GONE_STEPS = 0.005, 10


class Connections:
    """All connections of a server; makes one for each socket."""

    def __init__(self, answering: Answering, tls: ssl.SSLContext, budget: MemoryBudget) -> None:
        self.answering = answering
        self.budget = budget
        self.alive: set[Connection] = set()
        """Those whose handshake is over."""
        self.waiting: dict[Intake, None] = {}
        """Those of them that wait for their client to ask, or to send the rest; the longest first."""
        self.arriving: dict[Arriving, None] = {}
        """Those whose handshake is not over, the oldest first."""
        self.closing = False
        """Set when the server closes: a handshake that ends after that is one nobody would close again."""
        self.buffer = memoryview(bytearray(READ))
        self._tls = tls
        self._most = min(MOST_CONNECTIONS, int(OF_FILES * resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
        self._ended = 0
        self._to_begin: deque[Arriving] = deque()

    def accepted(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        newest = Arriving(sock, self)
        self.arriving[newest] = None
        if len(self.arriving) > MOST_ARRIVING:
            self._refuse(next(iter(self.arriving)))
        elif len(self.arriving) + len(self.alive) > self._most:
            self._make_room(newest)

    def ended(self, connection: Connection) -> None:
        """It is gone. What many have left in the heap is given back a moment later."""
        self.alive.discard(connection)
        self._ended += 1
        if self._ended == ENDED:
            self._give_back_later(self._ended, GIVE_BACK_LOOKS)

    def _give_back_later(self, ended: int, looks: int) -> None:
        asyncio.get_running_loop().call_later(GIVE_BACK_SECONDS, self._give_back, ended, looks)

    def _give_back(self, ended: int, looks: int) -> None:
        """When no further ones have ended for a while, or long after the first."""
        if self._ended > ended and looks:
            self._give_back_later(self._ended, looks - 1)
            return
        self._ended = 0
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, give_back)
        for seconds in AGAIN_SECONDS:
            loop.call_later(seconds, loop.run_in_executor, None, give_back)

    def handshake_begins(self, arriving: "Arriving") -> None:
        """Its client has begun a handshake, which has its turn."""
        if not self._to_begin:
            asyncio.get_running_loop().call_soon(self._begin)
        self._to_begin.append(arriving)

    async def secured(self, sock: socket.socket) -> None:
        """Returns when the handshake is over and a connection serves. Raises OSError when it fails."""
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Connection(self),
            sock,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )

    async def close(self, deadline: float) -> None:
        """End the streams, wait so many seconds for requests in flight, then cut what is left."""
        self.closing = True
        for connection in tuple(self.alive):
            connection.finish()
        if tasks := [connection.task for connection in self.alive if connection.task is not None]:
            _, late = await asyncio.wait(tasks, timeout=deadline)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._gone()

    def _begin(self) -> None:
        for _ in range(min(HANDSHAKES, len(self._to_begin))):
            self._to_begin.popleft().begin()
        if self._to_begin:
            asyncio.get_running_loop().call_soon(self._begin)

    def _make_room(self, newest: "Arriving") -> None:
        longest = next(iter(self.waiting), None)
        if isinstance(longest, Connection):
            del self.waiting[longest]
            self.alive.discard(longest)
            log.debug("too many connections remote=%s", longest.remote)
            longest.cut()
        else:
            self._refuse(newest)

    def _refuse(self, arriving: "Arriving") -> None:
        """Counted no more at once: many may come in one turn of the loop."""
        log.debug("too many connections remote=%s", arriving.remote)
        self.arriving.pop(arriving, None)
        arriving.abort()

    async def _gone(self) -> None:
        """Wait until no socket is left. A client has a moment to hear of the end; one that does not read is cut off."""
        for _ in range(GONE_STEPS):
            if not self.alive and not self.arriving:
                return
            await asyncio.sleep(STEP_SECONDS)
        for connection in tuple(self.alive):
            connection.cut()
        tasks = [task for arriving in tuple(self.arriving) if (task := arriving.abort()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


class Listener:
    """A listening socket, and whom it leads to."""

    def __init__(self, sock: socket.socket, connections: Connections) -> None:
        self.port: int = sock.getsockname()[1]
        self._sock, self._connections = sock, connections
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_IN_KERNEL)  # connections inherit these
        sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_IN_KERNEL)
        self._listen()

    def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._sock)
        self._sock.close()

    def _listen(self) -> None:
        self._retry = None
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED):
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in SHORT_OF:
                    raise
                log.warning("no connection is accepted for %.0f s: %s", RETRY_SECONDS, error)
                self._loop.remove_reader(self._sock)
                self._retry = self._loop.call_later(RETRY_SECONDS, self._listen)
                return
            self._connections.accepted(sock)


class Arriving:
    """A socket until its client has said something, TLS has its turn and the handshake is over."""

    def __init__(self, sock: socket.socket, connections: Connections) -> None:
        self._sock, self._connections = sock, connections
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._over = False
        sock.setblocking(False)
        self._loop.add_reader(sock, self._client_spoke)
        self._timer = self._loop.call_later(HANDSHAKE_SECONDS, self.abort)

    @property
    def remote(self) -> str:
        try:
            return str(self._sock.getpeername()[0])
        except OSError:
            return ""

    def begin(self) -> None:
        if not self._over:
            self._task = self._loop.create_task(self._handshake())

    def abort(self) -> asyncio.Task[None] | None:
        """Close the socket; a handshake that is under way ends with the task that is returned."""
        self._over = True
        self._silence()
        if self._task is not None:
            self._task.cancel()
        else:
            self._sock.close()
            self._connections.arriving.pop(self, None)
        return self._task

    def _client_spoke(self) -> None:
        self._silence()
        self._connections.handshake_begins(self)

    def _silence(self) -> None:
        self._timer.cancel()
        if self._sock.fileno() >= 0 and self._task is None:
            self._loop.remove_reader(self._sock)

    async def _handshake(self) -> None:
        try:
            await self._connections.secured(self._sock)
        except OSError as error:
            log.debug("the handshake failed error=%s", error)
        finally:
            self._connections.arriving.pop(self, None)
