"""Clients that act as service accounts of `kube-system`, each with a token that is renewed in time."""

import asyncio
import logging

import msgspec
from msgspec.structs import replace

from podfit.api.authentication.v1.types import TokenRequest, TokenRequestSpec
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.client.transport import Transport
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.wire import Request, Response

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
SECONDS = 3600
RENEW_AFTER = 0.8  # of that


class _Token(msgspec.Struct, frozen=True):
    text: str
    until: float


class AccountTokens:
    """`client` may create service accounts and tokens for them, as `system:kube-controller-manager` may."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[str, _Token] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, name: str) -> str:
        """Raises ApiError or ConnectionError."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            known = self._known.get(name)
            if known is None or known.until <= self._clock.monotonic():
                known = self._known[name] = await self._fresh(name)
            return known.text

    def forget(self, name: str) -> None:
        """Its token is not accepted any more: the account was made anew."""
        self._known.pop(name, None)

    async def _fresh(self, name: str) -> _Token:
        try:
            text = await self._ask(name)
        except ApiError as error:
            if error.code != 404:
                raise
            await self._make(name)
            text = await self._ask(name)
        return _Token(text, self._clock.monotonic() + SECONDS * RENEW_AFTER)

    async def _ask(self, name: str) -> str:
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
        body = codec.encode(TokenRequest(spec=TokenRequestSpec(expiration_seconds=SECONDS)))
        return codec.decode(await self._client.request("POST", path, body), TokenRequest).status.token

    async def _make(self, name: str) -> None:
        try:
            await self._client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=NAMESPACE)))
        except ApiError as error:
            if error.code != 409:
                raise


class AsAccount:
    """A transport that shows the token of one account over connections that several share."""

    near = False

    def __init__(self, transport: Transport, tokens: AccountTokens, name: str) -> None:
        self._transport, self._tokens, self._name = transport, tokens, name

    async def send(self, request: Request) -> Response:
        token = await self._tokens.get(self._name)
        headers = {**request.headers, "authorization": f"Bearer {token}"}
        response = await self._transport.send(replace(request, headers=headers))
        if response.status == 401:
            self._tokens.forget(self._name)
        return response

    async def close(self) -> None:
        """The connections are not its own."""
