"""POST of an Eviction to a pod: a deletion that asks the disruption budgets first.

decide.workload.disruption ─▶ the budget is charged ─▶ the pod says why it goes ─▶ it is deleted as by DELETE
"""

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.kinds.policy import EVICTION
from podfit.api.meta.base import Document, Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import success, warning_headers
from podfit.apiserver.handlers.create import placed
from podfit.apiserver.handlers.delete import remove
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.writing import ADMIT, FIND, MUTATE, Step, Steps, Write, again, carried_out
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.removal import check_preconditions
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request, forbidden
from podfit.core.times import format_time
from podfit.decide.workload.disruption import Evict, Refuse, Wait, covers, evict
from podfit.decide.write_stages import Stage
from podfit.net.loop_turns import in_turns
from podfit.net.wire import Identity, Request, Response

_EVICTIONS = ResourceInfo(
    type=Eviction, group="policy", resource="evictions", singular="eviction", verbs=EVICTION.verbs
)
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_LEAVING = ("DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")


async def evict_pod(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    """201 when the pod goes, 429 when a budget is in the way for now."""
    return await carried_out(Write.of("CREATE", context, chain, request_info, request, identity), EVICT)


def _read(write: Write) -> None:
    request_info = write.request_info
    eviction, write.warnings = read_object(write.request, _EVICTIONS)
    write.obj = placed(eviction, request_info)
    if write.obj.metadata.name != request_info.name:
        raise bad_request("name in URL does not match name in Eviction object")
    dry = _is_dry(write.request, _options(write))
    write.identify(name=request_info.name, subresource="eviction", dry=dry)


def _options(write: Write) -> DeleteOptions:
    options: DeleteOptions | None = write.obj.delete_options
    return options or DeleteOptions()


def _is_dry(request: Request, options: DeleteOptions) -> bool:
    """Both places may say so; they may not contradict each other."""
    dry = dry_run(request)
    if dry and options.dry_run and options.dry_run != ("All",):
        raise bad_request("Non-matching dry-run options in request and content")
    return dry or bool(options.dry_run)


def _check_pod(write: Write) -> None:
    check_preconditions(write.info, write.old, _options(write))


async def _charge(write: Write) -> None:
    """Raises 429, 403 or 500 unless the pod may go; its budget is charged."""
    context, pod = write.context, write.old
    budgets = await context.all(PodDisruptionBudget, write.request_info.namespace)
    covering = await in_turns((budget if covers(budget, pod) else None for budget in budgets), at_once=10)
    verdict = evict(pod, [budget for budget in covering if budget], format_time(context.clock.now()))
    if not isinstance(verdict, Evict):
        raise _refusal(verdict)
    if verdict.budget is not None and not write.about.dry_run:
        expected = int(verdict.budget.metadata.resource_version)
        await Stored[Object](context.store, info_for(PodDisruptionBudget)).update(verdict.budget, expected=expected)


async def _remove(write: Write) -> None:
    """The pod says why it goes, and goes."""
    context, info, pod, record, dry = write.context, write.info, write.old, write.found, write.about.dry_run
    if not dry:
        told = _told(pod, format_time(context.clock.now()))
        record = await write.objects.update(told, expected=record.mod_revision)
        pod = stored.decoded(info, record)
    await remove(context, info, pod, record, _options(write), dry=dry)
    write.answer = replace(success({}, code=201), headers=warning_headers(write.said()))


CHECK_POD = Step(Stage.VALIDATE, _check_pod)
EVICT: Steps = (
    Step(Stage.DECODE, _read),
    MUTATE,
    ADMIT,
    again(FIND, CHECK_POD, Step(Stage.CHARGE, _charge)),
    again(FIND, CHECK_POD, Step(Stage.STORE, _remove)),
)


def _told(pod: Pod, now: str) -> Pod:
    """The pod with the reason of its going among its conditions."""
    sort, reason, message = _LEAVING
    condition = PodCondition(type=sort, status="True", reason=reason, message=message, last_transition_time=now)
    others = tuple(condition for condition in pod.status.conditions if condition.type != sort)
    return replace(pod, status=replace(pod.status, conditions=(*others, condition)))


def _refusal(verdict: Wait | Refuse) -> ApiError:
    if isinstance(verdict, Wait):
        details: Document = {"causes": [{"reason": "DisruptionBudget", "message": verdict.cause}]}
        if verdict.retry_after:
            details["retryAfterSeconds"] = verdict.retry_after
        return ApiError(429, "TooManyRequests", _VIOLATED, details)
    if verdict.budget:
        return forbidden("poddisruptionbudget", verdict.budget, verdict.text, group="policy")
    return ApiError(500, "InternalError", verdict.text)
