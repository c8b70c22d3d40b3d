"""What becomes of a wish: it is held back for a while, and bounded by how fast replicas may change.

Without a `behavior` an autoscaler takes the highest wish of the last minutes, and at most doubles. With one, each
direction has its window and its policies.
"""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from podfit.api.autoscaling.v2.types import (
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
)
from podfit.decide.autoscaling.horizontal.model import MOST, Change, Memory, Recommendation, Settings, Tolerance, View

T = TypeVar("T", bound=Change | Recommendation)

DISABLED, LEAST_CHANGE = "Disabled", "Min"
PODS = "Pods"
_DOUBLE, _AT_LEAST = 2, 4


class Reason(msgspec.Struct, frozen=True):
    reason: str
    message: str


READY = Reason("ReadyForNewScale", "recommended size matches current size")
DOWN_HELD = Reason(
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
UP_HELD = Reason(
    "ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"
)
WITHIN = Reason("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_FEW = Reason("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_MANY = Reason("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FAST_UP = Reason("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
TOO_FAST_DOWN = Reason("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """`window` in seconds, for an autoscaler that names none for scaling down."""

    current: int
    desired: int
    least: int
    most: int
    behavior: HorizontalPodAutoscalerBehavior | None
    window: float
    now: float


class Limited(msgspec.Struct, frozen=True):
    replicas: int
    held: Reason
    limited: Reason
    memory: Memory


def longest_window(spec: HorizontalPodAutoscalerSpec, settings: Settings) -> float:
    """Seconds for which a wish counts, in one direction or the other."""
    behavior = spec.behavior or HorizontalPodAutoscalerBehavior()
    up = behavior.scale_up.stabilization_window_seconds if behavior.scale_up is not None else None
    return max(down_window(spec, settings), up or 0.0)


def down_window(spec: HorizontalPodAutoscalerSpec, settings: Settings) -> float:
    """Seconds for which a wish keeps replicas."""
    rules = spec.behavior.scale_down if spec.behavior is not None else None
    window = rules.stabilization_window_seconds if rules is not None else None
    return settings.downscale_stabilization if window is None else window


def limit(wish: Wish, memory: Memory) -> Limited:
    if wish.behavior is None:
        return _as_ever(wish, memory)
    up, down = wish.behavior.scale_up or HPAScalingRules(), wish.behavior.scale_down or HPAScalingRules()
    steady, memory = _steady(wish, up, down, memory)
    held = READY if steady == wish.desired else UP_HELD if wish.desired >= wish.current else DOWN_HELD
    if wish.current == 0 and steady < wish.least:
        return Limited(wish.least, held, TOO_FEW, memory)
    replicas, reason = _at_rate(wish, steady, up, down, memory)
    return Limited(replicas, held, reason, memory)


def remember_change(
    behavior: HorizontalPodAutoscalerBehavior | None, memory: Memory, before: int, after: int, now: float
) -> Memory:
    """Changes count only for policies, so without a behaviour there is nothing to remember."""
    if behavior is None or before == after:
        return memory
    rules = (behavior.scale_up if after > before else behavior.scale_down) or HPAScalingRules()
    longest = max((policy.period_seconds for policy in rules.policies or ()), default=0)
    change = Change(now, abs(after - before))
    if after > before:
        return msgspec.structs.replace(memory, added=_stored(memory.added, change, now - longest))
    return msgspec.structs.replace(memory, removed=_stored(memory.removed, change, now - longest))


def _stored(kept: tuple[T, ...], new: T, oldest: float) -> tuple[T, ...]:
    """In the place of the last one that is too old to count, so that the memory does not grow for ever."""
    place = max((index for index, entry in enumerate(kept) if entry.time < oldest), default=len(kept))
    return (*kept[:place], new, *kept[place + 1 :])


def _as_ever(wish: Wish, memory: Memory) -> Limited:
    oldest = wish.now - wish.window
    recent = (entry.replicas for entry in memory.recommendations if entry.time >= oldest)
    steady = max(recent, default=wish.desired)
    steady = max(steady, wish.desired)
    new = Recommendation(wish.now, wish.desired)
    memory = msgspec.structs.replace(memory, recommendations=_stored(memory.recommendations, new, oldest))
    fastest = max(_DOUBLE * wish.current, _AT_LEAST)
    most, reason = (fastest, TOO_FAST_UP) if wish.most > fastest else (wish.most, TOO_MANY)
    held = READY if steady == wish.desired else DOWN_HELD
    if steady < wish.least:
        return Limited(wish.least, held, TOO_FEW, memory)
    if steady > most:
        return Limited(most, held, reason, memory)
    return Limited(steady, held, WITHIN, memory)


def _steady(wish: Wish, up: HPAScalingRules, down: HPAScalingRules, memory: Memory) -> tuple[int, Memory]:
    """The current count, raised to the least and lowered to the greatest of what was wished in the windows."""
    up_from = wish.now - (up.stabilization_window_seconds or 0)
    window = down.stabilization_window_seconds
    down_from = wish.now - (int(wish.window) if window is None else window)
    kept = memory.recommendations
    least = min((entry.replicas for entry in kept if entry.time > up_from), default=wish.desired)
    most = max((entry.replicas for entry in kept if entry.time > down_from), default=wish.desired)
    steady = min(max(wish.current, min(least, wish.desired)), max(most, wish.desired))
    new = Recommendation(wish.now, wish.desired)
    return steady, msgspec.structs.replace(memory, recommendations=_stored(kept, new, min(up_from, down_from)))


def _at_rate(wish: Wish, steady: int, up: HPAScalingRules, down: HPAScalingRules, memory: Memory) -> tuple[int, Reason]:
    if steady > wish.current:
        fastest = max(_limit(up, wish, memory, _raised, -1), wish.current)
        most, reason = (fastest, TOO_FAST_UP) if wish.most > fastest else (wish.most, TOO_MANY)
        if steady > most:
            return most, reason
    elif steady < wish.current:
        fastest = min(_limit(down, wish, memory, _lowered, 1), wish.current)
        least, reason = (fastest, TOO_FAST_DOWN) if wish.least < fastest else (wish.least, TOO_FEW)
        if steady < least:
            return least, reason
    return steady, WITHIN


def _limit(
    rules: HPAScalingRules, wish: Wish, memory: Memory, apply: Callable[[int, HPAScalingPolicy], int], sign: int
) -> int:
    """`sign` is 1 where the least number is the greatest change."""
    if rules.select_policy == DISABLED:
        return wish.current
    limits = []
    for policy in rules.policies or ():
        since = wish.now - policy.period_seconds
        began = wish.current - _sum(memory.added, since) + _sum(memory.removed, since)
        limits.append(apply(began, policy))
    greatest_change = rules.select_policy != LEAST_CHANGE
    choose = min if greatest_change is (sign > 0) else max
    return min(choose(limits, default=wish.current), MOST)


def _sum(changes: Iterable[Change], since: float) -> int:
    return sum(change.count for change in changes if change.time > since)


def _raised(began: int, policy: HPAScalingPolicy) -> int:
    if policy.type == PODS:
        return began + policy.value
    return math.ceil(began * (1 + policy.value / 100))


def _lowered(began: int, policy: HPAScalingPolicy) -> int:
    if policy.type == PODS:
        return began - policy.value
    return int(began * (1 - policy.value / 100))


def tolerance_of(view: View) -> Tolerance:
    usual, behavior = view.settings.tolerance, view.autoscaler.spec.behavior
    rules = (behavior.scale_up, behavior.scale_down) if behavior is not None else (None, None)
    up, down = (usual if rule is None or rule.tolerance is None else rule.tolerance.nano / 10**9 for rule in rules)
    return Tolerance(up, down)
