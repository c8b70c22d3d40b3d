"""Authentication and authorization in front of an API that is served by aggregation; health is open to anybody.

The API server asks with its front proxy's certificate; whether the user may is asked of it again (SubjectAccessReview),
since anybody on the network can come here.
"""

import logging
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.authorization.v1.types import NonResourceAttributes, ResourceAttributes
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.base import Object
from podfit.client.delegated import DelegatedAccess
from podfit.client.front_proxy import FrontProxyAccess
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.wire import Handler, Request, Response

log = logging.getLogger(__name__)
Health = Callable[[], str]
"""Why it is not well; empty when it is."""


class AggregatedApi(msgspec.Struct, frozen=True, kw_only=True):
    """`health` by path; `metrics` are those of its process, at /metrics, None where they are told elsewhere."""

    group: str
    version: str
    serve: Handler
    health: Mapping[str, Health] = msgspec.field(default_factory=dict)
    metrics: Metrics | None = None

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}"


class AuthorizedApi:
    def __init__(self, api: AggregatedApi, who: FrontProxyAccess, access: DelegatedAccess) -> None:
        self._api, self._who, self._access = api, who, access

    async def __call__(self, request: Request) -> Response:
        if (health := self._api.health.get(request.path)) is not None:
            why = health()
            return _text(500, f"{why}\n") if why else _text(200, "ok")
        who = await self._who.identify(request)
        if who is None:
            return _text(401, "Unauthorized")
        wanted = self._wanted(request)
        try:
            may = await self._access.allowed(who, wanted)
        except (ApiError, ConnectionError) as error:
            log.warning("the API server does not say who may ask user=%s error=%s", who.user, error)
            return _text(500, f"the API server does not say whether {who.user} may: {error}\n")
        if not may:
            return _text(403, f'forbidden: User "{who.user}" cannot {wanted.verb} path "{request.path}"\n')
        if request.path == "/metrics" and self._api.metrics is not None:
            return Response(200, {"content-type": CONTENT_TYPE}, self._api.metrics.exposition())
        return await self._api.serve(replace(request, identity=who))

    def _wanted(self, request: Request) -> ResourceAttributes | NonResourceAttributes:
        root = f"{self._api.root}/"
        parts = request.path.removeprefix(root).strip("/").split("/") if request.path.startswith(root) else []
        namespace = ""
        if parts[:1] == ["namespaces"] and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        if not parts or not parts[0]:
            return NonResourceAttributes(path=request.path, verb=request.method.lower())
        name = parts[1] if len(parts) > 1 else ""
        return ResourceAttributes(
            verb=_verb(request.method, name),
            group=self._api.group,
            version=self._api.version,
            resource=parts[0],
            namespace=namespace,
            name=name,
        )


async def register(client: Client, obj: Object) -> None:
    """Make one of the objects that lead to such an API. Where it is, is told anew; what somebody changed of the others
    stays. Raises ApiError.
    """
    try:
        await client.create(obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        if isinstance(obj, EndpointSlice):
            await client.update(obj)


def _verb(method: str, name: str) -> str:
    match method:
        case "GET" | "HEAD":
            return "get" if name else "list"
        case "POST":
            return "create"
    return method.lower()


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
