"""Clients that take their time, or a server's connections: raw sockets to a `support.bounded.Victim`."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.bounded import Victim
from support.eventually import eventually

CLOSED_SECONDS = 120.0
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"


def connect(victim: Victim, *, room: int = 0) -> socket.socket:
    """A plain connection; `room` is how many bytes it takes before its owner reads."""
    sock = socket.socket()
    if room:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    sock.settimeout(CLOSED_SECONDS)
    sock.connect(("127.0.0.1", victim.port))
    return sock


def secured(victim: Victim, *, anonymous: bool = True, room: int = 0) -> ssl.SSLSocket:
    return victim.tls(anonymous=anonymous).wrap_socket(connect(victim, room=room), server_hostname="127.0.0.1")


def hello(victim: Victim) -> bytes:
    """The first bytes of a handshake, which cost a client nothing to send again and again."""
    sent = ssl.MemoryBIO()
    begun = victim.tls(anonymous=True).wrap_bio(ssl.MemoryBIO(), sent, server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        begun.do_handshake()
    return sent.read()


@contextmanager
def many(victim: Victim, count: int) -> Iterator[list[socket.socket]]:
    """So many plain connections, closed at the end."""
    opened: list[socket.socket] = []
    try:
        opened.extend(connect(victim) for _ in range(count))
        yield opened
    finally:
        for sock in opened:
            sock.close()


def seconds_until_closed(sock: socket.socket, every: float = 0.0, send: bytes = b"") -> float:
    """How long the server lets the connection be; meanwhile a byte of `send` every so often."""
    began, left = time.monotonic(), list(send)
    sock.settimeout(every or CLOSED_SECONDS)
    while (waited := time.monotonic() - began) < CLOSED_SECONDS:
        try:
            if not sock.recv(1 << 16):
                break
        except TimeoutError:
            with suppress(OSError):
                sock.send(bytes([left.pop(0) if left else 97]))
        except OSError:
            break
    return waited


def flood(victim: Victim, count: int, said: bytes) -> None:
    with many(victim, count) as opened:
        for sock in opened:
            with suppress(OSError):  # it was closed to make room
                sock.sendall(said)
        assert victim.ask("GET", "/readyz").status == 200


def idle(victim: Victim, count: int) -> None:
    """Connections that have asked once, and say no more."""
    opened = [secured(victim) for _ in range(count)]
    for sock in opened:
        sock.sendall(GET)
    assert all(sock.recv(4096).startswith(b"HTTP/1.1 200") for sock in opened)
    victim.requests += count
    for sock in opened:
        sock.close()


def half_closed(victim: Victim, count: int) -> None:
    """Clients that say they will send no more, in the middle of what they asked."""
    for begun in (b"", b"GET /he", POST + b"a"):
        for _ in range(count):
            with secured(victim) as sock:
                sock.sendall(begun)
                socket.socket.shutdown(sock, socket.SHUT_WR)
                with suppress(OSError):
                    while sock.recv(4096):
                        continue
    victim.requests += 3 * count


def unread(victim: Victim, path: str) -> socket.socket:
    sock = secured(victim, anonymous=False, room=4096)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return sock


def closed_by_the_server(victim: Victim, sock: socket.socket) -> float:
    """Seconds until the server has no such connection any more; nothing is read from it."""
    port, began = sock.getsockname()[1], time.monotonic()
    wanted = f":{victim.port:04X} 0100007F:{port:04X} 01"
    tcp = Path("/proc/net/tcp")
    eventually(lambda: wanted not in tcp.read_text(), within=180, what="the server closes the connection", every=0.2)
    return time.monotonic() - began
