"""exec, attach and port-forward: a client's connection handed on to the kubelet of the pod's node.

What the client and the kubelet then say to each other passes through unread. The names of the parameters are the API's
on this side and the kubelet's on the other.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from podfit.api.core.v1.connect_options import PodAttachOptions, PodExecOptions, PodPortForwardOptions
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import info_for
from podfit.apiserver.context import KUBELET_CLIENT, Context
from podfit.apiserver.handlers.subresources.node_proxy import chosen_container, refusal_text
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request
from podfit.net.websocket import is_websocket
from podfit.net.wire import Duplex, Request, Response, Upgrade

ConnectOptions: TypeAlias = PodExecOptions | PodAttachOptions | PodPortForwardOptions
MOST_OF_ONE = 200
"""Sessions of one user on one node: a node has 800 for all that come through API servers."""
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_OF_THE_HANDSHAKE = ("upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")


class Sessions:
    """Those that are open through this API server, by user and node."""

    def __init__(self) -> None:
        self._open: Counter[tuple[str, str]] = Counter()

    def begin(self, user: str, node: str) -> None:
        """Counted until `end`, also while the kubelet is asked. Raises 429."""
        if self._open[user, node] >= MOST_OF_ONE:
            text = f"{user} has {MOST_OF_ONE} streams open on node {node}, which is the limit of one user"
            raise ApiError(429, "TooManyRequests", text)
        self._open[user, node] += 1

    def end(self, user: str, node: str) -> None:
        self._open[user, node] -= 1
        if not self._open[user, node]:
            del self._open[user, node]

    async def serve(self, user: str, node: str, upgrade: Upgrade, duplex: Duplex) -> None:
        try:
            await upgrade(duplex)
        finally:
            self.end(user, node)


async def connect_pod(
    context: Context,
    sessions: Sessions,
    request_info: RequestInfo,
    request: Request,
    user: str,
    options: ConnectOptions,
) -> Response:
    """Raises ApiError for a pod that runs nowhere, a container that it does not have, and what the kubelet refuses."""
    pod = await Stored[Pod](context.store, info_for(Pod)).get(request_info.namespace, request_info.name)
    path, query = _asked(pod, request_info, options)
    if not pod.spec.node_name:
        raise bad_request(f"pod {request_info.name} does not have a host assigned")
    if not request.headers.get("upgrade"):
        raise bad_request("Upgrade request required")
    ask = context.kubelet(pod.spec.node_name)
    if ask is None:
        text = f"node {pod.spec.node_name} cannot be reached from this API server"
        raise ApiError(503, "ServiceUnavailable", text)
    shakes = _OF_THE_HANDSHAKE if is_websocket(request) else ()  # another protocol is the kubelet's to refuse
    headers = {name: request.headers[name] for name in shakes if name in request.headers}
    node = pod.spec.node_name
    sessions.begin(user, node)
    upgrade: Upgrade | None = None
    try:
        answer = await ask(Request("GET", path, query, headers, identity=KUBELET_CLIENT))
        upgrade = answer.upgrade
    finally:
        if upgrade is None:
            sessions.end(user, node)
    if upgrade is not None:
        return replace(answer, upgrade=partial(sessions.serve, user, node, upgrade))
    text = await refusal_text(answer)
    reasons = {400: "BadRequest", 404: "NotFound", 429: "TooManyRequests"}
    raise ApiError(max(answer.status, 400), reasons.get(answer.status, "InternalError"), text)


def _asked(pod: Pod, request_info: RequestInfo, options: ConnectOptions) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """Path and query for the kubelet. Raises 400."""
    if has_ended(pod):
        raise bad_request(f"cannot {request_info.subresource} a completed pod; current phase is {pod.status.phase}")
    where = f"{request_info.namespace}/{request_info.name}"
    if isinstance(options, PodPortForwardOptions):
        return f"/portForward/{where}", {}
    container = chosen_container(pod, options.container)
    query: dict[str, tuple[str, ...]] = {ours: ("1",) for name, ours in _STREAMS.items() if getattr(options, name)}
    if not query.keys() - {"tty"}:
        raise bad_request("at least one of stdin, stdout, and stderr is required")
    if isinstance(options, PodExecOptions):
        if not options.command:
            raise bad_request("you must specify at least 1 command")
        query["command"] = options.command
    return f"/{request_info.subresource}/{where}/{container}", query
