"""A single HTTP GET for probes and hooks: no certificate checks, bounded time and size.

Only the status, the place that a redirect leads to and the first bytes of a body matter here. Nothing is kept open, no
certificate is verified, and an answer is read no further than its bounds.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from podfit.net.tls import client_context

MOST_HEAD = 64 * 1024  # bytes of status and headers
MOST_REDIRECTS = 10
MOST_INTERIM = 16  # answers of 1xx before the real one


class GetFailed(Exception):
    """Nobody answered, in the words that Go has for it."""


class PlainAnswer(msgspec.Struct, frozen=True):
    """`elsewhere`: the answer leads to another host, which was not asked."""

    status: int
    body: bytes = b""
    elsewhere: bool = False


async def get(url: str, headers: Sequence[tuple[str, str]], *, timeout: float, kept: int) -> PlainAnswer:
    """Follows redirects on the same host. `kept` bytes of the body are read. Raises GetFailed."""
    first = urlsplit(url)
    try:
        async with asyncio.timeout(timeout):
            for _ in range(MOST_REDIRECTS):
                status, location, body = await _exchange(url, headers, kept)
                if status not in (301, 302, 303, 307, 308) or not location:
                    return PlainAnswer(status, body)
                url = urljoin(url, location)
                if urlsplit(url).hostname != first.hostname:
                    return PlainAnswer(status, body, elsewhere=True)
    except TimeoutError:
        reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        raise GetFailed(f'Get "{url}": {reason}') from None
    except GetFailed as error:
        raise GetFailed(f'Get "{url}": {error}') from error
    raise GetFailed(f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')


async def connect(host: str, port: int, *, timeout: float) -> None:
    """Whether something listens there. Raises GetFailed."""
    try:
        async with asyncio.timeout(timeout):
            _, writer = await _dial(host, port, None)
    except TimeoutError:
        raise GetFailed(f"dial tcp {_place(host, port)}: i/o timeout") from None
    writer.transport.abort()


async def _exchange(url: str, headers: Sequence[tuple[str, str]], kept: int) -> tuple[int, str, bytes]:
    there = urlsplit(url)
    secure = there.scheme == "https"
    if there.scheme not in ("http", "https") or not there.hostname:
        raise GetFailed(f'unsupported protocol scheme "{there.scheme}"')
    port = there.port or (443 if secure else 80)
    reader, writer = await _dial(there.hostname, port, client_context(verify=False) if secure else None)
    try:
        writer.write(_request(there, headers))
        await writer.drain()
        for _ in range(MOST_INTERIM):
            status, told = _head(await reader.readuntil(b"\r\n\r\n"))
            if status >= 200:
                return status, told.get("location", ""), await _body(reader, status, told, kept)
        raise GetFailed("net/http: HTTP/1.x transport connection broken: too many 1xx informational responses")
    except asyncio.IncompleteReadError as error:
        raise GetFailed("EOF") from error
    except (asyncio.LimitOverrunError, ValueError) as error:
        raise GetFailed("malformed HTTP response") from error
    except OSError as error:
        raise GetFailed(f"read tcp {_place(there.hostname, port)}: {_said(error)}") from error
    finally:
        writer.transport.abort()


async def _dial(host: str, port: int, tls: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(host, port, ssl=tls, limit=MOST_HEAD)
    except ssl.SSLError as error:
        raise GetFailed(f"tls: {error.reason or error}") from error
    except socket.gaierror as error:
        raise GetFailed(f"dial tcp: lookup {host}: no such host") from error
    except OSError as error:
        raise GetFailed(f"dial tcp {_place(host, port)}: connect: {_said(error)}") from error


def _request(there: SplitResult, headers: Sequence[tuple[str, str]]) -> bytes:
    target = (there.path or "/") + (f"?{there.query}" if there.query else "")
    given = {name.lower() for name, _ in headers}
    host = () if "host" in given else (("Host", there.netloc.rpartition("@")[2]),)
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {text}" for name, text in (*host, *headers)), "Connection: close"]
    if any(letter in line for line in lines for letter in "\r\n\0"):
        raise ValueError("a header has a line break in it")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status, and headers by their lower-case names. Raises ValueError."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(first)
    named = (line.partition(":") for line in lines)
    return int(rest[:3]), {name.strip().lower(): text.strip() for name, _, text in named}


async def _body(reader: asyncio.StreamReader, status: int, told: Mapping[str, str], kept: int) -> bytes:
    """What comes first of it, as it is framed: it is for people to read. One of unknown length is read once."""
    if status in (204, 304):
        return b""
    if "content-length" not in told:
        return await reader.read(kept)
    body, wanted = bytearray(), min(kept, int(told["content-length"]))
    while len(body) < wanted and (piece := await reader.read(wanted - len(body))):
        body += piece
    return bytes(body)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _said(error: OSError) -> str:
    """Go writes the kernel's messages in lower case."""
    number = error.errno
    if number is None and isinstance(error, ConnectionResetError):
        number = errno.ECONNRESET
    return os.strerror(number).lower() if number else str(error)
