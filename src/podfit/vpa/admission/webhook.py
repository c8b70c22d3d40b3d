"""The admission controller's HTTPS server: its certificates, their renewal, and its registration (V-068, V-070)."""

import asyncio
import logging
import ssl

import msgspec

from podfit.client.rest import Client
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.http_server import HttpsServer
from podfit.net.tls import server_context, show
from podfit.net.wire import Handler
from podfit.vpa.admission.controller import BODY_LIMIT
from podfit.vpa.admission.registration import Registration, register, trust
from podfit.vpa.certificates import LOOK_SECONDS, Certificates, Shown

log = logging.getLogger(__name__)


class Tls(msgspec.Struct, frozen=True):
    """`ciphers` are OpenSSL's names, joined by colons; empty for the usual ones."""

    least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`registration` is None where somebody else registers it; `reloads` where certificates may change."""

    address: str = "0.0.0.0"
    port: int = 8000
    tls: Tls = Tls()
    registration: Registration | None = Registration()
    reloads: bool = True


class Webhook:
    def __init__(
        self, handler: Handler, client: Client, clock: Clock, options: WebhookOptions, certificates: Certificates
    ) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._certificates = certificates
        self._context = server_context(None)
        self._context.minimum_version = options.tls.least
        if options.tls.ciphers:
            self._context.set_ciphers(options.tls.ciphers)
        self._server = HttpsServer(handler, self._context, body_limit=BODY_LIMIT)
        self.port = 0
        """Where it listens, once it does."""

    async def run(self) -> None:
        """Serve until cancelled. Raises OSError for certificates that cannot be used, and for a port that is taken."""
        shown = await asyncio.to_thread(self._certificates)
        show(self._context, shown.certificate, shown.key)
        self.port = await self._server.listen(self._options.address, self._options.port)
        try:
            if self._options.registration is not None:
                await self._register(self._options.registration, shown.authorities)
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                if self._options.reloads:
                    shown = await self._reloaded(shown)
        finally:
            await self._server.close()

    async def _register(self, registration: Registration, authorities: bytes) -> None:
        backoff = Backoff(1.0, 30.0, self._client.random)
        while True:
            try:
                await register(self._client, registration, authorities)
            except (ApiError, ConnectionError) as error:
                delay = backoff.next()
                log.warning("webhook not registered retry_seconds=%.2f error=%s", delay, error)
                await self._clock.sleep(delay)
            else:
                return

    async def _reloaded(self, before: Shown) -> Shown:
        """What is shown from now on; what cannot be read, or used, changes nothing."""
        try:
            shown = await asyncio.to_thread(self._certificates)
            if shown == before or not shown.whole:
                return before
            show(self._context, shown.certificate, shown.key)
            if shown.authorities != before.authorities and self._options.registration is not None:
                await trust(self._client, shown.authorities)
        except (OSError, ApiError) as error:
            log.warning("certificates not taken over, those before stay error=%s", error)
            return before
        log.info("certificates taken over")
        return shown
