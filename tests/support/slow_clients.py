"""Clients that take their time, or a server's connections: raw sockets to a `support.bounded.Victim`."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.bounded import Victim

CLOSED_SECONDS = 120.0


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
