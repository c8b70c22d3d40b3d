"""Many connections of one hostile sort, in a process of their own.

    python hostile_connections.py PORT CA SORT COUNT QUIET [CERTIFICATE KEY]...

Opens COUNT connections, as the identities in turn (as nobody without any), and begins on each of them what SORT says.
It goes on sending, and prints `begun` when each has sent what the server takes: all, or nothing more for QUIET seconds.
It ends, and the connections with it, when its input does.
"""

import selectors
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 1 << 20
LONGEST_SECONDS = 120.0
AT_ONCE = 64 * 1024  # bytes


def post(size: int) -> bytes:
    """All of a request but the last byte of its body."""
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + b" " * (size - 1)


def said(sort: str, number: int) -> bytes:
    match sort:
        case "idle":
            return b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        case "large body":
            return post(3 * MIB)
        case "small body":
            return post(60_000)
        case "head":
            line = b"X-%d: " % number + b"a" * 30_000 + b"\r\n"
            return b"GET / HTTP/1.1\r\nHost: x\r\n" + line * 8
        case "unread list":
            selector = f"labelSelector=number%21%3D{number}"
            return f"GET {MAPS}?{selector} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        case "unread table":
            accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
            selector = f"includeObject=Object&labelSelector=number%21%3D{number}"
            return f"GET {MAPS}?{selector} HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n".encode()
        case "unread object":
            return f"GET {MAPS}/big0 HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 8
        case "body behind an unread list":
            return said("unread list", number) + post(3 * MIB)
    raise ValueError(sort)


def contexts(authority: str, files: list[str]) -> Iterator[ssl.SSLContext]:
    pairs = list(zip(files[::2], files[1::2], strict=True)) or [("", "")]
    for certificate, key in pairs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(authority)
        if certificate:
            context.load_cert_chain(certificate, key)
        yield context


def opened(port: int, context: ssl.SSLContext) -> ssl.SSLSocket | None:
    """A connection whose client takes little before it reads."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(120)
    try:
        plain.connect(("127.0.0.1", port))
        secured = context.wrap_socket(plain, server_hostname="127.0.0.1")
    except OSError:  # it is not taken, or was closed to make room
        plain.close()
        return None
    secured.setblocking(False)
    return secured


class Pump:
    """Sends what is left on every connection as fast as it is taken, in a thread, so that none waits for the next."""

    def __init__(self) -> None:
        self.left: dict[ssl.SSLSocket, memoryview] = {}
        self.moved = time.monotonic()
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()

    def add(self, sock: ssl.SSLSocket, data: bytes) -> None:
        with self._lock:
            self.left[sock] = memoryview(data)
            self._selector.register(sock, selectors.EVENT_WRITE)

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select(0.1):
                with self._lock:
                    self._send(key.fileobj)  # type: ignore[arg-type]  # what was registered

    def _send(self, sock: ssl.SSLSocket) -> None:
        with suppress(ssl.SSLWantWriteError, ssl.SSLWantReadError):
            try:
                sent = sock.send(self.left[sock][:AT_ONCE])
            except OSError as error:
                if isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError):
                    raise
                self._forget(sock)  # the server has closed it
                return
            self.moved = time.monotonic()
            self.left[sock] = self.left[sock][sent:]
            if not self.left[sock]:
                self._forget(sock)

    def _forget(self, sock: ssl.SSLSocket) -> None:
        del self.left[sock]
        self._selector.unregister(sock)


def main() -> None:
    port, authority, sort, count, quiet, *files = sys.argv[1:]
    identities, pump = list(contexts(authority, files)), Pump()
    threading.Thread(target=pump.run, daemon=True).start()
    kept = []
    for number in range(int(count)):
        sock = opened(int(port), identities[number % len(identities)])
        if sock is not None:
            kept.append(sock)
            pump.add(sock, said(sort, number))
    begun = time.monotonic()
    while pump.left and time.monotonic() < min(pump.moved + float(quiet), begun + LONGEST_SECONDS):
        time.sleep(0.1)
    sys.stdout.write(f"begun {len(kept)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
