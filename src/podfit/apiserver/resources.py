"""Handles requests for resources: a verb, through admission, on objects in the store.

Loaded when the first resource is asked for, which is after the server says that it is ready: verbs, admission, defaults
and validation are most of what there is to import.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.component_status import ComponentStatus
from podfit.api.core.v1.pods.types import Binding
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission_chain import default_chain
from podfit.apiserver.authn.authenticate import TokenReaders
from podfit.apiserver.authn.tokens import ServiceAccountTokens
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.backends import Backends
from podfit.apiserver.extensions.customresources.kinds import CustomInfo
from podfit.apiserver.extensions.customresources.table import CustomTable
from podfit.apiserver.extensions.proxies.proxy import Proxy
from podfit.apiserver.extensions.webhooks.client import WebhookClient
from podfit.apiserver.handlers.answers import error_response, formed, not_found_page, told
from podfit.apiserver.handlers.apply import apply
from podfit.apiserver.handlers.change import patch, update
from podfit.apiserver.handlers.component_statuses import component_statuses
from podfit.apiserver.handlers.create import create
from podfit.apiserver.handlers.delete import delete, delete_collection
from podfit.apiserver.handlers.options import check_timeout
from podfit.apiserver.handlers.patching import APPLY_PATCH
from podfit.apiserver.handlers.read import get, list_
from podfit.apiserver.handlers.subresources.binding import bind
from podfit.apiserver.handlers.subresources.connect import Sessions, connect_pod
from podfit.apiserver.handlers.subresources.connecting import admitted
from podfit.apiserver.handlers.subresources.eviction import evict_pod
from podfit.apiserver.handlers.subresources.node_proxy import node_proxy, pod_log
from podfit.apiserver.handlers.subresources.reviews import Reviews
from podfit.apiserver.handlers.subresources.scale import scale
from podfit.apiserver.handlers.subresources.token_requests import create_token
from podfit.apiserver.handlers.uncancelled import uncancelled
from podfit.apiserver.handlers.watch import watch
from podfit.apiserver.http import discovery
from podfit.apiserver.registry.bounded_checks import BoundedChecks
from podfit.apiserver.request import protobuf
from podfit.apiserver.request.bodies import Decoded, media_type
from podfit.apiserver.request.documents import LARGE, is_json
from podfit.apiserver.request.negotiation import JSON, YAML
from podfit.apiserver.request.representations import check_representation, wanted_representation
from podfit.apiserver.request.request_info import RequestInfo
from podfit.apiserver.request.yaml_documents import as_json
from podfit.core.errors import ApiError, method_not_allowed, not_found, unwatched
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity, Request, Response

_READS = {"get": get, "list": list_, "watch": watch}
ACROSS = ("list", "watch")
"""What can be done in all namespaces at once."""
PROXIED_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_WRITES = {"create": create, "delete": delete, "deletecollection": delete_collection}


class Resources:
    """`close` after the last request."""

    def __init__(
        self,
        context: Context,
        customs: CustomTable,
        authorizer: Authorizer,
        *,
        tokens: ServiceAccountTokens,
        readers: TokenReaders,
        metrics: Metrics,
        backends: Backends,
    ) -> None:
        self._context, self._customs, self._authorizer, self._tokens = context, customs, authorizer, tokens
        self._webhooks = WebhookClient(context, backends)
        self._webhooks.metrics.declare(metrics)
        self._chain = default_chain(context, self._webhooks)
        self._proxy = Proxy(context)
        self._sessions = Sessions()
        self._reviews = Reviews(context, authorizer, readers)

    async def close(self) -> None:
        await self._webhooks.close()

    async def answer(self, request: Request, request_info: RequestInfo, identity: Identity) -> Response:
        """Who may not has been refused before."""
        if request_info.info is None:
            return _no_such_resource(request_info, self._customs.all)
        if request_info.by_path and ("watch" not in request_info.info.verbs or request_info.subresource):
            return _no_such_resource(request_info, self._customs.all)
        if not _routed(request_info, request_info.info):
            return not_found_page()
        if request_info.subresource == "proxy" and request_info.sub is not None:
            return await self._proxied(request, request_info, identity)  # method, query and body are the other side's
        _check_method(request, request_info, request_info.info)
        check_timeout(request)
        if len(request.body) >= LARGE:
            request = await _read_beside(request, self._context.checks)
        if request_info.subresource:
            return await self._subresource(request, request_info, identity)
        _check_verb(request_info, request_info.info)
        if request_info.info.type is Binding:
            return await bind(self._context, self._chain, request_info, request, identity)
        if not request_info.info.readable:
            return await self._reviews.answer(request_info, request, identity)
        answer = (
            component_statuses(self._context, request_info, request)
            if request_info.info.type is ComponentStatus
            else self._verb(request, request_info, identity)
        )
        return await (told(texts, answer) if (texts := request_info.info.warnings) else answer)

    async def _proxied(self, request: Request, request_info: RequestInfo, identity: Identity) -> Response:
        if request.method not in PROXIED_METHODS:
            raise method_not_allowed()
        options, warnings = await admitted(self._chain, request_info, request, identity)
        if request_info.resource == "nodes":
            return await told(warnings, node_proxy(self._context, request_info, request, options.path))
        return await told(warnings, self._proxy.answer(request_info, request, identity, options.path))

    async def _subresource(self, request: Request, request_info: RequestInfo, identity: Identity) -> Response:
        if request_info.sub is None:
            return _no_such_subresource(request_info, self._customs.all)
        if request_info.verb not in request_info.sub.verbs:
            raise method_not_allowed()
        return await self._of_subresource(request, request_info, identity)

    async def _of_subresource(self, request: Request, request_info: RequestInfo, identity: Identity) -> Response:
        """By a handler of its own, or read and written as the object itself is, like `status`, and like `resize`, whose
        rules are in `registry/strategies/pods.py`."""
        match request_info.subresource:
            case "binding":
                return await bind(self._context, self._chain, request_info, request, identity)
            case "exec" | "attach" | "portforward":
                if request_info.verb != "create":  # who may only read may not speak to a process
                    await self._authorizer.check(identity, replace(request_info, verb="create"), request)
                options, warnings = await admitted(self._chain, request_info, request, identity)
                answer = connect_pod(self._context, self._sessions, request_info, request, identity.user, options)
                return await told(warnings, answer)
            case "log":
                return await pod_log(self._context, request_info, request)
            case "eviction":
                return await asyncio.shield(evict_pod(self._context, self._chain, request_info, request, identity))
            case "scale":
                context = self._customs.context(request_info)
                return await asyncio.shield(scale(context, self._chain, request_info, request, identity))
            case "token":
                return await create_token(self._context, self._chain, self._tokens, request_info, request, identity)
        return await self._verb(request, request_info, identity)

    async def _verb(self, request: Request, request_info: RequestInfo, identity: Identity) -> Response:
        context = self._customs.context(request_info).in_version(request_info.info)
        if read := _READS.get(request_info.verb):
            return await read(context, request_info, request)
        representation = wanted_representation(request, request_info)
        if request_info.info is not None and request_info.verb != "deletecollection":
            check_representation(representation, request_info.info, of_list=False)
        if write := self._write(context, request, request_info, identity):
            # A client that goes away does not undo half a write; of a collection it ends what was not begun.
            done = self._customs.followed(request_info.info, write)
            answer = await (done if request_info.verb == "deletecollection" else uncancelled(done))
            return formed(context, request_info, request, representation, answer)
        raise method_not_allowed()

    def _write(
        self, context: Context, request: Request, request_info: RequestInfo, identity: Identity
    ) -> Coroutine[Any, Any, Response] | None:
        chain = self._chain
        if request_info.verb not in ("update", "patch"):
            write = _WRITES.get(request_info.verb)
            return write(context, chain, request_info, request, identity) if write else None

        def may_create() -> Awaitable[None]:
            return self._authorizer.check(identity, replace(request_info, verb="create"), request)

        if request_info.verb == "update":
            return update(context, chain, request_info, request, identity, may_create)
        if media_type(request) == APPLY_PATCH:
            return apply(context, chain, request_info, request, identity, may_create)
        return patch(context, chain, request_info, request, identity)


async def _read_beside(request: Request, checks: BoundedChecks) -> Request:
    """Large YAML and protobuf are read beside the event loop; from here on YAML is JSON."""
    kind = media_type(request)
    if kind == protobuf.MEDIA_TYPE and request.method != "PATCH" and request.body.startswith(protobuf.MAGIC):
        return Decoded.of(request, await checks.read(protobuf.decode, request.body))
    if not (kind == YAML or (kind == APPLY_PATCH and not is_json(request.body))):
        return request

    headers = dict(request.headers) | ({"content-type": JSON} if kind == YAML else {})
    return replace(await as_json(request, checks.read), headers=headers)


def _routed(request_info: RequestInfo, info: ResourceInfo) -> bool:
    """Without a namespace there are lists and watches of what is in any, and nothing else."""
    if request_info.namespace or not info.namespaced:
        return True
    if request_info.name:
        return False
    return request_info.verb in ACROSS if isinstance(info, CustomInfo) else "list" in info.verbs


def _check_method(request: Request, request_info: RequestInfo, info: ResourceInfo) -> None:
    """Raises 405 where the path is known but not by this method; HEAD is one that no resource has."""
    across = info.namespaced and not request_info.namespace
    watched_otherwise = request_info.by_path and request.method != "GET"
    if request.method == "HEAD" or watched_otherwise or (across and request_info.verb not in ACROSS):
        raise method_not_allowed()


def _check_verb(request_info: RequestInfo, info: ResourceInfo) -> None:
    """Raises 405 for what cannot be done with the kind, or not with one object or a collection of it."""
    if request_info.verb == "watch" and info.readable and not info.stored:
        raise unwatched(info.resource)
    of_one = request_info.verb not in ("create", "list", "watch", "deletecollection")
    # Upstream takes the name of a new custom resource from its body, whatever the path says.
    placed = request_info.verb == "watch" or of_one is bool(request_info.name)
    if request_info.verb not in info.verbs or not (placed or _makes_custom(request_info)):
        raise method_not_allowed()


def _makes_custom(request_info: RequestInfo) -> bool:
    return request_info.verb == "create" and isinstance(request_info.info, CustomInfo)


def _no_such_subresource(request_info: RequestInfo, infos: discovery.Infos) -> Response:
    if isinstance(request_info.info, CustomInfo):
        return error_response(not_found(request_info.resource, request_info.name, group=request_info.group))
    return _no_such_resource(request_info, infos)


def _no_such_resource(request_info: RequestInfo, infos: discovery.Infos) -> Response:
    served = request_info.version in discovery.groups(infos).get(request_info.group, ())
    if not served:
        return not_found_page()
    return error_response(ApiError(404, "NotFound", "the server could not find the requested resource", {}))
