"""Conditions of an autoscaler: their types, when their times move, and what is said of metrics."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus
from podfit.core.times import format_time, parse_time, seconds_later
from podfit.decide.autoscaling.horizontal.metrics import Computed, Failure

ABLE, ACTIVE, LIMITED, ZERO = "AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"
TRUE, FALSE = "True", "False"
EPOCH = parse_time("1970-01-01T00:00:00Z")
MOST_NAMED = 3


def with_condition(
    status: HorizontalPodAutoscalerStatus, type_: str, value: str, reason: str, message: str, now: float
) -> HorizontalPodAutoscalerStatus:
    """The status with a condition of that type; its time moves only when its status does."""
    before = next((kept for kept in status.conditions if kept.type == type_), None)
    since = before.last_transition_time if before is not None and before.status == value else stamp(now)
    new = HorizontalPodAutoscalerCondition(
        type=type_, status=value, reason=reason, message=message, last_transition_time=since
    )
    if before is None:
        return replace(status, conditions=(*status.conditions, new))
    return replace(status, conditions=tuple(new if kept.type == type_ else kept for kept in status.conditions))


def without_condition(status: HorizontalPodAutoscalerStatus, type_: str) -> HorizontalPodAutoscalerStatus:
    return replace(status, conditions=tuple(kept for kept in status.conditions if kept.type != type_))


def said_of_zero(status: HorizontalPodAutoscalerStatus, desired: int, now: float) -> HorizontalPodAutoscalerStatus:
    if desired == 0:
        return with_condition(status, ZERO, TRUE, "ScaledToZero", "the HPA controller scaled the workload to zero", now)
    text = "the HPA controller did not scale the workload to zero"
    return with_condition(status, ZERO, FALSE, "NotScaledToZero", text, now)


def notes(found: Iterable[Computed | Failure]) -> str:
    """What a condition says of metrics that were not read as they should be."""
    computed = [result for result in found if isinstance(result, Computed)]
    texts = [
        f"{result.name} is away, its value of {stamp(result.last_good)} counts"
        for result in computed
        if result.last_good is not None
    ]
    for result in computed:
        if result.left_out:
            named = ", ".join(result.left_out[:MOST_NAMED])
            more = f" and {len(result.left_out) - MOST_NAMED} more" if len(result.left_out) > MOST_NAMED else ""
            texts.append(f"left out of {result.name}, for lack of a request: {named}{more}")
    return "".join(f"; {text}" for text in dict.fromkeys(texts))


def stamp(now: float) -> str:
    return format_time(seconds_later(EPOCH, now))
