"""exec, attach and port-forward: a client's connection handed on to the kubelet of the pod's node.

What the client and the kubelet then say to each other passes through unread. The names of the parameters are the API's
on this side and the kubelet's on the other.
"""

from collections.abc import Mapping
from typing import TypeAlias

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
from podfit.net.wire import Request, Response

ConnectOptions: TypeAlias = PodExecOptions | PodAttachOptions | PodPortForwardOptions
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_OF_THE_HANDSHAKE = ("upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol")


async def connect_pod(context: Context, target: RequestInfo, request: Request, options: ConnectOptions) -> Response:
    """Raises ApiError for a pod that runs nowhere, a container that it does not have, and what the kubelet refuses."""
    pod = await Stored[Pod](context.store, info_for(Pod)).get(target.namespace, target.name)
    path, query = _asked(pod, target, options)
    if not pod.spec.node_name:
        raise bad_request(f"pod {target.name} does not have a host assigned")
    if not request.headers.get("upgrade"):
        raise bad_request("Upgrade request required")
    ask = context.kubelet(pod.spec.node_name)
    if ask is None:
        text = f"node {pod.spec.node_name} cannot be reached from this API server"
        raise ApiError(503, "ServiceUnavailable", text)
    shakes = _OF_THE_HANDSHAKE if is_websocket(request) else ()  # another protocol is the kubelet's to refuse
    headers = {name: request.headers[name] for name in shakes if name in request.headers}
    answer = await ask(Request("GET", path, query, headers, identity=KUBELET_CLIENT))
    if answer.upgrade is not None:
        return answer
    text = await refusal_text(answer)
    reasons = {400: "BadRequest", 404: "NotFound", 429: "TooManyRequests"}
    raise ApiError(max(answer.status, 400), reasons.get(answer.status, "InternalError"), text)


def _asked(pod: Pod, target: RequestInfo, options: ConnectOptions) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """Path and query for the kubelet. Raises 400."""
    if has_ended(pod):
        raise bad_request(f"cannot {target.subresource} a completed pod; current phase is {pod.status.phase}")
    where = f"{target.namespace}/{target.name}"
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
    return f"/{target.subresource}/{where}/{container}", query
