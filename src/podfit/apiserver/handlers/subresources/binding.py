"""POST of a Binding, to its pod or by the pod's name: the pod is placed on a node, once."""

from msgspec.structs import replace

from podfit.api.core.v1.pods.burst import with_ceiling_of
from podfit.api.core.v1.pods.types import Binding, Pod, PodCondition
from podfit.api.meta.v1.types import Preconditions
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import success, warning_headers
from podfit.apiserver.handlers.change import check_stored
from podfit.apiserver.handlers.create import placed
from podfit.apiserver.handlers.writing import ADMIT, FIND, MUTATE, Step, Steps, Write, again, carried_out
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import refusal, required, unsupported
from podfit.core.times import format_time
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response

BOUND = success({}, code=201)
_BINDINGS = info_for(Binding)


async def bind(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    """Place a pod on a node, once. Admission sees the Binding, as upstream's does. Without a subresource the pod is the
    one of the Binding's name. It is one write, so a client that goes away leaves it whole or not begun."""
    return await carried_out(Write.of("CREATE", context, chain, request_info, request, identity), BIND)


def _read(write: Write) -> None:
    asked, write.warnings = read_object(write.request, _BINDINGS)
    write.obj = asked = placed(asked, write.request_info)
    write.info = info_for(Pod)
    if not write.request_info.subresource:
        write.request_info = replace(write.request_info, name=asked.metadata.name, subresource="binding")
    if not write.request_info.name:
        raise bad_request("Name parameter required.")
    write.identify(name=write.request_info.name, subresource="binding")


def _validate(write: Write) -> None:
    binding, name = write.obj, write.request_info.name
    if binding.metadata.name and binding.metadata.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    errors = [] if binding.target.name else [required("target.name")]
    if binding.target.kind not in ("", "Node"):
        errors.append(unsupported("target.kind", binding.target.kind, ["Node", "<empty>"]))
    if errors:
        raise refusal("Binding", name, errors)


def _check_pod(write: Write) -> None:
    """Raises 409 for a pod that nobody may place, or not any more."""
    pod, name, meta = write.old, write.request_info.name, write.obj.metadata
    meant = Preconditions(uid=meta.uid or None, resource_version=meta.resource_version or None)
    check_stored(write.info, write.request_info, meant, pod.metadata)
    if pod.metadata.deletion_timestamp:
        raise conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod.spec.node_name:
        raise conflict("pods/binding", name, f'pod {name} is already assigned to node "{pod.spec.node_name}"')
    if pod.spec.scheduling_gates:
        raise conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


async def _store(write: Write) -> None:
    if not write.about.dry_run:
        bound = _bound(write.old, write.obj, format_time(write.context.clock.now()))
        await write.objects.update(bound, expected=write.found.mod_revision)
    write.answer = replace(BOUND, headers=warning_headers(write.said()))


BIND: Steps = (
    Step(Stage.DECODE, _read),
    MUTATE,
    Step(Stage.VALIDATE, _validate),
    ADMIT,
    again(FIND, Step(Stage.VALIDATE, _check_pod), Step(Stage.STORE, _store)),
)


def _bound(pod: Pod, binding: Binding, now: str) -> Pod:
    condition = PodCondition(type="PodScheduled", status="True", last_transition_time=now)
    others = tuple(condition for condition in pod.status.conditions if condition.type != "PodScheduled")
    annotations = pod.metadata.annotations | binding.metadata.annotations
    labels = pod.metadata.labels | binding.metadata.labels
    return replace(
        pod,
        metadata=with_ceiling_of(pod.metadata, replace(pod.metadata, annotations=annotations, labels=labels)),
        spec=replace(pod.spec, node_name=binding.target.name),
        status=replace(pod.status, conditions=(*others, condition), nominated_node_name=""),
    )
