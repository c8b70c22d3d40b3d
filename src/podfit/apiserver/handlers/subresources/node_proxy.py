"""Proxy to kubelets: container logs, and the paths of a node."""

from functools import partial

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.aggregate import with_ephemeral
from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import info_for
from podfit.apiserver.context import KUBELET_CLIENT, Context
from podfit.apiserver.handlers.subresources.log_options import log_options
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request
from podfit.net.websocket import READERS, is_websocket, sent_as_messages, shake_hands
from podfit.net.wire import Request, Response

LONGEST_REFUSAL = 64 * 1024
_KEPT = ("accept", "content-type")


async def pod_log(context: Context, request_info: RequestInfo, request: Request) -> Response:
    """A container's log, straight from the node's kubelet."""
    query = log_options(request_info.name, request)
    pod = await Stored[Pod](context.store, info_for(Pod)).get(request_info.namespace, request_info.name)
    container = chosen_container(pod, request.param("container"))
    if not pod.spec.node_name:
        return Response(204, {"content-type": "text/plain"})
    ask = context.kubelet(pod.spec.node_name)
    if ask is None:
        text = f"node {pod.spec.node_name} cannot be reached from this API server"
        raise ApiError(503, "ServiceUnavailable", text)
    path = f"/containerLogs/{request_info.namespace}/{request_info.name}/{container}"
    answer = await ask(Request("GET", path, query, identity=KUBELET_CLIENT))
    if answer.status >= 400:
        text = await refusal_text(answer)
        raise ApiError(answer.status, "BadRequest" if answer.status == 400 else "InternalError", text)
    if is_websocket(request):
        hands = shake_hands(request, READERS)
        return Response(101, hands.headers, upgrade=partial(sent_as_messages, answer.body, hands.protocol))
    return Response(200, {"content-type": "text/plain"}, answer.body)


async def refusal_text(answer: Response) -> str:
    """What the node says; of one that says too much, that it does."""
    try:
        return (await answer.read(LONGEST_REFUSAL)).decode(errors="replace").strip()
    except OSError as error:
        return f"the node refused with {answer.status}: {error}"


async def node_proxy(context: Context, request_info: RequestInfo, request: Request, path: str) -> Response:
    """What the node's kubelet answers to `path`, such as /metrics, whatever the method.

    Sessions (exec and the like) go through their pod: no connection is upgraded here.
    """
    await Stored[Node](context.store, info_for(Node)).get("", request_info.name)
    ask = context.kubelet(request_info.name)
    if ask is None:
        raise ApiError(503, "ServiceUnavailable", f"node {request_info.name} cannot be reached from this API server")
    given = {name: request.headers[name] for name in _KEPT if name in request.headers}
    asked = Request(request.method, "/" + path.lstrip("/"), request.query, given, request.body, identity=KUBELET_CLIENT)
    answer = await ask(asked)
    kind = answer.headers.get("content-type", "text/plain")
    return Response(answer.status, {"content-type": kind}, answer.body)


def chosen_container(pod: Pod, asked: str) -> str:
    """The one that is asked for, or the only one there is. Raises 400."""
    spec = pod.spec
    if asked:
        if asked not in (container.name for container in with_ephemeral(spec)):
            raise bad_request(f"container {asked} is not valid for pod {pod.metadata.name}")
        return asked
    if len(spec.containers) == 1:
        return spec.containers[0].name
    choices = " ".join(container.name for container in spec.containers)
    text = f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{choices}]"
    if spec.init_containers:
        text += f" or one of the init containers: [{' '.join(container.name for container in spec.init_containers)}]"
    raise bad_request(text)
