"""Who asks: a client certificate, a service account's token, or an in-process identity.

Without any of them a request is anonymous, which is enough for health and version and nothing else.
"""

import logging
from typing import Protocol

from podfit.core.errors import unauthorized
from podfit.net.wire import Identity, Request
from podfit.net.x509 import certificate_identity

log = logging.getLogger(__name__)

ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"


class TokenReader(Protocol):
    async def identity(self, token: str) -> Identity | None:
        """Whom a bearer token speaks for; None when it is not valid."""


class Authenticator:
    def __init__(self, tokens: TokenReader) -> None:
        self._tokens = tokens

    async def identify(self, request: Request) -> Identity:
        """Raises 401 for credentials that are there but wrong."""
        if request.identity is not None:
            return _authenticated(request.identity)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":  # whoever knows another scheme only is as good as anonymous
            return _authenticated(await self._bearer(token.strip()))
        if request.peer_certificate is not None:
            return _authenticated(self._certificate(request.peer_certificate))
        if request.untrusted:
            log.info("client certificate is refused remote=%s reason=%s", request.remote, request.untrusted)
            raise unauthorized()
        return ANONYMOUS

    async def _bearer(self, token: str) -> Identity:
        found = await self._tokens.identity(token)
        if found is None:
            raise unauthorized()
        return found

    def _certificate(self, der: bytes) -> Identity:
        try:
            found = certificate_identity(der)
        except ValueError as error:
            log.info("client certificate cannot be read error=%s", error)
            found = None
        if found is None:
            raise unauthorized()
        return found


def _authenticated(identity: Identity) -> Identity:
    if AUTHENTICATED in identity.groups:
        return identity
    return Identity(identity.user, (*identity.groups, AUTHENTICATED), identity.uid, identity.extra)
