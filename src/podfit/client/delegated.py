"""Delegated authentication and authorization, as upstream's: a component asks the API server by TokenReview and
SubjectAccessReview.

A client certificate was verified by the server's TLS, so only tokens are sent away. Answers are remembered for
`TTL_SECONDS`, at most `MOST_REMEMBERED` of each kind, and at most `MOST_AT_ONCE` questions are under way.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from podfit.api.authentication.v1.types import TokenReview, TokenReviewSpec
from podfit.api.authorization.v1.types import (
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.wire import Identity, Request
from podfit.net.x509 import certificate_identity

log = logging.getLogger(__name__)

T = TypeVar("T")

TTL_SECONDS = 10.0
MOST_REMEMBERED = 1024
MOST_AT_ONCE = 16
LONGEST_TOKEN = 32 * 1024
ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED = "system:anonymous", "system:authenticated", "system:unauthenticated"


class _Remembered(Generic[T]):
    """Answers that are good for a while; the oldest goes when there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Hashable, tuple[float, T]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        known = self._answers.get(key)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        answer = await ask()
        self._answers.pop(key, None)
        while len(self._answers) >= MOST_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = self._clock.monotonic() + TTL_SECONDS, answer
        return answer


class DelegatedAccess:
    """`client` needs the rights of `system:auth-delegator`, which kubelets have."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._tokens: _Remembered[Identity | None] = _Remembered(clock)
        self._verdicts: _Remembered[bool] = _Remembered(clock)
        self._under_way = asyncio.Semaphore(MOST_AT_ONCE)

    async def identify(self, request: Request) -> Identity | None:
        """Who asks by bearer token or verified certificate; None for everybody else. A token that cannot be checked is
        none."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token:
            return await self._by_token(token) if len(token) <= LONGEST_TOKEN else None
        if request.peer_certificate is None:
            return None
        try:
            found = certificate_identity(request.peer_certificate)
        except ValueError as error:
            log.info("client certificate cannot be read error=%s", error)
            return None
        return authenticated(found) if found is not None else None

    async def allowed(self, who: Identity, wanted: ResourceAttributes | NonResourceAttributes) -> bool:
        """Raises ApiError or ConnectionError when the API server does not say."""
        extra = tuple(sorted(who.extra.items()))
        key = who.user, who.uid, who.groups, extra, wanted
        return await self._verdicts.get(repr(key), lambda: self._review(who, wanted))

    async def _by_token(self, token: str) -> Identity | None:
        try:
            return await self._tokens.get(
                hashlib.sha256(token.encode(errors="surrogateescape")).digest(), lambda: self._review_token(token)
            )
        except (ApiError, ConnectionError) as error:
            log.warning("a bearer token cannot be checked error=%s", error)
            return None

    async def _review_token(self, token: str) -> Identity | None:
        async with self._under_way:
            status = (await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))).status
        if not status.authenticated:
            return None
        return authenticated(Identity(status.user.username, status.user.groups, status.user.uid, status.user.extra))

    async def _review(self, who: Identity, wanted: ResourceAttributes | NonResourceAttributes) -> bool:
        spec = SubjectAccessReviewSpec(
            user=who.user,
            uid=who.uid,
            groups=who.groups,
            extra=dict(who.extra),
            resource_attributes=wanted if isinstance(wanted, ResourceAttributes) else None,
            non_resource_attributes=wanted if isinstance(wanted, NonResourceAttributes) else None,
        )
        async with self._under_way:
            return (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed


def authenticated(who: Identity) -> Identity:
    """The identity with the group of everybody but the anonymous, as upstream's authenticators."""
    if who.user == ANONYMOUS or AUTHENTICATED in who.groups or UNAUTHENTICATED in who.groups:
        return who
    return Identity(who.user, (*who.groups, AUTHENTICATED), who.uid, who.extra)
