"""POST of a Binding, to its pod or by the pod's name: the pod is placed on a node, once."""

from functools import partial

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Binding, Pod, PodCondition
from podfit.api.meta.v1.types import Preconditions
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.handlers.answers import success, told
from podfit.apiserver.handlers.change import check_stored
from podfit.apiserver.handlers.create import placed
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.write_attempts import until_unchanged
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import refusal, required, unsupported
from podfit.core.times import format_time
from podfit.net.wire import Identity, Request, Response

BOUND = success({}, code=201)
_BINDINGS = info_for(Binding)


async def bind(context: Context, chain: Chain, target: RequestInfo, request: Request, identity: Identity) -> Response:
    """Place a pod on a node, once. Admission sees the Binding, as upstream's does. Without a subresource the pod is the
    one of the Binding's name. It is one write, so a client that goes away leaves it whole or not begun."""
    asked, warnings = read_object(request, _BINDINGS, context.gates)
    asked, dry = placed(asked, target), dry_run(request)
    if not target.subresource:
        target = replace(target, name=asked.metadata.name, subresource="binding")
    if not target.name:
        raise bad_request("Name parameter required.")
    attributes = Attributes(
        operation="CREATE",
        info=info_for(Pod),
        subresource="binding",
        namespace=target.namespace,
        name=target.name,
        identity=identity,
        dry_run=dry,
    )
    binding = await chain.mutate(attributes, asked)
    _check_binding(target, binding)
    await chain.validate(attributes, binding)
    return await told(warnings, until_unchanged(partial(_bind_once, context, target, binding, dry=dry)))


def _check_binding(target: RequestInfo, binding: Binding) -> None:
    if binding.metadata.name and binding.metadata.name != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    errors = [] if binding.target.name else [required("target.name")]
    if binding.target.kind not in ("", "Node"):
        errors.append(unsupported("target.kind", binding.target.kind, ["Node", "<empty>"]))
    if errors:
        raise refusal("Binding", target.name, errors)


async def _bind_once(context: Context, target: RequestInfo, binding: Binding, *, dry: bool) -> Response:
    pods: Stored[Pod] = Stored(context.store, info_for(Pod))
    pod = await pods.get(target.namespace, target.name)
    meta = binding.metadata
    meant = Preconditions(uid=meta.uid or None, resource_version=meta.resource_version or None)
    check_stored(info_for(Pod), target, meant, pod.metadata)
    if pod.metadata.deletion_timestamp:
        raise conflict("pods/binding", target.name, f"pod {target.name} is being deleted, cannot be assigned to a host")
    if pod.spec.node_name:
        raise conflict(
            "pods/binding", target.name, f'pod {target.name} is already assigned to node "{pod.spec.node_name}"'
        )
    if pod.spec.scheduling_gates:
        raise conflict("pods/binding", target.name, f"pod {target.name} has non-empty .spec.schedulingGates")
    if not dry:
        bound = _bound(pod, binding, format_time(context.clock.now()))
        await pods.update(bound, expected=int(pod.metadata.resource_version))
    return BOUND


def _bound(pod: Pod, binding: Binding, now: str) -> Pod:
    condition = PodCondition(type="PodScheduled", status="True", last_transition_time=now)
    others = tuple(condition for condition in pod.status.conditions if condition.type != "PodScheduled")
    annotations = pod.metadata.annotations | binding.metadata.annotations
    labels = pod.metadata.labels | binding.metadata.labels
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=annotations, labels=labels),
        spec=replace(pod.spec, node_name=binding.target.name),
        status=replace(pod.status, conditions=(*others, condition), nominated_node_name=""),
    )
