"""Kubelet authorization: every request needs a known caller with a right to a subresource of this Node.

    /healthz            nodes/healthz, or nodes/proxy
    /configz            nodes/configz, or nodes/proxy
    /pods               nodes/pods, or nodes/proxy
    /metrics and below  nodes/metrics
    /stats and below    nodes/stats
    /logs and below     nodes/log
    all else            nodes/proxy        /containerLogs/NAMESPACE/POD/CONTAINER too

The verb is that of the method, but `create` for exec, attach and port-forward: a WebSocket begins with a GET, and who
may read a node may not act in its containers for that. Upstream's kubelet asks for `get` there (its API server asks
for `create` since 1.35). Else the rules and the texts are those of upstream's kubelet with the gate
KubeletFineGrainedAuthz, which is on since 1.33.
"""

import logging

from msgspec.structs import replace

from podfit.api.authorization.v1.types import ResourceAttributes
from podfit.client.delegated import DelegatedAccess
from podfit.core.errors import ApiError
from podfit.net.wire import Handler, Request, Response

log = logging.getLogger(__name__)

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_EXACT = (("/metrics", "metrics"), ("/stats", "stats"), ("/logs", "log"), ("/checkpoint", "checkpoint"))
_FINE = (("/healthz", "healthz"), ("/configz", "configz"), ("/pods", "pods"), ("/runningpods", "pods"))
_SESSIONS = ("/exec", "/attach", "/portForward", "/run")
PROXY = "proxy"


def verb_of(method: str, path: str) -> str:
    """The verb of the right that a request needs."""
    return "create" if any(_below(path, prefix) for prefix in _SESSIONS) else _VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """Subresources of the Node: a right to any of them lets a request for the path through."""
    for prefix, name in _EXACT:
        if _below(path, prefix):
            return (name,)
    for prefix, name in _FINE:
        if _below(path, prefix):
            return name, PROXY
    return (PROXY,)


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix + "/")


class NodeAccess:
    """Call it with a request from the network; what may pass reaches `handler` with the identity of who asks."""

    def __init__(self, handler: Handler, access: DelegatedAccess, *, node: str) -> None:
        self._handler = handler
        self._access = access
        self._node = node

    async def __call__(self, request: Request) -> Response:
        who = await self._access.identify(request)
        if who is None:
            return _text(401, "Unauthorized")
        verb, wanted = verb_of(request.method, request.path), subresources(request.path)
        try:
            for subresource in wanted:
                right = ResourceAttributes(
                    verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node
                )
                if await self._access.allowed(who, right):
                    return await self._handler(replace(request, identity=who))
        except (ApiError, ConnectionError) as error:
            log.warning("the API server does not say who may ask user=%s error=%s", who.user, error)
            return _text(
                500, f"Authorization error (user={who.user}, verb={verb}, resource=nodes, subresource={wanted[0]})"
            )
        log.info("refused user=%s verb=%s subresources=%s path=%s", who.user, verb, ",".join(wanted), request.path)
        return _text(
            403, f"Forbidden (user={who.user}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(wanted)}])\n"
        )


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
