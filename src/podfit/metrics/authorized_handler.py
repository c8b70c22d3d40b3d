"""Authentication and authorization in front of the metrics API; health is open to anybody.

The API server asks with its front proxy's certificate; whether the user may is asked of it again (SubjectAccessReview),
since anybody on the network can come here.
"""

import logging

from msgspec.structs import replace

from podfit.api.authorization.v1.types import NonResourceAttributes, ResourceAttributes
from podfit.api.metrics.v1beta1.types import GROUP, VERSION
from podfit.client.delegated import DelegatedAccess
from podfit.client.front_proxy import FrontProxyAccess
from podfit.core.errors import ApiError
from podfit.metrics.server import MetricsServer
from podfit.metrics.serving import ROOT
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.wire import Request, Response

log = logging.getLogger(__name__)


class Outside:
    def __init__(self, server: MetricsServer, who: FrontProxyAccess, access: DelegatedAccess, metrics: Metrics) -> None:
        self._server, self._who, self._access, self._metrics = server, who, access, metrics

    async def __call__(self, request: Request) -> Response:
        match request.path:
            case "/livez" | "/healthz":
                return _health(self._server.alive, "metric collection did not end within its time")
            case "/readyz":
                return _health(self._server.ready, "no metrics to serve")
        who = await self._who.identify(request)
        if who is None:
            return _text(401, "Unauthorized")
        wanted = _wanted(request)
        try:
            may = await self._access.allowed(who, wanted)
        except (ApiError, ConnectionError) as error:
            log.warning("the API server does not say who may ask user=%s error=%s", who.user, error)
            return _text(500, f"the API server does not say whether {who.user} may: {error}\n")
        if not may:
            return _text(403, f'forbidden: User "{who.user}" cannot {wanted.verb} path "{request.path}"\n')
        if request.path == "/metrics":
            return Response(200, {"content-type": CONTENT_TYPE}, self._metrics.exposition())
        return await self._server.api(replace(request, identity=who))


def _wanted(request: Request) -> ResourceAttributes | NonResourceAttributes:
    parts = request.path.removeprefix(ROOT).strip("/").split("/") if request.path.startswith(f"{ROOT}/") else []
    namespace = ""
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    if not parts:
        return NonResourceAttributes(path=request.path, verb=request.method.lower())
    name = parts[1] if len(parts) > 1 else ""
    verb = ("get" if name else "list") if request.method in ("GET", "HEAD") else request.method.lower()
    return ResourceAttributes(
        verb=verb, group=GROUP, version=VERSION, resource=parts[0], namespace=namespace, name=name
    )


def _health(well: bool, why: str) -> Response:
    return _text(200, "ok") if well else _text(500, f"{why}\n")


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
