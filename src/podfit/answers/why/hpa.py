"""Explains what an HPA does next: reads what its controller would read, and asks the controller's own decision.

scale, pods, readings, memory ──propose──▶ each metric's wish ──windows, limits──▶ replicas, and who acts
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.rights import by_rights
from podfit.answers.why.hpa_facts import HpaFacts
from podfit.api.autoscaling.v2.types import MetricSpec, MetricStatus, MetricTarget, MetricValueStatus
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.horizontal.asked_size import CONDITION
from podfit.decide.autoscaling.horizontal.conditions import ABLE, LIMITED, TRUE, stamp
from podfit.decide.autoscaling.horizontal.lasting import REFRESH
from podfit.decide.autoscaling.horizontal.limits import DOWN_HELD, UP_HELD, tolerance_of
from podfit.decide.autoscaling.horizontal.metrics import Computed, Failure
from podfit.decide.autoscaling.horizontal.model import Outcome
from podfit.decide.autoscaling.horizontal.passing import Plan, finish, lost, propose, reads_metrics
from podfit.decide.autoscaling.horizontal.vertical import SHARED


class MetricWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`ratio` is what is to what should be; `wants` are replicas, None where the metric fails, which `failure` says."""

    metric: str
    current: str = ""
    target: str = ""
    ratio: float | None = None
    wants: int | None = None
    failure: str = ""


class HpaWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`replicas` there are, `next` there will be after the controller's next pass, or `then` where that pass comes when
    what was wished before counts no longer; `wanted` is the most that a metric asks for before any bound. `held` and
    `limited` say what stands between the two, `changes` what would move it.
    """

    hpa: str
    namespace: str
    target: str
    least: int
    most: int
    replicas: int | None = None
    wanted: int | None = None
    next: int | None = None
    then: int | None = None
    metrics: tuple[MetricWhy, ...] = ()
    active: str = ""
    held: str = ""
    limited: str = ""
    changes: tuple[str, ...] = ()
    acts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether a count comes of it, and nothing bounds what is wanted."""
        return self.next is not None and not self.limited


def decided(facts: HpaFacts) -> tuple[Plan | None, Outcome]:
    """What the controller's next pass decides of these facts, taken for carried out."""
    if facts.view is None:
        return None, lost(facts.autoscaler, facts.memory, facts.problem, facts.problem, facts.now, in_spec=False)
    plan = propose(facts.view, facts.readings, facts.now)
    return plan, finish(plan, facts.now)


def why_hpa(facts: HpaFacts) -> HpaWhy:
    autoscaler, (plan, outcome) = facts.autoscaler, decided(facts)
    spec, ref = autoscaler.spec, autoscaler.spec.scale_target_ref
    answer = HpaWhy(
        hpa=autoscaler.metadata.name,
        namespace=autoscaler.metadata.namespace,
        target=f"{ref.kind.lower()}/{ref.name}",
        least=1 if spec.min_replicas is None else spec.min_replicas,
        most=spec.max_replicas,
        notes=tuple(_notes(facts, outcome)),
    )
    if plan is None:
        return replace(answer, active=_said(outcome, ABLE), acts=("nobody: the target's scale cannot be read",))
    said = {condition.type: condition for condition in plan.status.conditions}
    wanted = max((result.replicas for result in plan.found if isinstance(result, Computed)), default=None)
    limited = said.get(LIMITED)
    next_ = None if plan.failure else plan.desired
    then = _then(plan, facts)
    return replace(
        answer,
        replicas=plan.view.replicas,
        wanted=wanted,
        next=next_,
        then=then,
        metrics=tuple(map(_metric, autoscaler.spec.metrics, plan.found)) if plan.found else (),
        active=_said(outcome, "ScalingActive"),
        held=_held(plan),
        limited=limited.message if plan.found and not plan.failure and limited and limited.status == TRUE else "",
        changes=tuple(_changes(plan)),
        acts=tuple(_acts(plan, facts, answer.target, then)),
    )


def _then(plan: Plan, facts: HpaFacts) -> int | None:
    """What the pass makes of it at the latest that it comes, if that is something else."""
    assert facts.view is not None, "there is no plan without a view"
    later = propose(facts.view, facts.readings, facts.now + facts.settings.sync_period)
    if plan.failure:
        return None
    then = plan.view.replicas if later.failure else later.desired
    return None if then == plan.desired else then


def _said(outcome: Outcome, type_: str) -> str:
    found = next((condition for condition in outcome.status.conditions if condition.type == type_), None)
    return f"{found.reason}: {found.message}" if found is not None else ""


def _metric(spec: MetricSpec, result: Computed | Failure) -> MetricWhy:
    target = _target(spec)
    should = _target_text(target)
    if isinstance(result, Failure):
        return MetricWhy(metric=_name(spec), target=should, failure=result.message)
    current = _current(result.status)
    if target.average_utilization is not None and current is not None and current.average_utilization is not None:
        what = f"{current.average_utilization} %"
        ratio: float | None = current.average_utilization / target.average_utilization
        if result.followed is not None:
            should, ratio = f"{result.followed.percent:.4g} %", result.followed.ratio
    else:
        amount = (current.value or current.average_value) if current is not None else None
        wish = target.value if current is not None and current.value is not None else target.average_value
        what = str(amount) if amount is not None else ""
        ratio = amount.nano / wish.nano if amount is not None and wish else None
    rounded = None if ratio is None else round(ratio, 3)
    return MetricWhy(metric=result.name, current=what, target=should, ratio=rounded, wants=result.replicas)


def _source(spec: MetricSpec) -> tuple[str, MetricTarget]:
    match spec:
        case MetricSpec(resource=source) if source is not None:
            return f"{source.name} resource", source.target
        case MetricSpec(container_resource=of) if of is not None:
            return f"{of.name} of container {of.container}", of.target
        case MetricSpec(pods=pods) if pods is not None:
            return f"pods metric {pods.metric.name}", pods.target
        case MetricSpec(object=described) if described is not None:
            return f"{described.described_object.kind} metric {described.metric.name}", described.target
        case MetricSpec(external=external) if external is not None:
            return f"external metric {external.metric.name}", external.target
        case _:
            return spec.type, MetricTarget()


def _name(spec: MetricSpec) -> str:
    return _source(spec)[0]


def _target(spec: MetricSpec) -> MetricTarget:
    return _source(spec)[1]


def _target_text(target: MetricTarget) -> str:
    if target.average_utilization is not None:
        return f"{target.average_utilization} %"
    amount: Quantity | None = target.average_value if target.average_value is not None else target.value
    return "" if amount is None else f"{amount}{' each' if target.average_value is not None else ''}"


def _current(status: MetricStatus) -> MetricValueStatus | None:
    for part in (status.resource, status.container_resource, status.pods, status.object, status.external):
        if part is not None:
            return part.current
    return None


def _held(plan: Plan) -> str:
    if not plan.found or plan.failure:
        return ""
    able = next((said for said in plan.status.conditions if said.type == ABLE), None)
    if able is None or able.reason not in (DOWN_HELD.reason, UP_HELD.reason):
        return ""
    window = _window(plan, up=able.reason == UP_HELD.reason)
    highest = max(plan.memory.recommendations, key=lambda kept: kept.replicas, default=None)
    if able.reason == DOWN_HELD.reason and highest is not None:
        return f"{able.message}: {highest.replicas} were wished at {stamp(highest.time)}, which counts for {window:g} s"
    return f"{able.message}, of the last {window:g} s"


def _window(plan: Plan, *, up: bool) -> float:
    behavior = plan.view.autoscaler.spec.behavior
    rules = (behavior.scale_up if up else behavior.scale_down) if behavior is not None else None
    if rules is None or rules.stabilization_window_seconds is None:
        return 0.0 if up else plan.view.settings.downscale_stabilization
    return float(rules.stabilization_window_seconds)


def _changes(plan: Plan) -> Iterator[str]:
    """Bounds of each metric within which nothing happens, and the bound of the spec that holds it."""
    tolerance = tolerance_of(plan.view)
    for spec, result in zip(plan.view.autoscaler.spec.metrics, plan.found, strict=False):
        target = _target(spec)
        if isinstance(result, Failure):
            yield f"{_name(spec)}: nothing, until it can be read"
        elif target.average_utilization is not None:
            share: float = target.average_utilization
            above = share * (1 + tolerance.up)
            if result.followed is not None:
                share = result.followed.percent
                above = min(share * (1 + tolerance.up), 100.0)
            yield (
                f"{_name(spec)}: more replicas above {above:.4g} % of the request, fewer below "
                f"{share * (1 - tolerance.down):.4g} %"
            )
        else:
            yield (
                f"{_name(spec)}: more replicas above {1 + tolerance.up:.4g} times {_target_text(target)}, fewer below "
                f"{1 - tolerance.down:.4g} times"
            )
    spec_ = plan.view.autoscaler.spec
    wanted = max((result.replicas for result in plan.found if isinstance(result, Computed)), default=None)
    if wanted is not None and wanted > spec_.max_replicas:
        yield f"maxReplicas of {wanted} or more instead of {spec_.max_replicas} gives it all that it wants"
    if plan.view.replicas == 0 and not reads_metrics(plan.view):
        yield f"a scale of 1 or more: an HPA leaves a target alone that has none ({plan.view.autoscaler.metadata.name})"


def _acts(plan: Plan, facts: HpaFacts, target: str, then: int | None) -> Iterator[str]:
    who = "upstream's controller" if facts.settings.upstream_compatible else "podfit's controller"
    period = facts.settings.sync_period
    current, desired = plan.view.replicas, plan.desired
    sized = next((said for said in plan.status.conditions if said.type == CONDITION), None)
    if sized is not None:
        yield sized.message
    if plan.failure:
        yield f"nobody: no count comes of its metrics ({plan.failure.rpartition(': ')[2]})"
    elif desired == current:
        nobody = "nobody" if sized is None else "no replicas"
        ends = "" if then is None else f"; {then} as soon as what was wished before counts no longer"
        yield f"{nobody}: {who} looks again within {period:g} s, and would leave {current}{ends}"
    else:
        within = period + (REFRESH if _window(plan, up=desired > current) else 0)
        yield f"{who}, within {within:g} s: scales {target} from {current} to {desired}"
        more = "makes" if desired > current else "ends"
        yield f"then the controller of {target} {more} {abs(desired - current)} pods"


def _notes(facts: HpaFacts, outcome: Outcome) -> Iterator[str]:
    shared = next((said for said in outcome.status.conditions if said.type == SHARED), None)
    if shared is not None:
        yield shared.message
    if facts.settings.upstream_compatible:
        yield (
            "upstream's controller, or podfit's with --upstream-compatible, keeps what was wished before in its memory:"
            " a window may still hold what is said here"
        )
    yield from by_rights(f"not read: {line}" for line in facts.unread)
