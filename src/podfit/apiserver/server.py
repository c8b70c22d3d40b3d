"""The API server: a handler over a store.

    request ─▶ who asks ─▶ may they ─▶ health, discovery, or a verb on a resource

It knows nothing of sockets: `cluster` puts an HTTPS server in front of it, and components in the same process call the
handler directly.
"""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podfit.apiserver.actions import connect
from podfit.apiserver.actions.eviction import evict_pod
from podfit.apiserver.actions.reviews import Reviews
from podfit.apiserver.actions.scale import scale
from podfit.apiserver.actions.token_requests import create_token
from podfit.apiserver.admission.default import default_chain
from podfit.apiserver.admission.webhook_client import WebhookClient
from podfit.apiserver.aggregation import local
from podfit.apiserver.aggregation.table import Aggregation
from podfit.apiserver.audit.log import AuditLog
from podfit.apiserver.audit.trail import Trail
from podfit.apiserver.authn.authenticate import Authenticator, TokenReaders
from podfit.apiserver.authn.bootstrap_tokens import BootstrapTokens
from podfit.apiserver.authn.impersonation import impersonated
from podfit.apiserver.authn.tokens import ServiceAccountTokens
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.question import question_of
from podfit.apiserver.bodies import media_type
from podfit.apiserver.context import Context
from podfit.apiserver.custom.kinds import CustomInfo
from podfit.apiserver.custom.table import CustomTable
from podfit.apiserver.forms import check_form, wanted_form
from podfit.apiserver.housekeeping import own_service
from podfit.apiserver.housekeeping.bootstrap import bootstrap
from podfit.apiserver.housekeeping.janitor import Janitor
from podfit.apiserver.legacy.mode import shown
from podfit.apiserver.pages import discovery
from podfit.apiserver.pages.paths import Pages, not_found_page
from podfit.apiserver.presentation import presented
from podfit.apiserver.request_metrics import RequestMetrics
from podfit.apiserver.seats import Seats
from podfit.apiserver.stored import unavailable
from podfit.apiserver.target import Target, target_of
from podfit.apiserver.verbs.answers import error_response, formed
from podfit.apiserver.verbs.apply import apply
from podfit.apiserver.verbs.change import APPLY_PATCH, patch, update
from podfit.apiserver.verbs.create import create
from podfit.apiserver.verbs.delete import delete, delete_collection
from podfit.apiserver.verbs.options import check_timeout
from podfit.apiserver.verbs.read import get, list_
from podfit.apiserver.verbs.watch import watch
from podfit.apiserver.versions import in_version
from podfit.core.errors import ApiError, bad_request, method_not_allowed, not_found
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)

_READS = {"get": get, "list": list_, "watch": watch}
_WRITES = {"create": create, "delete": delete, "deletecollection": delete_collection}


class ApiServer:
    """`start` before the first request, `stop` after the last. `address` is what discovery tells clients."""

    def __init__(
        self, context: Context, *, signing_key: Path, address: str = "", metrics: Metrics | None = None,
        audit: AuditLog | None = None,
    ) -> None:  # fmt: skip
        self.address = address
        self._audit = audit
        self._context = context
        self._webhooks = WebhookClient(context)
        self._chain = default_chain(context, self._webhooks)
        self._tokens = ServiceAccountTokens(context, signing_key)
        readers = TokenReaders((self._tokens, BootstrapTokens(context)))
        self._authenticator = Authenticator(readers)
        self._authorizer = Authorizer(context)
        self._reviews = Reviews(context, self._authorizer, readers)
        self._janitor = Janitor(context)
        self._customs = CustomTable(context)
        self._aggregation = Aggregation(context, lambda: self._customs.all)
        self._cleaning: asyncio.Task[None] | None = None
        self.metrics = metrics or Metrics()
        self._pages = Pages(context.store, self._tokens, self._customs, self._aggregation, self.metrics)
        self._seats = Seats(context.clock)
        self._requests = RequestMetrics()
        self.ready = False
        self._stopping = False

    def drain(self) -> None:
        """Say on /readyz that the end is near. What is asked is answered until `stop`."""
        self._stopping = True

    async def start(self) -> None:
        await bootstrap(self._context)
        await self._customs.start()
        await self._aggregation.start()
        self._requests.declare(self.metrics, self._seats)
        self._webhooks.metrics.declare(self.metrics)
        self._cleaning = asyncio.create_task(self._janitor.run())
        self.ready = True

    async def publish(self, address: str) -> None:
        """Say in discovery, and in the service `kubernetes`, where this server listens."""
        self.address = address
        await own_service.publish(self._context, address)
        await local.publish(self._context)

    async def stop(self) -> None:
        self.ready = False
        if self._cleaning is not None:
            self._cleaning.cancel()
            await asyncio.gather(self._cleaning, return_exceptions=True)
        await self._aggregation.stop()
        await self._customs.stop()
        await self._webhooks.close()
        if self._audit is not None:
            await self._audit.close()

    async def handler(self, request: Request) -> Response:
        """Every request; refusals become Status objects."""
        target, began = target_of(request, self._customs.find), self._context.clock.monotonic()
        trail = Trail(self._audit, request, target) if self._audit is not None else None
        try:
            response = await self._answer(request, target, trail)
        except ApiError as error:
            response = error_response(error)
        except StoreError as error:
            response = error_response(unavailable(error))
        self._requests.count(target, response.status, self._context.clock.monotonic() - began)
        return await presented(request, trail.answered(response) if trail is not None else response)

    async def _answer(self, request: Request, target: Target | None, trail: Trail | None) -> Response:
        _check_text(request)
        question = question_of(target, request)
        who = await self._authenticator.identify(request)
        if trail is not None:
            trail.known(who)
        identity = await impersonated(who, request, question, self._authorizer)
        if trail is not None:
            trail.acting_as(identity)
        async with self._seats.taken(identity, target, request) as level:
            if target is not None and target.verb == "watch":
                self._seats.check_streams(level, identity)
            await self._authorizer.require(identity, question)
            answer = self._seats.streaming(level, identity, await self._served(request, target, identity))
        return shown(self._context.legacy, target, request, identity, answer)

    async def _served(self, request: Request, target: Target | None, identity: Identity) -> Response:
        if registered := self._aggregation.find(request.path):
            return await self._aggregation.proxy(registered, request, identity)
        if target is None:
            return self._pages.answer(request, ready=self.ready, stopping=self._stopping, address=self.address)
        if target.info is None:
            return _no_such_resource(target, self._customs.all)
        return await self._resource(request, target, identity)

    async def _resource(self, request: Request, target: Target, identity: Identity) -> Response:
        assert target.info is not None
        if target.info.namespaced and target.name and not target.namespace:
            return not_found_page()
        check_timeout(request)
        if target.subresource:
            return await self._subresource(request, target, identity)
        of_one = target.verb not in ("create", "list", "watch", "deletecollection")
        # Upstream takes the name of a new custom resource from its body, whatever the path says.
        placed = target.verb == "watch" or of_one is bool(target.name)
        if target.verb not in target.info.verbs or not (placed or _makes_custom(target)):
            raise method_not_allowed()
        if not target.info.stored:
            return await self._reviews.answer(target, request, identity)
        return self._customs.warned(target.info, await self._verb(request, target, identity))

    async def _subresource(self, request: Request, target: Target, identity: Identity) -> Response:
        sub = target.sub
        if sub is None:
            return _no_such_subresource(target, self._customs.all)
        if target.verb not in sub.verbs:
            raise method_not_allowed()
        match target.subresource:
            case "binding":
                return await connect.bind(self._context, target, request)
            case "log":
                return await connect.pod_log(self._context, target, request)
            case "eviction":
                return await asyncio.shield(evict_pod(self._context, self._chain, target, request, identity))
            case "scale":
                context = self._customs.context(target)
                return await asyncio.shield(scale(context, self._chain, target, request, identity))
            case "proxy":
                return await connect.node_proxy(self._context, target, request)
            case "token":
                return await create_token(self._context, self._tokens, target, request, identity)
        return await self._verb(request, target, identity)

    async def _verb(self, request: Request, target: Target, identity: Identity) -> Response:
        context = in_version(self._customs.context(target), target.info)
        if read := _READS.get(target.verb):
            return await read(context, target, request)
        form = wanted_form(request)
        if target.info is not None and target.verb != "deletecollection":
            check_form(form, target.info, of_list=False)
        if write := self._write(context, request, target, identity):
            # A client that goes away does not undo half a write.
            answer = await asyncio.shield(self._customs.followed(target.info, write))
            return formed(context, target, request, form, answer)
        raise method_not_allowed()

    def _write(
        self, context: Context, request: Request, target: Target, identity: Identity
    ) -> Coroutine[Any, Any, Response] | None:
        chain = self._chain
        if target.verb not in ("update", "patch"):
            write = _WRITES.get(target.verb)
            return write(context, chain, target, request, identity) if write else None
        may_create = partial(self._authorizer.check, identity, replace(target, verb="create"), request)
        if target.verb == "update":
            return update(context, chain, target, request, identity, may_create)
        if media_type(request) == APPLY_PATCH:
            return apply(context, chain, target, request, identity, may_create)
        return patch(context, chain, target, request, identity)


def _makes_custom(target: Target) -> bool:
    return target.verb == "create" and isinstance(target.info, CustomInfo)


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


def _no_such_subresource(target: Target, infos: discovery.Infos) -> Response:
    if isinstance(target.info, CustomInfo):
        return error_response(not_found(target.resource, target.name, group=target.group))
    return _no_such_resource(target, infos)


def _no_such_resource(target: Target, infos: discovery.Infos) -> Response:
    served = target.version in discovery.groups(infos).get(target.group, ())
    if not served:
        return not_found_page()
    return error_response(ApiError(404, "NotFound", "the server could not find the requested resource", {}))
