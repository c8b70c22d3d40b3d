"""What somebody sends who is not known yet, or not trusted, for `support.doubling`: tokens and frames of WebSockets."""

import base64
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from podfit.apiserver.authn.tokens import ALGORITHM, ISSUER, claims_of, shared_audiences
from podfit.apiserver.request.documents import MOST_BUILT_IN
from podfit.net.http_intake import MOST_RAW
from podfit.net.websocket import WebSocket
from support.shapes import Shape, Work
from support.websocket import Pipe

MOST_TOKEN = 3 << 20
"""Bytes of a TokenReview's; a header has less."""
PING, MESSAGE, MASKED = 0x89, 0x82, 0x80
"""The first byte of a frame that is whole, and the bit of the second one beside the length."""


@cache
def key() -> Any:
    return ECKey.generate_key("P-256", private=True)


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def signed() -> str:
    return jwt.encode({"alg": ALGORITHM}, {"iss": ISSUER}, key())


def forged(header: str) -> str:
    """With a header that is not ours."""
    return ".".join((_encoded(header), *signed().split(".")[1:]))


def _token(made: Callable[[int], str]) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        token = made(size)
        return lambda: claims_of(token, key())

    return make


def _payload(inner: Callable[[int], str]) -> Callable[[int], Work]:
    """Below a header of ours and a signature of something else."""
    header, _, signature = signed().split(".")
    return _token(lambda size: ".".join((header, _encoded(inner(size * 3 // 4)), signature)))


def _audiences(size: int) -> Work:
    claims = {"aud": [f"a{n}" for n in range(size)]}
    return lambda: shared_audiences(claims, [f"b{n}" for n in range(size)])


class _Client(Pipe):
    """What it is sent it forgets."""

    def write(self, data: bytes) -> None: ...


def _frames(frame: bytes) -> Callable[[int], Work]:
    """So many bytes of the same frame, all there when the first one is read; then the client leaves."""

    def make(size: int) -> Work:
        async def read() -> None:
            pipe = _Client()
            for _ in range(max(1, size // MOST_RAW)):
                pipe.give(frame * (min(size, MOST_RAW) // len(frame)))
            pipe.give()
            socket = WebSocket(pipe)
            while await socket.part() is not None:
                continue

        return read

    return make


STRANGERS: Mapping[str, tuple[Shape, ...]] = {
    "apiserver.authn.tokens:claims_of": (
        Shape("dots", MOST_TOKEN, _token(lambda size: "." * size)),
        Shape("a header of one letter", MOST_TOKEN, _token(lambda size: "e" * size)),
        Shape("a deep header", MOST_TOKEN, _token(lambda size: forged("[" * (size * 3 // 4)))),
        Shape("a wide header", MOST_TOKEN, _token(lambda size: forged("{" + '"a":1,' * (size // 8) + '"b":1}'))),
        Shape("a deep payload", MOST_TOKEN, _payload(lambda size: "[" * size)),
        Shape("a wide payload", MOST_TOKEN, _payload(lambda size: "{" + '"a":1,' * (size // 6) + '"b":1}')),
        Shape("the longest payload that is read", 120_000, _payload(lambda size: '{"a":"' + "b" * size + '"}')),
    ),
    "apiserver.authn.tokens:shared_audiences": (Shape("audiences", MOST_BUILT_IN, _audiences),),
    "net.websocket:WebSocket.part": (
        Shape("empty messages", MOST_RAW, _frames(bytes((MESSAGE, MASKED)) + b"mask")),
        Shape("empty pings", MOST_RAW, _frames(bytes((PING, MASKED)) + b"mask")),
        Shape("pings", MOST_RAW, _frames(bytes((PING, MASKED | 125)) + b"mask" + b"a" * 125)),
        Shape("messages of one byte", MOST_RAW, _frames(bytes((MESSAGE, MASKED | 1)) + b"maska")),
        Shape(
            "messages of 60 KiB",
            4 << 20,
            _frames(bytes((MESSAGE, MASKED | 126)) + (61440).to_bytes(2, "big") + b"mask" + b"a" * 61440),
        ),
    ),
}
