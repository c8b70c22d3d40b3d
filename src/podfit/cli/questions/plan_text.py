"""A plan for people: a table of its pods, what each waits for, and what becomes of templates and rollouts."""

from collections import Counter

from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.facts.readable import readable_amount, readable_text, why_the_class_stays
from podfit.answers.plan.changes import Change, ResourceChange
from podfit.answers.plan.result import DEFERRED, FITS, NOT_KNOWN, Plan, PodPlan
from podfit.answers.plan.rollout import HELD, IN_PLACE, ROLLING, UNKNOWN, RolloutPlan
from podfit.answers.plan.template import TemplatePlan
from podfit.cli import render
from podfit.cli.tables import Row

HOW = {IN_PLACE: "in place", ROLLING: "replaces pods", HELD: "nothing by itself", UNKNOWN: "not known"}


def show_rollout(rollout: RolloutPlan) -> None:
    """A line for the workload, and one for each pod of which there is more to say."""
    counts = ", ".join(f"{number} {fate}" for fate, number in rollout.counts.items())
    about = f": {readable_text(rollout.text)}" if rollout.text else ""
    render.say(f"kubectl apply, {rollout.target}: {HOW[rollout.how]}{about}{f'; {counts}' if counts else ''}")
    for pod in rollout.pods:
        if pod.text:
            render.say(f"  {pod.pod} {pod.fate}: {readable_text(pod.text)}")


def show(answer: Plan, *, wide: bool = False, read_only: bool = True) -> None:
    """`wide` has a line for each amount that changes, and the QoS class; `read_only` is whether it ends there."""
    if answer.pods:
        _running(answer, wide=wide, read_only=read_only)
    for given in answer.initial:
        amounts = ", ".join(f"{name} {amount}" for name, amount in given.requests.items())
        why = "; ".join((f"{given.source}, confidence {given.confidence:g}", *given.notes))
        render.say(f'new pods of {given.target}: "{given.container}" gets {amounts} ({why})')
    for note in (*answer.doubts, *answer.notes):
        render.say(note)


def _running(answer: Plan, *, wide: bool, read_only: bool) -> None:
    render.say(f"cluster {answer.server}, namespace {answer.namespace}{', read only' if read_only else ''}")
    render.line()
    several = len({pod.namespace for pod in answer.pods}) > 1
    if wide:
        _amounts(answer, namespaces=several)
    else:
        rows: list[Row] = [
            (*_where(pod, several), pod.node or "-", *_columns(pod.sizes), render.judged(pod.verdict), _what(pod))
            for pod in answer.pods
        ]
        header = ("POD", "NODE", "CPU", "MEMORY", "VERDICT", "WHAT HAPPENS")
        render.table((*(("NAMESPACE",) if several else ()), *header), rows)
    render.line()
    if answer.sums:
        _together(answer)
    for pod in answer.pods:
        _explain(pod)
    if answer.template is not None:
        _template(answer.template)


def _where(pod: PodPlan, several: bool) -> tuple[str, ...]:
    """The pod with its namespace where there are `several`."""
    return (pod.namespace, pod.pod) if several else (pod.pod,)


def _together(answer: Plan) -> None:
    """The sums of several targets; what fits now only where that is less than all."""
    count = Counter(pod.verdict for pod in answer.pods)
    render.say(f"{len(answer.pods)} pods: {', '.join(f'{verdict} {number}' for verdict, number in count.items())}")
    for total in answer.sums:
        before, after, granted = (
            readable_amount(total.resource, text) for text in (total.before, total.after, total.granted)
        )
        change = f"{before} → {after}" if before != after else f"{before}, as before"
        now = f" ({granted} with what fits now)" if granted != after else ""
        render.say(f"  {total.resource} {total.side} together: {change}{now}")


def _explain(pod: PodPlan) -> None:
    """What a waiting pod waits for, and what helps one whose QoS class would change."""
    if advice := why_the_class_stays(pod.text):
        render.say(f"{pod.pod}: {advice}")
    if pod.protected:
        render.say(f"{pod.pod}: --allow-disruption of podfit resize restarts it all the same")
    if pod.verdict != DEFERRED:
        if pod.nodes:
            render.say(f"{pod.pod} {pod.nodes}")
        return
    render.say(f"{pod.pod} waits: {readable_text(pod.text)}")
    if pod.after:
        render.say(f"  tried after {', '.join(pod.after)}")
    if pod.blocked_by:
        render.say(f"  the room is held by {', '.join(pod.blocked_by[:5])}")
    for text in (*pod.room, *filter(None, (pod.nodes,))):
        render.say(f"  {text}")
    if pod.ends:
        render.say(f"  would end {', '.join(pod.ends)} to make room")


def _amounts(answer: Plan, *, namespaces: bool) -> None:
    where = ("NAMESPACE",) if namespaces else ()
    header = (*where, "POD", "NODE", "QOS", "CONTAINER", "VALUE", "NOW", "THEN", "VERDICT", "WHAT HAPPENS")
    rows: list[Row] = [
        (
            *_where(pod, namespaces),
            pod.node or "-",
            pod.qos or "-",
            change.container or "(pod)",
            f"{change.resource} {change.side[:-1]}".strip() or "-",
            change.before or "-",
            change.after or "-",
            render.judged(pod.verdict),
            _what(pod),
        )
        for pod in answer.pods
        for change in pod.changes or [Change("-", "", "", "", "")]
    ]
    render.table(header, rows, whole=True)


def _template(answer: TemplatePlan) -> None:
    sizes = [f"{name} {text}" for name, text in zip(RESOURCES, _columns(answer.sizes), strict=True) if text != "-"]
    what = ", ".join(sizes) or "nothing to change"
    render.say(f"template of {answer.target}: {'; '.join(filter(None, (what, answer.text)))}")
    if answer.fix:
        render.line(f"  fix:  {answer.fix}")


def _columns(sizes: tuple[ResourceChange, ...]) -> tuple[str, str]:
    return column(sizes, "cpu"), column(sizes, "memory")


def column(sizes: tuple[ResourceChange, ...], resource: str) -> str:
    """`200m/800m → 1/4`, with the container's name where several change; `-` when nothing does."""
    shown = [size for size in sizes if size.resource == resource]
    if len({size.container for size in sizes}) > 1:
        return ", ".join(f"{size.container or '(pod)'} {size}" for size in shown) or "-"
    return ", ".join(map(str, shown)) or "-"


def _what(pod: PodPlan) -> str:
    ends = f"; would end {', '.join(pod.ends)}" if pod.ends else ""
    again = "asked for already: " if pod.repeated and pod.text else ""
    if pod.verdict not in (FITS, NOT_KNOWN):
        return again + (f"short of {pod.short_by}" if pod.short_by else readable_text(pod.text) or "-") + ends
    parts = [f'restarts "{restart.container}" ({restart.why})' for restart in pod.restarts] or ["in place, no restart"]
    return "; ".join([*parts, *filter(None, (readable_text(pod.text), pod.shrink))]) + ends
