"""What outlasts a pass: the last good value of each metric, what was told already, and, in annotations, what a new
controller goes on from and what each metric asked for.

The text of an annotation ends at 4 KiB; whoever writes another text into it is not believed about the future.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec
from podfit.api.meta import codec
from podfit.decide.autoscaling.horizontal.limits import longest_window
from podfit.decide.autoscaling.horizontal.metrics import Computed, Failure, compute
from podfit.decide.autoscaling.horizontal.model import (
    MOST_LONG,
    Change,
    Event,
    Good,
    Memory,
    Reading,
    Recommendation,
    Settings,
    Unread,
    View,
)
from podfit.decide.autoscaling.horizontal.replicas import Target

MEMORY, PROPOSALS = "podfit.dev/horizontal-memory", "podfit.dev/horizontal-proposals"
"""Annotations of an autoscaler."""
MOST_BYTES = 4096
MOST_PROPOSALS = 16
REFRESH = 60.0
"""Seconds by which what is written may be older than what is remembered."""
WARNING = "Warning"


class _Text(msgspec.Struct, frozen=True, omit_defaults=True):
    wished: tuple[tuple[float, int], ...] = ()
    added: tuple[tuple[float, int], ...] = ()
    removed: tuple[tuple[float, int], ...] = ()


class _Asked(msgspec.Struct, frozen=True):
    """`amount` in thousandths, of a metric that is one amount; `since` is when it was read, of one that is away."""

    metric: str
    replicas: int | None
    amount: int | msgspec.UnsetType = msgspec.UNSET
    since: float | msgspec.UnsetType = msgspec.UNSET


class _Proposals(msgspec.Struct, frozen=True):
    wanted: int | None
    metrics: tuple[_Asked, ...]


def with_last_good(
    measured: Sequence[tuple[MetricSpec, Target]],
    readings: Sequence[Reading],
    found: Sequence[Computed | Failure],
    view: View,
    now: float,
) -> tuple[list[Computed | Failure], tuple[Good, ...]]:
    """A metric that is not read counts as it was read last, for as long as the settings say. With what is known of each
    after this pass."""
    kept = {good.metric: good for good in view.memory.good if now - good.time <= view.settings.last_good}
    results: list[Computed | Failure] = []
    good: list[Good] = []
    for (metric, target), reading, result in zip(measured, readings, found, strict=True):
        identity = codec.encode(metric)
        last = kept.get(identity)
        if isinstance(result, Computed):
            good.append(Good(identity, now, reading))
        elif isinstance(reading, Unread) and last is not None:
            good.append(last)
            again = compute(metric, target, last.reading, view.autoscaler.metadata.namespace)
            result = replace(again, last_good=last.time) if isinstance(again, Computed) else result
        results.append(result)
    return results, tuple(good)


def news(events: Iterable[Event], memory: Memory) -> tuple[tuple[Event, ...], Memory]:
    """Warnings that the pass before has not told, and whatever was done."""
    events = tuple(events)
    warnings = frozenset(event for event in events if event.type == WARNING)
    return tuple(event for event in events if event not in memory.told), replace(memory, told=warnings)


def restored(autoscaler: HorizontalPodAutoscaler, settings: Settings, now: float) -> Memory:
    """What a controller before this one remembered, as far as a window still holds it; nothing where nobody wrote it,
    or it cannot be read."""
    text, oldest = autoscaler.metadata.annotations.get(MEMORY, ""), now - longest_window(autoscaler.spec, settings)
    if len(text.encode()) > MOST_BYTES:
        return Memory()
    try:
        found = msgspec.json.decode(text or "{}", type=_Text)
    except (msgspec.DecodeError, UnicodeError):
        return Memory()
    return Memory(
        recommendations=tuple(Recommendation(time, count) for time, count in found.wished if oldest <= time <= now),
        added=tuple(Change(time, count) for time, count in found.added if time <= now and count > 0),
        removed=tuple(Change(time, count) for time, count in found.removed if time <= now and count > 0),
    )


def remembered(
    autoscaler: HorizontalPodAutoscaler, settings: Settings, memory: Memory, current: int, now: float
) -> str | None:
    """What the annotation should say; None when what it says is good enough. Of equal wishes the last counts; where
    nothing was wished but what there is, that is known without it."""
    before, oldest = restored(autoscaler, settings, now), now - longest_window(autoscaler.spec, settings)
    wished: dict[int, float] = {}
    for entry in memory.recommendations:
        if entry.time >= oldest:
            wished[entry.replicas] = max(entry.time, wished.get(entry.replicas, entry.time))
    told = {entry.replicas: entry.time for entry in before.recommendations}
    known = {current} if not told else set()
    new = any(time - told.get(count, -math.inf) >= REFRESH for count, time in wished.items() if count not in known)
    changes = (_rounded(memory.added), _rounded(memory.removed)) != (_rounded(before.added), _rounded(before.removed))
    if not new and not changes:
        return None
    recent = sorted((round(time, 1), count) for count, time in wished.items())
    text = _Text(tuple(recent), _rounded(memory.added), _rounded(memory.removed))
    while len(encoded := msgspec.json.encode(text)) > MOST_BYTES:
        text = _Text(*(part[1 + len(part) // 8 :] for part in (text.wished, text.added, text.removed)))
    return encoded.decode()


def _rounded(changes: Iterable[Change]) -> tuple[tuple[float, int], ...]:
    return tuple(sorted((round(change.time, 1), change.count) for change in changes))


def said_good(autoscaler: HorizontalPodAutoscaler, settings: Settings, now: float) -> tuple[Good, ...]:
    """What a controller goes on by while a metric is away that is one amount, as far as its annotation says so; nothing
    where nobody wrote it, or it cannot be read."""
    text = autoscaler.metadata.annotations.get(PROPOSALS, "")
    if len(text.encode()) > MOST_BYTES:
        return ()
    try:
        asked = msgspec.json.decode(text or '{"wanted":null,"metrics":[]}', type=_Proposals).metrics
    except (msgspec.DecodeError, UnicodeError):
        return ()
    return tuple(
        Good(codec.encode(metric), now - settings.sync_period if one.since is msgspec.UNSET else one.since, one.amount)
        for metric, one in zip(autoscaler.spec.metrics, asked, strict=False)
        if one.amount is not msgspec.UNSET and abs(one.amount) <= MOST_LONG
    )


def proposals(found: Sequence[Computed | Failure]) -> str:
    """What each metric asked for, and the most of it before any bound."""
    asked = tuple(map(_asked, found))
    most = max((entry.replicas for entry in asked if entry.replicas is not None), default=None)
    kept = asked[:MOST_PROPOSALS]
    while len(encoded := msgspec.json.encode(_Proposals(most, kept))) > MOST_BYTES:
        kept = kept[:-1]
    return encoded.decode()


def _asked(result: Computed | Failure) -> _Asked:
    if isinstance(result, Failure):
        return _Asked(result.reason, None)
    unset = msgspec.UNSET
    return _Asked(
        result.name,
        result.replicas,
        unset if result.amount is None else result.amount,
        unset if result.last_good is None else round(result.last_good, 1),
    )
