"""An HTTPS server that answers bytes as they are: what no backend should say, and an API server may hear."""

import base64
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.tls import server_context

Send = Callable[[bytes], None]
Answer = Callable[[Send], None]
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *([0-9]+)")


@dataclass
class Spoofed:
    """Each path begins with who answers: `answers["a"]` is that of `/a/…`. `heads` are the requests' heads, `bodies`
    what follows them where their length is said."""

    port: int
    bundle: str
    answers: dict[str, Answer] = field(default_factory=dict)
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    default: Answer | None = None

    def answer(self, sock: ssl.SSLSocket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            if not (read := sock.recv(1 << 16)):
                return
            head += read
        head, _, body = head.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        while length and len(body) < int(length[1]):
            if not (read := sock.recv(1 << 16)):
                return
            body += read
        self.bodies.append(body)
        self.heads.append(head)
        name = head.split(b"/", 2)[1].split(b" ")[0].split(b"?")[0].decode()
        if (answer := self.answers.get(name, self.default)) is not None:
            answer(sock.sendall)


@contextmanager
def spoofed(directory: Path, host: str, *names: str) -> Iterator[Spoofed]:
    """With a certificate for these names."""
    authority = Authority.load(directory, clock=SystemClock())
    context = server_context(authority.server("spoofed", hosts=(host, *names)))
    listener = socket.create_server((host, 0))
    server = Spoofed(listener.getsockname()[1], base64.b64encode(authority.certificate).decode())

    def serve(plain: socket.socket) -> None:
        with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as sock:
            server.answer(sock)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
