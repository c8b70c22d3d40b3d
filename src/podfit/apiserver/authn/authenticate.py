"""The authenticator: a client certificate, a bearer token, or an in-process identity.

Without any of them a request is anonymous, which is enough for health and version and nothing else.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from podfit.core.bounded_cache import cached_where_short
from podfit.core.errors import unauthorized
from podfit.net.wire import Identity, Request
from podfit.net.x509 import certificate_identity

log = logging.getLogger(__name__)

ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"


class TokenCheck(msgspec.Struct, frozen=True):
    """Whom a token speaks for, and to which of the audiences; without an identity, `problem` may say why not."""

    identity: Identity | None = None
    audiences: tuple[str, ...] = ()
    problem: str = ""


class TokenReader(Protocol):
    async def check(self, token: str, audiences: Sequence[str] = ()) -> TokenCheck:
        """Whom a bearer token speaks for towards one of the audiences; this server when none is given."""


class TokenReaders(msgspec.Struct, frozen=True):
    """Several kinds of tokens; the first reader that knows one answers."""

    readers: tuple[TokenReader, ...]

    async def check(self, token: str, audiences: Sequence[str] = ()) -> TokenCheck:
        problems = []
        for reader in self.readers:
            found = await reader.check(token, audiences)
            if found.identity is not None:
                return replace(found, identity=authenticated(found.identity))
            problems += [found.problem] if found.problem else []
        return TokenCheck(problem=", ".join(problems))


class Authenticator:
    def __init__(self, tokens: TokenReader) -> None:
        self._tokens = tokens

    async def identify(self, request: Request) -> Identity:
        """Raises 401 for credentials that are there but wrong."""
        if request.identity is not None:
            return authenticated(request.identity)
        if shown := request.headers.get("authorization"):
            scheme, _, token = shown.partition(" ")
            if scheme.lower() == "bearer":  # whoever knows another scheme only is as good as anonymous
                return authenticated(await self._bearer(token.strip()))
        if request.peer_certificate is not None:
            return self._certificate(request.peer_certificate)
        return ANONYMOUS

    async def _bearer(self, token: str) -> Identity:
        found = await self._tokens.check(token)
        if found.identity is None:
            if found.problem:
                log.info("bearer token is refused reason=%s", found.problem)
            raise unauthorized()
        return found.identity

    def _certificate(self, der: bytes) -> Identity:
        try:
            found = _certified(der)
        except ValueError as error:
            log.info("client certificate cannot be read error=%s", error)
            found = None
        if found is None:
            raise unauthorized()
        return found


@cached_where_short(4096, longest=4096)
def _certified(der: bytes) -> Identity | None:
    """One identity for all requests of a certificate."""
    found = certificate_identity(der)
    return authenticated(found) if found is not None else None


def authenticated(identity: Identity) -> Identity:
    """The identity with the group of everyone who is someone."""
    if AUTHENTICATED in identity.groups:
        return identity
    return Identity(identity.user, (*identity.groups, AUTHENTICATED), identity.uid, identity.extra)
