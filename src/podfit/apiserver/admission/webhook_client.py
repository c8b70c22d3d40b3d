"""From a webhook's client configuration to an answer.

A URL is called over HTTPS, trusting the configured bundle; a service is looked up with a resolver, which may hand out a
handler in this process. Every way to fail becomes a `CallFailed` that says which URL was called.
"""

import asyncio
import ssl
from collections.abc import Awaitable
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from podfit.api import codec
from podfit.api.admission import AdmissionReview
from podfit.api.admissionregistration import ServiceReference, ValidatingWebhook, WebhookClientConfig
from podfit.apiserver.admission.webhook_metrics import WebhookMetrics
from podfit.apiserver.admission.webhook_review import CallFailed
from podfit.apiserver.context import Context
from podfit.core.clock import Clock
from podfit.net.guard import answer
from podfit.net.tls import client_context
from podfit.net.wire import Request, Response

if TYPE_CHECKING:
    from podfit.net.http_client import HttpsClient

T = TypeVar("T")

DEFAULT_SECONDS = 10
_UNKNOWN_ISSUER = (18, 19, 20, 21)  # OpenSSL's numbers for a chain that ends nowhere
_STATUS_TEXTS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class WebhookClient:
    """One pool of connections for each server and bundle; `close` ends them."""

    def __init__(self, context: Context) -> None:
        self.metrics = WebhookMetrics()
        self._clock = context.clock
        self._services = context.services
        self._clients: dict[tuple[str, bytes], HttpsClient] = {}

    async def ask(self, webhook: ValidatingWebhook, review: AdmissionReview) -> bytes:
        """The body of the answer. Raises CallFailed."""
        seconds = webhook.timeout_seconds or DEFAULT_SECONDS
        server, path = _place(webhook.client_config)
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "podfit-admission"}
        request = Request("POST", path, {"timeout": (f"{seconds}s",)}, headers, codec.encode(review))
        where = f'failed to call webhook: Post "{server}{path}?timeout={seconds}s"'
        try:
            status, body = await within(self._clock, seconds, self._exchange(webhook.client_config, server, request))
        except TimeoutError:
            raise CallFailed(f"{where}: context deadline exceeded") from None
        except (OSError, ValueError, OverflowError) as error:  # the latter two: a host or port that there cannot be
            raise CallFailed(f"{where}: {_network_text(error, server)}") from None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise CallFailed(f"failed to call webhook: {_status_text(status, body)}")
        return body

    async def _exchange(self, config: WebhookClientConfig, server: str, request: Request) -> tuple[int, bytes]:
        response = await self._send(config, server, request)
        return response.status, await response.read()

    async def _send(self, config: WebhookClientConfig, server: str, request: Request) -> Response:
        if config.service is None:
            return await self._client(server, config.ca_bundle).send(request, read_timeout=None)
        handler = self._services(config.service)
        if handler is None:
            raise OSError(f'service "{config.service.name}" not found')
        return await answer(handler, request)

    def _client(self, server: str, bundle: bytes) -> "HttpsClient":
        known = self._clients.get((server, bundle))
        if known is None:
            try:
                tls = client_context(authorities=bundle or None)
            except (ssl.SSLError, UnicodeDecodeError, ValueError):
                raise OSError("unable to load root certificates: unable to parse bytes as PEM block") from None
            from podfit.net.http_client import HttpsClient

            known = self._clients[server, bundle] = HttpsClient(server, tls)
        return known

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(each.close() for each in clients))


def _place(config: WebhookClientConfig) -> tuple[str, str]:
    """Server and path of the webhook's URL."""
    if config.service is not None:
        return _service_server(config.service), config.service.path or "/"
    parts = urlsplit(config.url or "")
    return f"https://{parts.netloc}", parts.path or "/"


def _service_server(service: ServiceReference) -> str:
    return f"https://{service.name}.{service.namespace}.svc:{service.port or 443}"


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """Raises TimeoutError when the clock says that the time is over."""
    task = asyncio.ensure_future(work)
    over = False

    def end() -> None:
        nonlocal over
        over = True
        task.cancel()

    timer = clock.call_later(seconds, end)
    try:
        return await task
    except asyncio.CancelledError:
        if over:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


def _network_text(error: Exception, server: str) -> str:
    """Why there was no connection, in the words of Go's net and tls where there are any."""
    cause = error.__cause__
    if isinstance(getattr(cause, "os_error", None), ConnectionRefusedError):
        return f"dial tcp {server.removeprefix('https://')}: connect: connection refused"
    doubt = getattr(cause, "certificate_error", None)
    if isinstance(doubt, ssl.SSLCertVerificationError):
        unknown = doubt.verify_code in _UNKNOWN_ISSUER
        why = "certificate signed by unknown authority" if unknown else doubt.verify_message
        return f"tls: failed to verify certificate: x509: {why}"
    return str(error).removeprefix(f"{server}: ")


def _status_text(status: int, body: bytes) -> str:
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        said = body.decode(errors="replace").strip() or "unknown"
        return f'an error on the server ("{said}") has prevented the request from succeeding'
    other = f"the server responded with the status code {status} but did not return more information"
    return _STATUS_TEXTS.get(status, other)
