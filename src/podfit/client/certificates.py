"""The client certificate manager: requests a certificate with a CertificateSigningRequest and renews it in time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import datetime
from functools import partial

from podfit.api.certificates.v1.types import DENIED, FAILED, CertificateSigningRequest, CertificateSigningRequestSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.randomness import fraction
from podfit.net.certificate_requests import Names, Pair, life_of, new_request

log = logging.getLogger(__name__)

WAIT_SECONDS = 900.0  # for an approval; then it is asked for anew, as upstream
LONGEST_SLEEP = 3600.0
FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0
USES = {"client": ("digital signature", "client auth"), "server": ("digital signature", "server auth")}


class Declined(Exception):
    """The request was denied, or its signer does not sign it."""


async def obtain(
    client: Client,
    clock: Clock,
    *,
    signer: str,
    use: str,
    names: Names,
    waiting: Callable[[str], None] = lambda _: None,
) -> Pair:
    """A new key with its certificate, once somebody approves it; `waiting` is told the name of the request.

    Raises Declined, TimeoutError after `WAIT_SECONDS`, ApiError or ConnectionError.
    """
    key, pem = new_request(names)
    spec = CertificateSigningRequestSpec(request=pem, signer_name=signer, usages=USES[use])
    request = await client.create(CertificateSigningRequest(metadata=ObjectMeta(generate_name="csr-"), spec=spec))
    name = request.metadata.name
    log.info("certificate requested request=%s signer=%s user=%s", name, signer, names.user)
    waiting(name)
    waited = asyncio.ensure_future(_issued(client, name))
    timer = clock.call_later(WAIT_SECONDS, partial(_cancel, waited))
    try:
        return Pair(await waited, key)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise TimeoutError(f"{name} was not approved within {WAIT_SECONDS:.0f} s") from None
    finally:
        timer.cancel()
        waited.cancel()
        await asyncio.gather(waited, return_exceptions=True)


def _cancel(task: asyncio.Future[bytes]) -> None:
    task.cancel()


async def _issued(client: Client, name: str) -> bytes:
    while True:
        page = await client.list(CertificateSigningRequest, fields=f"metadata.name={name}")
        if not page.items:
            raise Declined(f"the request {name} was deleted")
        if certificate := _outcome(page.items[0]):
            return certificate
        watch = client.watch(
            CertificateSigningRequest, resource_version=page.resource_version, fields=f"metadata.name={name}"
        )
        async with aclosing(watch) as events:
            async for event in events:
                if event.type == "DELETED":
                    raise Declined(f"the request {name} was deleted")
                if event.type != "BOOKMARK" and (certificate := _outcome(event.object)):
                    return certificate


def _outcome(request: CertificateSigningRequest) -> bytes:
    for condition in request.status.conditions:
        if condition.type in (DENIED, FAILED):
            raise Declined(f"{request.metadata.name} is {condition.type.lower()}: {condition.message}")
    return request.status.certificate


class CertificateManager:
    """Keeps a pair good: asks for the first one where there is none, and for the next before one is over."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        signer: str,
        use: str,
        names: Names,
        pair: Pair | None,
        changed: Callable[[Pair], Awaitable[None]],
    ) -> None:
        self._client, self._clock = client, clock
        self._signer, self._use, self._names = signer, use, names
        self._pair, self._changed = pair, changed

    async def run(self) -> None:
        """Until cancelled."""
        backoff = Backoff(FIRST_RETRY, LONGEST_RETRY, self._client.random)
        while True:
            await self._until_due()
            try:
                pair = await obtain(self._client, self._clock, signer=self._signer, use=self._use, names=self._names)
                await self._changed(pair)
            except (ApiError, ConnectionError, Declined, TimeoutError) as error:
                delay = backoff.next()
                log.warning("no certificate yet signer=%s retry_seconds=%.1f error=%s", self._signer, delay, error)
                await self._clock.sleep(delay)
                continue
            backoff.reset()
            self._pair = pair
            log.info("certificate renewed signer=%s user=%s", self._signer, self._names.user)

    async def _until_due(self) -> None:
        if self._pair is None:
            return
        life = life_of(self._pair.certificate)
        due = life.renewal(fraction(self._client.random))
        while (left := _seconds(self._clock.now(), due)) > 0:  # in steps: the wall clock may be set
            await self._clock.sleep(min(left, LONGEST_SLEEP))
            if self._clock.now() < life.begins:  # set back, before the certificate is good
                return


def _seconds(now: datetime, then: datetime) -> float:
    return (then - now).total_seconds()
