"""Projected service account tokens: requested as the node, bound to the pod, and renewed in time.

A token is kept in memory until four fifths of its life are over, or a day: mounting a pod again costs no request. When
none can be had, one that is still good stays.
"""

import logging
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from podfit.api.authentication.v1.types import BoundObjectReference, TokenRequest, TokenRequestSpec
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import ServiceAccountTokenProjection
from podfit.api.meta import codec
from podfit.api.registry import info_for
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import parse_time

log = logging.getLogger(__name__)

LONGEST_USE = timedelta(hours=24)
LIFE_USED = 0.8
DEFAULT_SECONDS = 3600


class _Key(NamedTuple):
    uid: str
    account: str
    audience: str
    seconds: int


class _Token(msgspec.Struct, frozen=True):
    text: str
    begin: datetime
    renew: datetime
    end: datetime


class Tokens(Protocol):
    async def token(self, pod: Pod, wanted: ServiceAccountTokenProjection) -> str:
        """A token that is good for a while. Raises ApiError, OSError when there is none."""

    def forget(self, uid: str) -> None:
        """The pod is gone, and its tokens are good no more."""


class TokenSource:
    """`Tokens` from the API server."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._tokens: dict[_Key, _Token] = {}

    async def token(self, pod: Pod, wanted: ServiceAccountTokenProjection) -> str:
        seconds = wanted.expiration_seconds or DEFAULT_SECONDS
        account = pod.spec.service_account_name or "default"
        key, now = _Key(pod.metadata.uid, account, wanted.audience, seconds), self._clock.now()
        known = self._tokens.get(key)
        if known is not None and known.begin <= now < known.renew:  # of a time to come: the clock was set back
            return known.text
        try:
            known = self._tokens[key] = await self._request(pod, key, now)
        except (ApiError, OSError) as error:
            if known is None or now >= known.end:
                raise
            log.warning(
                "token is not renewed, the last one stays pod=%s/%s ends=%s error=%s",
                pod.metadata.namespace,
                pod.metadata.name,
                known.end,
                error,
            )
        return known.text

    def forget(self, uid: str) -> None:
        self._tokens = {key: token for key, token in self._tokens.items() if key.uid != uid}

    async def _request(self, pod: Pod, key: _Key, now: datetime) -> _Token:
        meta = pod.metadata
        bound = BoundObjectReference(kind="Pod", api_version="v1", name=meta.name, uid=meta.uid)
        audiences = (key.audience,) if key.audience else ()
        asked = TokenRequest(
            spec=TokenRequestSpec(audiences=audiences, expiration_seconds=key.seconds, bound_object_ref=bound)
        )
        path = info_for(ServiceAccount).path(meta.namespace, key.account, "token")
        body = await self._client.request("POST", path, codec.encode(asked), content_type="application/json")
        status = codec.decode(body, TokenRequest).status
        end = parse_time(status.expiration_timestamp or "")
        life = end - now
        return _Token(status.token, now, now + min(life * LIFE_USED, LONGEST_USE), end)
