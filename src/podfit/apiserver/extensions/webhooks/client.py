"""Calls a webhook by its `clientConfig`.

A URL is called over HTTPS, trusting the configured bundle, and so is a service, at the addresses behind it, unless the
resolver that the server was given hands out a handler in this process. Every way to fail becomes a `CallFailed` that
says which URL was called.
"""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podfit.api.admission.v1.types import AdmissionReview
from podfit.api.admissionregistration.v1.types import ValidatingWebhook, WebhookClientConfig
from podfit.api.meta import codec
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.backends import Backends, Trusted, https_client, network_text, server_of
from podfit.apiserver.extensions.deadline import with_deadline
from podfit.apiserver.extensions.webhooks.review import CallFailed
from podfit.net.guard import answer
from podfit.net.metrics import Metrics
from podfit.net.wire import Request, Response

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

    from podfit.net.http_client import HttpsClient

_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
_LARGEST_CODE = 600  # a webhook may name any code; beyond this they are one series
_LABELS = ("name", "type", "operation")


class WebhookMetrics:
    def __init__(self) -> None:
        self._calls: Counter | None = None
        self._seconds: Histogram | None = None

    def declare(self, metrics: Metrics) -> None:
        self._calls = metrics.counter(
            "apiserver_admission_webhook_request_total",
            "Calls of admission webhooks by outcome.",
            (*_LABELS, "code", "rejected"),
        )
        self._seconds = metrics.histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "How long admission webhooks took.",
            (*_LABELS, "rejected"),
            buckets=_BUCKETS,
        )

    def called(self, name: str, sort: str, operation: str, *, code: int, rejected: bool, seconds: float) -> None:
        """One call; `code` is 200 for an answer that lets the write pass, else the refusal's."""
        if self._calls is None or self._seconds is None:
            return
        word = str(rejected).lower()
        self._calls.labels(name, sort, operation, str(min(code, _LARGEST_CODE)), word).inc()
        self._seconds.labels(name, sort, operation, word).observe(seconds)


DEFAULT_SECONDS = 10
ANSWER_BYTES = 3 * 2**20  # more than a patch of the largest object
_STATUS_TEXTS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class WebhookClient:
    """One pool of connections for each server and bundle; `close` ends them."""

    def __init__(self, context: Context, backends: Backends) -> None:
        self.metrics = WebhookMetrics()
        self._clock = context.clock
        self._services = context.services
        self._backends = backends
        self._clients: dict[tuple[str, bytes], HttpsClient] = {}

    async def ask(self, webhook: ValidatingWebhook, review: AdmissionReview) -> bytes:
        """The body of the answer. Raises CallFailed."""
        seconds = webhook.timeout_seconds or DEFAULT_SECONDS
        server, path = _place(webhook.client_config)
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "user-agent": "podfit-admission",
            "accept-encoding": "identity",
        }
        request = Request("POST", path, {"timeout": (f"{seconds}s",)}, headers, codec.encode(review))
        where = f'failed to call webhook: Post "{server}{path}?timeout={seconds}s"'
        try:
            status, body = await with_deadline(
                self._clock, seconds, self._exchange(webhook.client_config, server, request)
            )
        except TimeoutError:
            raise CallFailed(f"{where}: context deadline exceeded") from None
        except (OSError, ValueError, OverflowError) as error:  # the latter two: a host or port that there cannot be
            service = webhook.client_config.service
            dialled = self._backends.dialled(service) if service is not None else ""
            raise CallFailed(f"{where}: {network_text(error, server, dialled)}") from None
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise CallFailed(f"failed to call webhook: {_status_text(status, body)}")
        return body

    async def _exchange(self, config: WebhookClientConfig, server: str, request: Request) -> tuple[int, bytes]:
        response = await self._send(config, server, request)
        return response.status, await response.read(ANSWER_BYTES)

    async def _send(self, config: WebhookClientConfig, server: str, request: Request) -> Response:
        if config.service is None:
            return await (await self._client(server, config.ca_bundle)).send(request, read_timeout=None)
        handler = self._services(config.service)
        if handler is None:
            return await self._backends.send(config.service, request, Trusted(config.ca_bundle))
        return await answer(handler, request)

    async def _client(self, server: str, bundle: bytes) -> "HttpsClient":
        if (server, bundle) not in self._clients:
            made = await asyncio.to_thread(https_client, server, Trusted(bundle))
            self._clients.setdefault((server, bundle), made)
        return self._clients[server, bundle]

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients))


def _place(config: WebhookClientConfig) -> tuple[str, str]:
    """Server and path of the webhook's URL."""
    if config.service is not None:
        return server_of(config.service), config.service.path or "/"
    parts = urlsplit(config.url or "")
    return f"https://{parts.netloc}", parts.path or "/"


def _status_text(status: int, body: bytes) -> str:
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        said = body.decode(errors="replace").strip() or "unknown"
        return f'an error on the server ("{said}") has prevented the request from succeeding'
    other = f"the server responded with the status code {status} but did not return more information"
    return _STATUS_TEXTS.get(status, other)
