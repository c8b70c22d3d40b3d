"""The API server: authentication, flow control and authorization around the handlers.

    request ─▶ who asks ─▶ may they ─▶ health, discovery, or a verb on a resource

It knows nothing of sockets: `process` puts an HTTPS server in front of it, and components in the same process call the
handler directly.
"""

import logging
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podfit.apiserver import deferred
from podfit.apiserver.authn.authenticate import ANONYMOUS, Authenticator, TokenReaders
from podfit.apiserver.authn.bootstrap_tokens import BootstrapTokens
from podfit.apiserver.authn.impersonation import asks_for_another, impersonated
from podfit.apiserver.authn.tokens import ServiceAccountTokens
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.question import question_of
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.aggregation import local
from podfit.apiserver.extensions.aggregation.table import Aggregation
from podfit.apiserver.extensions.audit.trail import Trail
from podfit.apiserver.extensions.backends import Backends
from podfit.apiserver.extensions.customresources.table import CustomTable
from podfit.apiserver.extensions.legacy.mode import in_legacy_form
from podfit.apiserver.handlers.answers import error_response
from podfit.apiserver.handlers.presentation import presented
from podfit.apiserver.housekeeping import extension_authentication, own_service
from podfit.apiserver.housekeeping.bootstrap import bootstrap
from podfit.apiserver.housekeeping.compaction import Compaction
from podfit.apiserver.housekeeping.extension_authentication import FrontProxy
from podfit.apiserver.housekeeping.server_leases import Servers
from podfit.apiserver.http.flow_control import FlowControl
from podfit.apiserver.http.request_metrics import RequestMetrics
from podfit.apiserver.paths import Pages
from podfit.apiserver.registry.stored import unavailable
from podfit.apiserver.request.request_info import RequestInfo, request_info_of
from podfit.core.errors import ApiError, bad_request
from podfit.core.randomness import Random
from podfit.net.metrics import Metrics
from podfit.net.websocket import is_websocket
from podfit.net.wire import SMALL_BODY, Identity, Request, Response
from podfit.store.protocol import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from podfit.apiserver.extensions.audit.log import AuditLog
    from podfit.apiserver.resources import Resources

log = logging.getLogger(__name__)
PUBLISH_SECONDS = 10.0
"""Between tries to publish where the server listens."""


class ApiServer:
    """`start` before the first request, `stop` after the last. `address` is what discovery tells clients; `shared` is a
    store on which there may be other servers. With `ask_later` those who serve other group versions are not asked
    whether they are there before `ask_backends`.
    """

    def __init__(
        self,
        context: Context,
        *,
        signing_key: Path,
        address: str = "",
        metrics: Metrics | None = None,
        audit: "AuditLog | None" = None,
        front_proxy: FrontProxy | None = None,
        shared: bool = False,
        ask_later: bool = False,
    ) -> None:
        self.address = address
        self._audit = audit
        if audit is not None:
            context.supervisor.watch(audit.supervisor)
        self._context = context
        self._tokens = ServiceAccountTokens(context, signing_key)
        self._readers = TokenReaders((self._tokens, BootstrapTokens(context)))
        self._authenticator = Authenticator(self._readers)
        self._authorizer = Authorizer(context)
        self._compaction = Compaction(context)
        self._customs = CustomTable(context)
        self._reached: Backends | None = None
        self._front_proxy, self._shared, self._ask_later = front_proxy, shared, ask_later
        self._servers: Servers | None = None
        self._aggregation = Aggregation(context, lambda: self._customs.all, self._backends, front_proxy)
        self.metrics = metrics or Metrics()
        self._pages = Pages(
            store=context.store,
            tokens=self._tokens,
            customs=self._customs,
            aggregation=self._aggregation,
            metrics=self.metrics,
            clock=context.clock,
            supervisor=context.supervisor,
        )
        self._flow_control = FlowControl(context.clock)
        self._requests = RequestMetrics()
        self.ready = False
        self._stopping = False
        self._loaded: Resources | None = None

    def drain(self) -> None:
        """Say on /readyz that the end is near. What is asked is answered until `stop`."""
        self._stopping = True

    async def start(self) -> None:
        await bootstrap(self._context)
        await self._customs.start()
        await self._aggregation.start(ask=not self._ask_later)
        self._requests.declare(self.metrics, self._flow_control)
        self._context.supervisor.run(self._compaction.run(), name="compaction")
        self.ready = True

    async def publish(self, address: str) -> None:
        """Say in discovery, and in the service `kubernetes`, where this server listens; by and by where the disk is
        full, since a server has to start for somebody to free it."""
        self.address = address
        place = _place(address)
        try:
            await self._publish(place)
        except StoreUnavailable as error:
            if self._shared:
                raise
            log.warning("where this server listens is not published yet address=%s error=%s", address, error)
            self._context.supervisor.run(self._publish_by_and_by(place), name="own service")

    async def _publish_by_and_by(self, place: str) -> None:
        while True:
            await self._context.clock.sleep(PUBLISH_SECONDS)
            with suppress(StoreUnavailable):
                return await self._publish(place)

    async def _publish(self, place: str) -> None:
        await own_service.publish(self._context, own_service.split(place)[1])
        if self._shared:
            self._servers = Servers(self._context, place)
            await self._servers.begin()
        else:
            await own_service.lead_to(self._context, (place,))
        if self._front_proxy is not None:
            await extension_authentication.publish(self._context, self._front_proxy)
        await local.publish(self._context)

    async def ask_backends(self) -> None:
        """Look which of those who serve other group versions answer."""
        await self._aggregation.refresh()

    async def withdraw(self) -> None:
        """Tell nobody any more that this server is there."""
        if self._servers is not None:
            await self._servers.end()

    async def stop(self) -> None:
        self.ready = False
        await self.withdraw()
        await self._context.supervisor.stop()
        self._context.checks.close()
        if self._loaded is not None:
            await self._loaded.close()
        if self._reached is not None:
            await self._reached.close()
        if self._audit is not None:
            await self._audit.close()

    async def identify(self, request: Request) -> str:
        """Who sends a request, before its body is read; empty for nobody. Raises 401 for wrong credentials."""
        who = await self._authenticator.identify(request)
        return "" if who is ANONYMOUS else who.user

    async def handler(self, request: Request) -> Response:
        """Every request; refusals become Status objects."""
        request_info, began = request_info_of(request, self._customs.find), self._context.clock.monotonic()
        trail = _trail(self._audit, request, request_info, self._context.random) if self._audit is not None else None
        try:
            if trail is None:
                response = await self._answer(request, request_info, trail)
            else:
                with trail.annotated():
                    response = await self._answer(request, request_info, trail)
        except ApiError as error:
            response = error_response(error)
        except StoreError as error:
            response = error_response(unavailable(error))
        self._requests.count(request_info, response.status, self._context.clock.monotonic() - began)
        return await presented(request, trail.answered(response) if trail is not None else response)

    async def _answer(self, request: Request, request_info: RequestInfo | None, trail: "Trail | None") -> Response:
        _check_text(request)
        question = question_of(request_info, request)
        who = await self._authenticator.identify(request)
        if request.caller is not None and who is not ANONYMOUS:
            request.caller.belongs_to(who.user)
        if trail is not None:
            trail.known(who)
        if request_info is not None and (reached := self._context.store.catch_up()) is not None:
            await reached  # health and discovery answer without the store
        identity = who
        if asks_for_another(request):
            identity = await impersonated(who, request, question, self._authorizer)
        if trail is not None:
            trail.acting_as(identity)
        async with self._flow_control.taken(identity, request_info, request) as seat:
            streams = request_info is not None and (request_info.verb == "watch" or request_info.subresource == "proxy")
            if streams or is_websocket(request):
                self._flow_control.check_streams(seat.level, identity)
            await self._authorizer.require(identity, question)
            if request.unread:
                raise _too_large_of_nobody()
            answer = self._flow_control.streaming(seat, identity, await self._served(request, request_info, identity))
        return in_legacy_form(self._context.legacy, request_info, request, identity, answer)

    async def _served(self, request: Request, request_info: RequestInfo | None, identity: Identity) -> Response:
        if registered := self._aggregation.find(request.path):
            return await self._aggregation.proxy(registered, request, identity)
        if request_info is None:
            page = partial(self._pages.answer, ready=self.ready, stopping=self._stopping, address=self.address)
            if request.path.startswith("/openapi/"):  # as much work as there are definitions
                return await self._context.checks.beside(page, request)
            return page(request)
        return await self._resources().answer(request, request_info, identity)

    def _backends(self) -> "Backends":
        """One for webhooks and APIServices; made for the first of either."""
        if self._reached is None:
            self._reached = Backends(self._context)
        return self._reached

    def _resources(self) -> "Resources":
        if self._loaded is None:
            self._loaded = deferred.resources()(
                self._context,
                self._customs,
                self._authorizer,
                tokens=self._tokens,
                readers=self._readers,
                metrics=self.metrics,
                backends=self._backends(),
            )
        return self._loaded


def _place(address: str) -> str:
    """HOST:PORT of a URL."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    return f"[{host}]:{parts.port or 443}" if ":" in host else f"{host}:{parts.port or 443}"


def _trail(log: "AuditLog", request: Request, request_info: RequestInfo | None, random: Random) -> "Trail":
    return Trail(log, request, request_info, random)


def _check_text(request: Request) -> None:
    """Raises 400 for what no answer could quote: bytes that are not UTF-8 arrive as lone surrogates."""
    if not request.query and request.path.isascii() and request.headers.get("content-type", "").isascii():
        return
    texts = (request.path, request.headers.get("content-type", ""), *chain.from_iterable(request.query.values()))
    if all(map(str.isascii, texts)):
        return
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise bad_request("the request's path, query or content type is not valid UTF-8") from None


def _too_large_of_nobody() -> ApiError:
    text = f"Request entity is too large: limit is {SMALL_BODY} without authentication"
    return ApiError(413, "RequestEntityTooLarge", text)
