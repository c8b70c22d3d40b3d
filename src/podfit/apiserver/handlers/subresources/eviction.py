"""POST of an Eviction to a pod: a deletion that asks the disruption budgets first.

decide.workload.disruption ─▶ the budget is charged ─▶ the pod says why it goes ─▶ it is deleted as by DELETE
"""

from functools import partial

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.kinds.policy import EVICTION
from podfit.api.meta.base import Document, Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.api.policy.v1.types import Eviction, PodDisruptionBudget
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.handlers.answers import success, told
from podfit.apiserver.handlers.create import placed
from podfit.apiserver.handlers.delete import remove
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.write_attempts import until_unchanged
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.removal import check_preconditions
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request, forbidden
from podfit.core.times import format_time
from podfit.decide.workload.disruption import Evict, Refuse, Wait, covers, evict
from podfit.net.loop_turns import in_turns
from podfit.net.wire import Identity, Request, Response

_EVICTIONS = ResourceInfo(
    type=Eviction, group="policy", resource="evictions", singular="eviction", verbs=EVICTION.verbs
)
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_LEAVING = ("DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")


async def evict_pod(
    context: Context, chain: Chain, target: RequestInfo, request: Request, identity: Identity
) -> Response:
    """201 when the pod goes, 429 when a budget is in the way for now."""
    info = info_for(Pod)
    eviction, warnings = read_object(request, _EVICTIONS, context.gates)
    eviction = placed(eviction, target)
    if eviction.metadata.name != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    dry = _is_dry(request, eviction.delete_options or DeleteOptions())
    attributes = Attributes(
        operation="CREATE",
        info=info,
        subresource="eviction",
        namespace=target.namespace,
        name=target.name,
        identity=identity,
        dry_run=dry,
    )
    eviction = await chain.mutate(attributes, eviction)
    await chain.validate(attributes, eviction)
    return await told(warnings, _evicted(context, target, eviction.delete_options or DeleteOptions(), dry=dry))


async def _evicted(context: Context, target: RequestInfo, options: DeleteOptions, *, dry: bool) -> Response:
    await until_unchanged(partial(_charge, context, target, options, dry=dry))
    await until_unchanged(partial(_remove, context, target, options, dry=dry))
    return success({}, code=201)


def _is_dry(request: Request, options: DeleteOptions) -> bool:
    """Both places may say so; they may not contradict each other."""
    dry = dry_run(request)
    if dry and options.dry_run and options.dry_run != ("All",):
        raise bad_request("Non-matching dry-run options in request and content")
    return dry or bool(options.dry_run)


async def _charge(context: Context, target: RequestInfo, options: DeleteOptions, *, dry: bool) -> None:
    """Raises 429, 403 or 500 unless the pod may go; its budget is charged."""
    pod = await Stored[Pod](context.store, info_for(Pod)).get(target.namespace, target.name)
    check_preconditions(info_for(Pod), pod, options)
    budgets = await context.all(PodDisruptionBudget, target.namespace)
    covering = await in_turns((budget if covers(budget, pod) else None for budget in budgets), at_once=10)
    verdict = evict(pod, [budget for budget in covering if budget], format_time(context.clock.now()))
    if not isinstance(verdict, Evict):
        raise _refusal(verdict)
    if verdict.budget is not None and not dry:
        expected = int(verdict.budget.metadata.resource_version)
        await Stored[Object](context.store, info_for(PodDisruptionBudget)).update(verdict.budget, expected=expected)


async def _remove(context: Context, target: RequestInfo, options: DeleteOptions, *, dry: bool) -> None:
    """The pod says why it goes, and goes."""
    info = info_for(Pod)
    pods = Stored[Pod](context.store, info)
    record = await pods.record(target.namespace, target.name)
    pod: Pod = stored.decoded(info, record)
    check_preconditions(info, pod, options)
    if not dry:
        record = await pods.update(_told(pod, format_time(context.clock.now())), expected=record.mod_revision)
        pod = stored.decoded(info, record)
    await remove(context, info, pod, record, options, dry=dry)


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
