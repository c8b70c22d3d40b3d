"""One pass over an autoscaler, in the three steps between which its controller reads and writes.

lost(…)                       its scale could not be read
reads_metrics(view) ─▶ read ─▶ propose(view, readings, now) ─▶ scale ─▶ finish(plan, now, failure)
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricStatus
from podfit.decide.autoscaling.horizontal.asked_size import ASKED, CONDITION, is_vertical_first
from podfit.decide.autoscaling.horizontal.conditions import (
    ABLE,
    ACTIVE,
    FALSE,
    LIMITED,
    TRUE,
    ZERO,
    notes,
    said_of_zero,
    stamp,
    with_condition,
    without_condition,
)
from podfit.decide.autoscaling.horizontal.keep_point import ANCHOR, anchored, keeps_point
from podfit.decide.autoscaling.horizontal.lasting import MEMORY, PROPOSALS, news, proposals, remembered, with_last_good
from podfit.decide.autoscaling.horizontal.limits import Wish, limit, remember_change, tolerance_of
from podfit.decide.autoscaling.horizontal.metrics import Computed, Failure, compute
from podfit.decide.autoscaling.horizontal.model import (
    Event,
    Memory,
    Observed,
    Outcome,
    Reading,
    Recommendation,
    Settings,
    View,
)
from podfit.decide.autoscaling.horizontal.replicas import Target
from podfit.decide.autoscaling.horizontal.vertical import SHARED, sized_too
from podfit.decide.autoscaling.horizontal.vertical_first import Grown, grown

UPSTREAM = Settings()
NORMAL, WARNING = "Normal", "Warning"
NONE, UP, DOWN = "none", "scale_up", "scale_down"
INTERNAL, SPEC = "internal", "spec"
_OF_ALL = ("Object", "External")
"""Metrics that are there while nothing runs."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`scale_to` is None where the scale stays. With a `failure` no count came of the metrics."""

    view: View
    status: HorizontalPodAutoscalerStatus
    events: tuple[Event, ...]
    memory: Memory
    observed: tuple[Observed, ...]
    metrics: tuple[MetricStatus, ...] | None
    desired: int
    reason: str = ""
    scale_to: int | None = None
    failure: str = ""
    error: str = ""
    proposals: str = ""
    found: tuple[Computed | Failure, ...] = ()
    """Of each metric of the spec."""
    anchor: str = ""
    asked: str = ""
    """The sizes that are asked for of a VPA."""


def reference(autoscaler: HorizontalPodAutoscaler) -> str:
    target = autoscaler.spec.scale_target_ref
    return f"{target.kind}/{autoscaler.metadata.namespace}/{target.name}"


def group_problem(api_version: str) -> str:
    """What is wrong with an apiVersion, in upstream's words; empty when nothing is."""
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def lost(
    autoscaler: HorizontalPodAutoscaler,
    memory: Memory,
    error: str,
    told: str,
    now: float,
    *,
    in_spec: bool,
    settings: Settings = UPSTREAM,
) -> Outcome:
    """The scale cannot be read; `told` is what the pass says of it."""
    message = f"the HPA controller was unable to get the target's current scale: {error}"
    status = with_condition(autoscaler.status, ABLE, FALSE, "FailedGetScale", message, now)
    events: tuple[Event, ...] = (Event(WARNING, "FailedGetScale", error),)
    if not settings.upstream_compatible:
        status = replace(status, observed_generation=autoscaler.metadata.generation)
        events, memory = news(events, memory)
    return Outcome(status, events, memory, (Observed(NONE, SPEC if in_spec else INTERNAL),), error=told)


def reads_metrics(view: View) -> bool:
    """Whether the metrics are asked for: not of a target that is switched off, or outside of its bounds."""
    spec = view.autoscaler.spec
    if view.replicas == 0:
        return _wakes(view)
    return _least(view) <= view.replicas <= spec.max_replicas


def needs_readings(view: View) -> bool:
    """The same, where the selector is one that metrics can be asked for."""
    return reads_metrics(view) and _selector_problem(view) is None


def first_seen(memory: Memory, replicas: int, now: float) -> Memory:
    """What an autoscaler begins with: the count that there is, so that a new controller does not scale down at once."""
    if memory.recommendations:
        return memory
    return replace(memory, recommendations=(Recommendation(now, replicas),))


def propose(view: View, readings: Sequence[Reading], now: float) -> Plan:
    """`readings` are those of the metrics in the spec, in their order; none are needed unless `needs_readings`."""
    autoscaler, current = view.autoscaler, view.replicas
    status = with_condition(
        autoscaler.status,
        ABLE,
        TRUE,
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
        now,
    )
    if not view.settings.scale_to_zero:
        status = without_condition(status, ZERO)
    if not view.settings.upstream_compatible:
        apart = keeps_point(autoscaler) or is_vertical_first(autoscaler)
        shared = "" if apart else sized_too(autoscaler, view.vpas)
        status = (
            with_condition(status, SHARED, TRUE, "SameResource", shared, now)
            if shared
            else without_condition(status, SHARED)
        )
        if not is_vertical_first(autoscaler):
            status = without_condition(status, CONDITION)
    plan = Plan(
        view=view,
        status=status,
        events=(),
        memory=first_seen(view.memory, current, now),
        observed=(),
        metrics=None,
        desired=current,
    )
    if reads_metrics(view):
        return _measured(plan, readings, now)
    if current == 0:
        off = "scaling is disabled since the replica count of the target is zero"
        return replace(plan, status=with_condition(status, ACTIVE, FALSE, "ScalingDisabled", off, now))
    if current > autoscaler.spec.max_replicas:
        most = autoscaler.spec.max_replicas
        return replace(plan, desired=most, scale_to=most, reason="Current number of replicas above Spec.MaxReplicas")
    least = _least(view)
    return replace(plan, desired=least, scale_to=least, reason="Current number of replicas below Spec.MinReplicas")


def finish(plan: Plan, now: float, failure: str = "") -> Outcome:
    """`failure`: why the scale was not written."""
    outcome, autoscaler = _finished(plan, now, failure), plan.view.autoscaler
    if plan.view.settings.upstream_compatible:
        return outcome
    events, memory = news(outcome.events, outcome.memory)
    before = autoscaler.metadata.annotations
    said = {
        MEMORY: remembered(autoscaler, plan.view.settings, memory, outcome.status.desired_replicas, now),
        PROPOSALS: plan.proposals,
        ANCHOR: plan.anchor,
        ASKED: plan.asked,
    }
    return replace(
        outcome,
        events=events,
        memory=memory,
        status=replace(outcome.status, observed_generation=autoscaler.metadata.generation),
        annotations={name: text for name, text in said.items() if text and text != before.get(name)},
    )


def _finished(plan: Plan, now: float, failure: str) -> Outcome:
    view, status = plan.view, plan.status
    current, desired = view.replicas, plan.desired
    target = reference(view.autoscaler)
    if plan.failure:
        return _stopped(plan, status, plan.failure, ())
    if plan.scale_to is not None and failure:
        message = f"the HPA controller was unable to update the target scale: {failure}"
        status = with_condition(status, ABLE, FALSE, "FailedUpdateScale", message, now)
        text = f"New size: {desired}; reason: {plan.reason}; error: {failure}"
        return _stopped(
            plan, status, f"failed to rescale {target}: {failure}", (Event(WARNING, "FailedRescale", text),)
        )
    events, memory, scaled = plan.events, plan.memory, status.last_scale_time
    if plan.scale_to is not None:
        message = f"the HPA controller was able to update the target scale to {desired}"
        status = with_condition(status, ABLE, TRUE, "SucceededRescale", message, now)
        events += (Event(NORMAL, "SuccessfulRescale", f"New size: {desired}; reason: {plan.reason}"),)
        memory = remember_change(view.autoscaler.spec.behavior, memory, current, desired, now)
        scaled = stamp(now)
        if view.settings.scale_to_zero:
            status = said_of_zero(status, desired, now)
    status = HorizontalPodAutoscalerStatus(
        conditions=status.conditions,
        current_metrics=plan.metrics,
        current_replicas=current,
        desired_replicas=desired,
        last_scale_time=scaled,
    )
    action = UP if desired > current else DOWN if desired < current else NONE
    whole = Observed(action, INTERNAL if plan.error else NONE)
    return Outcome(status, events, memory, (*plan.observed, whole), desired, plan.error)


def _stopped(plan: Plan, status: HorizontalPodAutoscalerStatus, error: str, events: tuple[Event, ...]) -> Outcome:
    """What was wished before stays in the status."""
    status = HorizontalPodAutoscalerStatus(
        conditions=status.conditions,
        current_metrics=plan.metrics,
        current_replicas=plan.view.replicas,
        desired_replicas=status.desired_replicas,
        last_scale_time=status.last_scale_time,
    )
    whole = Observed(NONE, INTERNAL)
    return Outcome(status, plan.events + events, plan.memory, (*plan.observed, whole), error=error)


def _measured(plan: Plan, readings: Sequence[Reading], now: float) -> Plan:
    view, spec = plan.view, plan.view.autoscaler.spec
    if problem := _selector_problem(view):
        reason, event, message = problem
        plan = replace(
            plan,
            status=with_condition(plan.status, ACTIVE, FALSE, *reason, now),
            events=(Event(WARNING, reason[0] if event is None else event, message),),
        )
        return _failed(plan, message)
    target = Target(
        pods=view.pods,
        current=view.replicas,
        reported=view.reported,
        tolerance=tolerance_of(view),
        settings=view.settings,
        now=now,
    )
    namespace = view.autoscaler.metadata.namespace
    points, anchor = anchored(view.autoscaler, view.pods, view.settings)
    measured = [(metric, replace(target, anchor=point)) for metric, point in zip(spec.metrics, points, strict=True)]
    found = [
        compute(metric, one, reading, namespace) for (metric, one), reading in zip(measured, readings, strict=True)
    ]
    failing = [result for result in found if isinstance(result, Failure)]
    if not view.settings.upstream_compatible:
        found, good = with_last_good(measured, readings, found, view, now)
        plan = replace(plan, memory=replace(plan.memory, good=good), proposals=proposals(found), anchor=anchor)
    failures = [result for result in found if isinstance(result, Failure)]
    plan = replace(
        plan,
        found=tuple(found),
        metrics=tuple(result.status if isinstance(result, Computed) else MetricStatus() for result in found),
        events=tuple(Event(WARNING, failure.reason, failure.message) for failure in failing),
        observed=tuple(
            _observed(metric.type, result, view.autoscaler.status.current_replicas)
            for metric, result in zip(spec.metrics, found, strict=True)
        ),
    )
    sized = grown(view, spec.metrics, readings, found, memory=plan.memory, least=_least(view), now=now)
    plan = _with_growth(plan, sized, now)
    best = _best(sized.found)
    error = ""
    if failures:
        error = f"invalid metrics ({len(failures)} invalid out of {len(found)}), first error is: {failures[0].error}"
    if best is None or (failures and best.replicas < view.replicas):
        first = failures[0]
        message = f"the HPA was unable to compute the replica count: {first.message}"
        plan = replace(plan, status=with_condition(plan.status, ACTIVE, FALSE, first.reason, message, now))
        return _failed(plan, error)
    message = f"the HPA was able to successfully calculate a replica count from {best.name}{notes(found)}"
    status = with_condition(plan.status, ACTIVE, TRUE, "ValidMetricFound", message, now)
    return _limited(replace(plan, status=status, error=error), best, now)


def _with_growth(plan: Plan, sized: Grown, now: float) -> Plan:
    status = without_condition(plan.status, CONDITION)
    if sized.text:
        reason = "ReplicasWait" if sized.held else "PodsSized"
        status = with_condition(plan.status, CONDITION, TRUE if sized.held else FALSE, reason, sized.text, now)
    return replace(plan, memory=sized.memory, asked=sized.annotation, status=status)


def _limited(plan: Plan, best: Computed, now: float) -> Plan:
    view, spec = plan.view, plan.view.autoscaler.spec
    current, reason = view.replicas, ""
    if best.replicas > current:
        reason = f"{best.name} above target"
    elif best.replicas < current:
        reason = "All metrics below target"
    wish = Wish(
        current=current,
        desired=max(best.replicas, 0),
        least=_least(view),
        most=spec.max_replicas,
        behavior=spec.behavior,
        window=view.settings.downscale_stabilization,
        now=now,
    )
    limited = limit(wish, plan.memory)
    status = with_condition(plan.status, ABLE, TRUE, limited.held.reason, limited.held.message, now)
    bounded = FALSE if limited.limited.reason == "DesiredWithinRange" else TRUE
    status = with_condition(status, LIMITED, bounded, limited.limited.reason, limited.limited.message, now)
    return replace(
        plan,
        status=status,
        memory=limited.memory,
        desired=limited.replicas,
        reason=reason,
        scale_to=limited.replicas if limited.replicas != current else None,
    )


def _failed(plan: Plan, error: str) -> Plan:
    event = Event(WARNING, "FailedComputeMetricsReplicas", error)
    target = reference(plan.view.autoscaler)
    failure = f"failed to compute desired number of replicas based on listed metrics for {target}: {error}"
    return replace(plan, events=(*plan.events, event), failure=failure)


def _selector_problem(view: View) -> tuple[tuple[str, str], str | None, str] | None:
    """Reason and message of the condition; the event's reason where it is another, and its message."""
    if not view.selector:
        missing = "the HPA target's scale is missing a selector"
        return ("InvalidSelector", missing), "SelectorRequired", "selector is required"
    if view.selector_error:
        text = f"couldn't convert selector into a corresponding internal selector object: {view.selector_error}"
        return ("InvalidSelector", text), None, text
    if len(view.rivals) > 1:
        names = " ".join(sorted(view.rivals))
        text = f"pods by selector {view.selector} are controlled by multiple HPAs: [{names}]"
        return ("AmbiguousSelector", text), None, text
    return None


def _best(found: Iterable[Computed | Failure]) -> Computed | None:
    """The first of those that propose most; of those that propose nothing the last, as upstream has it."""
    best: Computed | None = None
    for result in found:
        if isinstance(result, Computed) and (best is None or best.replicas == 0 or result.replicas > best.replicas):
            best = result
    return best


def _observed(type_: str, result: Computed | Failure, current: int) -> Observed:
    """Upstream compares with the count that the status told before."""
    if isinstance(result, Failure):
        return Observed(NONE, SPEC if result.in_spec else INTERNAL, type_)
    return Observed(UP if result.replicas > current else DOWN if result.replicas < current else NONE, NONE, type_)


def _least(view: View) -> int:
    least = view.autoscaler.spec.min_replicas
    return 1 if least is None else least


def _wakes(view: View) -> bool:
    """A target without replicas is scaled again only if it was the autoscaler that ended the last one."""
    if not view.settings.scale_to_zero:
        return False
    said = next((kept for kept in view.autoscaler.status.conditions if kept.type == ZERO), None)
    return said is not None and said.status == TRUE and (_has_metric_of_all(view) or _least(view) != 0)


def _has_metric_of_all(view: View) -> bool:
    return any(metric.type in _OF_ALL for metric in view.autoscaler.spec.metrics)
