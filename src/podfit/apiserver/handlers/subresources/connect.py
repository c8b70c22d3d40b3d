"""Subresources that do something else than change their object: binding, log, a node's own server."""

from functools import partial

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Binding, Pod, PodCondition
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.handlers.answers import success
from podfit.apiserver.handlers.containers import every_container
from podfit.apiserver.handlers.options import dry_run, whole_number
from podfit.apiserver.handlers.retry import until_unchanged
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import document, typed
from podfit.apiserver.request.target import Target
from podfit.core.errors import ApiError, bad_request, conflict
from podfit.core.fields import invalid, refusal, required, unsupported
from podfit.core.times import format_time
from podfit.net.wire import Identity, Request, Response

KUBELET_CLIENT = Identity("kube-apiserver-kubelet-client")
"""Bound to the cluster role system:kubelet-api-admin. It has no other rights."""
LONGEST_REFUSAL = 64 * 1024
_LOG_OPTIONS = ("follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes")
_LOG_NUMBERS = {"sinceSeconds": 1, "tailLines": 0, "limitBytes": 1}  # and the least of each


async def bind(context: Context, chain: Chain, target: Target, request: Request, identity: Identity) -> Response:
    """Place a pod on a node, once. Admission sees the Binding, as upstream's does."""
    dry = dry_run(request)
    attributes = Attributes(
        operation="CREATE",
        info=info_for(Pod),
        subresource="binding",
        namespace=target.namespace,
        name=target.name,
        identity=identity,
        dry_run=dry,
    )
    binding = await chain.mutate(attributes, typed(document(request)[0], Binding))
    _check_binding(target, binding)
    await chain.validate(attributes, binding)
    return await until_unchanged(partial(_bind_once, context, target, binding, dry=dry))


def _check_binding(target: Target, binding: Binding) -> None:
    if binding.metadata.name and binding.metadata.name != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    errors = [] if binding.target.name else [required("target.name")]
    if binding.target.kind not in ("", "Node"):
        errors.append(unsupported("target.kind", binding.target.kind, ["Node", "<empty>"]))
    if errors:
        raise refusal("Binding", target.name, errors)


async def _bind_once(context: Context, target: Target, binding: Binding, *, dry: bool) -> Response:
    pods = Stored[Pod](context.store, info_for(Pod))
    pod = await pods.get(target.namespace, target.name)
    if binding.metadata.uid and binding.metadata.uid != pod.metadata.uid:
        raise conflict("pods/binding", target.name, "the pod is not the one that was scheduled")
    if pod.metadata.deletion_timestamp:
        raise conflict("pods/binding", target.name, f"pod {target.name} is being deleted, cannot be assigned to a host")
    if pod.spec.node_name:
        raise conflict(
            "pods/binding", target.name, f'pod {target.name} is already assigned to node "{pod.spec.node_name}"'
        )
    if not dry:
        bound = _bound(pod, binding, format_time(context.clock.now()))
        await pods.update(bound, expected=int(pod.metadata.resource_version))
    return success({}, code=201)


def _bound(pod: Pod, binding: Binding, now: str) -> Pod:
    condition = PodCondition(type="PodScheduled", status="True", last_transition_time=now)
    others = tuple(each for each in pod.status.conditions if each.type != "PodScheduled")
    annotations = pod.metadata.annotations | binding.metadata.annotations
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=annotations),
        spec=replace(pod.spec, node_name=binding.target.name),
        status=replace(pod.status, conditions=(*others, condition), nominated_node_name=""),
    )


async def pod_log(context: Context, target: Target, request: Request) -> Response:
    """A container's log, straight from the node's kubelet."""
    pod = await Stored[Pod](context.store, info_for(Pod)).get(target.namespace, target.name)
    container = _container(pod, request.param("container"))
    _check_log_options(target, request)
    if not pod.spec.node_name:
        return Response(204, {"content-type": "text/plain"})
    ask = context.kubelet(pod.spec.node_name)
    if ask is None:
        text = f"node {pod.spec.node_name} cannot be reached from this API server"
        raise ApiError(503, "ServiceUnavailable", text)
    query = {name: request.query[name] for name in _LOG_OPTIONS if name in request.query}
    path = f"/containerLogs/{target.namespace}/{target.name}/{container}"
    answer = await ask(Request("GET", path, query, identity=KUBELET_CLIENT))
    if answer.status >= 400:
        text = await _refusal_text(answer)
        raise ApiError(answer.status, "BadRequest" if answer.status == 400 else "InternalError", text)
    return Response(200, {"content-type": "text/plain"}, answer.body)


async def _refusal_text(answer: Response) -> str:
    """What the node says; of one that says too much, that it does."""
    try:
        return (await answer.read(LONGEST_REFUSAL)).decode(errors="replace").strip()
    except OSError as error:
        return f"the node refused with {answer.status}: {error}"


async def node_proxy(context: Context, target: Target, request: Request) -> Response:
    """What the node's kubelet answers to the rest of the path, such as /metrics; only to be read."""
    await Stored[Node](context.store, info_for(Node)).get("", target.name)
    ask = context.kubelet(target.name)
    if ask is None:
        raise ApiError(503, "ServiceUnavailable", f"node {target.name} cannot be reached from this API server")
    path = "/" + request.path.partition("/proxy")[2].lstrip("/")
    answer = await ask(Request("GET", path, request.query, identity=KUBELET_CLIENT))
    kind = answer.headers.get("content-type", "text/plain")
    return Response(answer.status, {"content-type": kind}, answer.body)


def _check_log_options(target: Target, request: Request) -> None:
    for name, least in _LOG_NUMBERS.items():
        text = request.param(name)
        if text and (number := whole_number(text)) < least:
            errors = [invalid(name, number, f"must be greater than {'or equal to 0' if least == 0 else 0}")]
            raise refusal("PodLogOptions", target.name, errors)


def _container(pod: Pod, asked: str) -> str:
    spec = pod.spec
    if asked:
        if asked not in (each.name for each in every_container(spec)):
            raise bad_request(f"container {asked} is not valid for pod {pod.metadata.name}")
        return asked
    if len(spec.containers) == 1:
        return spec.containers[0].name
    choices = " ".join(each.name for each in spec.containers)
    text = f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{choices}]"
    if spec.init_containers:
        text += f" or one of the init containers: [{' '.join(each.name for each in spec.init_containers)}]"
    raise bad_request(text)
