"""Paths without resources: health, version, metrics, OpenID keys, and discovery.

No page needs a resource or a verb; who may read one was decided before.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from podfit.api.meta.base import Document
from podfit.api.structural.custom import is_custom
from podfit.apiserver import deferred
from podfit.apiserver.authn.tokens import ALGORITHM, ISSUER, ServiceAccountTokens
from podfit.apiserver.extensions.aggregation import discovery as remote
from podfit.apiserver.extensions.aggregation.table import Aggregation
from podfit.apiserver.extensions.customresources.table import CustomTable
from podfit.apiserver.handlers.answers import not_found_page
from podfit.apiserver.http import discovery
from podfit.apiserver.http.health import health
from podfit.apiserver.http.write_probe import WriteProbe
from podfit.apiserver.request.negotiation import accepts, negotiated
from podfit.apiserver.request.representations import DISCOVERY, KINDS, NONE, TYPES, unknown_types
from podfit.core.clock import Clock
from podfit.core.errors import ApiError, method_not_allowed
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Request, Response
from podfit.store.protocol import Store


class Pages:
    def __init__(
        self,
        *,
        store: Store,
        tokens: ServiceAccountTokens,
        customs: CustomTable,
        aggregation: Aggregation,
        metrics: Metrics,
        clock: Clock,
        supervisor: Supervisor,
    ) -> None:
        self._write_probe = WriteProbe(store, clock, supervisor)
        self._store, self._tokens, self._metrics = store, tokens, metrics
        self._customs, self._aggregation = customs, aggregation

    def answer(self, request: Request, *, ready: bool, stopping: bool, address: str) -> Response:
        """`address` is where clients find this server."""
        path = request.path.rstrip("/") or "/"
        stored, problem = self._store.healthy, self._write_probe.problem() if path.startswith("/readyz") else ""
        # Upstream answers for these paths whatever the method.
        if page := health(path, request, ready=ready, stored=stored, problem=problem, stopping=stopping):
            return page
        if path.startswith("/openapi/") and (page := self._openapi(path, request)):
            return page
        if path == "/metrics":
            return Response(200, {"content-type": CONTENT_TYPE}, self._metrics.exposition())
        if path == "/":
            return _json(discovery.root_paths(self._customs.all))
        if request.method != "GET" and not self._only_read(path):
            return not_found_page()
        if request.method != "GET":
            raise method_not_allowed()
        if path == "/version":
            return _json(discovery.version())
        if path == discovery.JWKS:
            keys = msgspec.json.encode(self._tokens.public_keys())
            return Response(200, {"content-type": "application/jwk-set+json"}, keys)
        found = self._discovery(path, request, address)
        if found is None and self._is_of_api(path):
            raise ApiError(404, "NotFound", "the server could not find the requested resource", {})
        return _found(request, found) if found is not None else not_found_page()

    def _only_read(self, path: str) -> bool:
        """Whether there is a page that knows no method but GET."""
        parts = path.strip("/").split("/")
        if path in ("/version", discovery.JWKS, discovery.OPENID) or parts in (["api"], ["apis"]):
            return True
        return self._is_of_api(path) or (parts[0] == "apis" and self._discovery_of(parts) is not None)

    def _discovery_of(self, parts: list[str]) -> Document | None:
        infos = self._customs.all
        return discovery.api_group(infos, parts[1]) or self._other_group(parts[1])

    def _is_of_api(self, path: str) -> bool:
        """Whether clients of the API look for the page: a version of what is served."""
        match path.strip("/").split("/"):
            case ["api", _]:
                return True
            case ["apis", group, _]:
                return discovery.api_group(self._customs.all, group) is not None
        return False

    def _openapi(self, path: str, request: Request) -> Response | None:
        return deferred.openapi(path, request, self._customs.all)

    def _discovery(self, path: str, request: Request, address: str) -> Document | None:
        if path == discovery.OPENID:
            return discovery.openid(ISSUER, ALGORITHM, address)
        parts, infos = path.strip("/").split("/"), self._customs.all
        aggregated = _asks(request, aggregated=len(parts) == 1, routed=_is_routed(parts, infos))
        match parts:
            case ["api"]:
                return discovery.aggregated(infos, core=True) if aggregated else discovery.api_versions(infos, address)
            case ["apis"]:
                return self._groups(infos, aggregated=aggregated)
            case ["api", version]:
                return discovery.resource_list(infos, "", version)
            case ["apis", group]:
                return discovery.api_group(infos, group) or self._other_group(group)
            case ["apis", group, version]:
                return discovery.resource_list(infos, group, version)
        return None

    def _groups(self, infos: discovery.Infos, *, aggregated: bool) -> Document:
        """Every group, those that others serve last."""
        others = self._aggregation.groups().items()
        if aggregated:
            page = discovery.aggregated(infos, core=False)
            items = [remote.aggregated(name, services, self._aggregation.lists) for name, services in others]
            return page | {"items": [*page["items"], *items]}
        page = discovery.api_groups(infos)
        return page | {"groups": [*page["groups"], *(remote.group(name, services) for name, services in others)]}

    def _other_group(self, name: str) -> Document | None:
        versions = self._aggregation.groups().get(name)
        return {"kind": "APIGroup", "apiVersion": "v1", **remote.group(name, versions)} if versions else None


def _is_routed(parts: list[str], infos: discovery.Infos) -> bool:
    """Whether the page is of upstream's API server itself, and not of what others declare or register."""
    match parts:
        case ["api", *_]:
            return True
        case ["apis", group, _]:
            return not any(is_custom(info.type) for info in infos if info.group == group)
    return False


def _asks(request: Request, *, aggregated: bool, routed: bool) -> bool:
    """Whether the best of the forms that the client takes is the aggregated one, where the page has that.

    `routed`: whether its route looks at the media types first, as upstream's.
    """
    accept = request.headers.get("accept", "")
    if routed and not accepts(accept, TYPES):
        raise ApiError(406, "NotAcceptable", unknown_types(many=False), {})

    def form(_kind: str, parameters: Mapping[str, str]) -> bool | None:
        asked = tuple(parameters.get(name) for name in ("g", "v", "as"))
        if asked == (None, None, None):
            return False
        return True if aggregated and asked == (DISCOVERY, "v2", "APIGroupDiscoveryList") else None

    found = negotiated(accept, KINDS, form)
    if found is None:
        raise ApiError(406, "NotAcceptable", NONE)
    return found


def _found(request: Request, page: Document) -> Response:
    """The page; of all groups at once with a hash, so that a client can keep it."""
    if page.get("kind") != "APIGroupDiscoveryList":
        return _json(page)
    body = msgspec.json.encode(page)
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(304, {"etag": tag, "vary": "Accept"})
    kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    return Response(200, {"content-type": kind, "etag": tag, "vary": "Accept"}, body)


def _json(body: Document) -> Response:
    return Response(200, {"content-type": "application/json"}, msgspec.json.encode(body))
