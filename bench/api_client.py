"""The load generator of bench/api.py: raw TLS, requests encoded beforehand, one `epoll` loop, in a process of its own.

It reads an answer only as far as the status and the length. That costs a fraction of what the server does for the
same request; each run says the share of a CPU that it took itself.
"""

import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

BUFFER = 1 << 20


@dataclass(slots=True)
class Connection:
    """One client of the server, with the answer that it is reading."""

    sock: ssl.SSLSocket
    head: bytes = b""
    missing: int = -1  # bytes of the body to come; -1 while the head is read
    sent: float = 0.0

    def send(self, request: bytes) -> None:
        self.head, self.missing, self.sent = b"", -1, time.perf_counter()
        self.sock.setblocking(True)
        self.sock.sendall(request)
        self.sock.setblocking(False)

    def receive(self, buffer: bytearray) -> bool:
        """Read what has come; whether the answer is whole. Raises RuntimeError for an answer that is no success."""
        while True:
            try:
                count = self.sock.recv_into(buffer)
            except ssl.SSLWantReadError:
                return False
            if not count:
                raise RuntimeError("the server closed the connection")
            if self.missing < 0:
                self._begin(bytes(buffer[:count]))
            else:
                self.missing -= count
            if self.missing == 0:
                return True

    def _begin(self, data: bytes) -> None:
        self.head += data
        head, found, body = self.head.partition(b"\r\n\r\n")
        if not found:
            return
        if head[9:10] != b"2":
            raise RuntimeError(self.head.decode(errors="replace")[:2000])
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        self.missing = int(length) - len(body)


@dataclass(slots=True)
class Run:
    """What a run of requests came to. Seconds; CPU of the server and of this process."""

    requests: int
    seconds: float
    server: float
    own: float
    latencies: list[float] = field(default_factory=list)


class FanOut(NamedTuple):
    """Seconds from sending each write to the first and to the last of the watchers that hear of it; CPU of the server
    and of this process from the first write to the last."""

    first: list[float]
    last: list[float]
    server: float
    own: float
    seconds: float


class Load:
    """`cpu` tells the server's CPU time in seconds."""

    def __init__(self, port: int, tls: ssl.SSLContext, cpu: Callable[[], float]) -> None:
        self._port, self._tls, self._cpu = port, tls, cpu
        self._buffer = bytearray(BUFFER)

    def connect(self) -> Connection:
        plain = socket.create_connection(("127.0.0.1", self._port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Connection(self._tls.wrap_socket(plain, server_hostname="127.0.0.1"))

    def run(self, requests: Iterator[bytes], *, connections: int) -> Run:
        """Send all of them, each connection its next one when its last is answered."""
        clients = {client.sock.fileno(): client for client in (self.connect() for _ in range(connections))}
        poll = select.epoll()
        for number, client in clients.items():
            client.sock.setblocking(False)  # also one that gets no request: it hears of TLS session tickets
            poll.register(number, select.EPOLLIN)
        latencies: list[float] = []
        began, server, own = time.perf_counter(), self._cpu(), time.process_time()
        busy = sum(self._next(client, requests) for client in clients.values())
        while busy:
            for number, _ in poll.poll():
                client = clients[number]
                if client.receive(self._buffer):
                    latencies.append(time.perf_counter() - client.sent)
                    busy -= not self._next(client, requests)
        found = Run(
            len(latencies), time.perf_counter() - began, self._cpu() - server, time.process_time() - own, latencies
        )
        poll.close()
        for client in clients.values():
            client.sock.close()
        return found

    def _next(self, client: Connection, requests: Iterator[bytes]) -> bool:
        request = next(requests, None)
        if request is None:
            return False
        client.send(request)
        return True

    def fan_out(self, watch: bytes, writes: Sequence[bytes], *, watchers: int) -> FanOut:
        """One write after the other, each when the last watcher has heard of the one before."""
        sockets = [self.connect().sock for _ in range(watchers)]
        poll = select.epoll()
        for watcher in sockets:
            watcher.sendall(watch)
            watcher.recv(BUFFER)  # the head of the answer
            watcher.setblocking(False)
            poll.register(watcher, select.EPOLLIN)
        writer, by_number = self.connect(), {watcher.fileno(): watcher for watcher in sockets}
        first, last = list[float](), list[float]()
        began, server, own = time.perf_counter(), self._cpu(), time.process_time()
        for write in writes:
            writer.send(write)
            waiting = set(by_number)
            times = []
            while waiting:
                for number, _ in poll.poll():
                    if drained(by_number[number], self._buffer) and number in waiting:
                        waiting.discard(number)
                        times.append(time.perf_counter() - writer.sent)
            writer.sock.setblocking(True)
            while not writer.receive(self._buffer):
                pass
            first.append(times[0])
            last.append(times[-1])
        found = FanOut(first, last, self._cpu() - server, time.process_time() - own, time.perf_counter() - began)
        for sock in (*sockets, writer.sock):
            sock.close()
        return found


def drained(sock: ssl.SSLSocket, buffer: bytearray) -> bool:
    """Read what is there; whether it was anything. `epoll` tells of what comes after the record that was read, so
    asking until there is nothing, which costs an exception, is left out."""
    try:
        while True:
            if not sock.recv_into(buffer):
                raise RuntimeError("a watch ended")
            if not sock.pending():
                return True
    except ssl.SSLWantReadError:
        return False


def encoded(method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """A request as it travels."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nUser-Agent: bench/1\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
