"""`podfit resize`: plan, then do it, pod by pod."""

import asyncio
import math
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from podfit.actions.canary import CanaryOptions, CanaryRun, CanaryTold, cannot_watch
from podfit.actions.change_template import dry_run_template, retemplate
from podfit.actions.resize_pods import Options, Outcome, Progress, carry_out, may_begin, objection
from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.facts.readable import readable_text, why_the_class_stays
from podfit.answers.facts.selection import Selection, parse_selection
from podfit.answers.facts.target import POD, WORKLOADS, parse_target
from podfit.answers.plan.amounts import OptionError
from podfit.answers.plan.changes import ResourceChange
from podfit.answers.plan.notes import not_following
from podfit.answers.plan.read_plan import Planned, Wanted, read_plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, Plan, PodPlan
from podfit.answers.plan.several_targets import plan_selection
from podfit.cli import exits, render
from podfit.cli.cluster_questions import (
    AllNamespaces,
    ContextName,
    Kubeconfig,
    More,
    Name,
    Namespace,
    Selector,
    asked,
    commands,
)
from podfit.cli.output import Output, OutputOption
from podfit.cli.questions.plan import documents_alone, no_pods, no_pods_of_several, nothing_runs, read_several
from podfit.cli.questions.plan_text import column, show
from podfit.cli.questions.resize_options import (
    AlsoTemplate,
    Canary,
    ContainerName,
    Cpu,
    Filename,
    FromVpa,
    Memory,
    RollbackOn,
    Undo,
    Watch,
    canary_options,
    check_template,
    given_request,
    request_of_several,
)
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.durations import parse_duration
from podfit.net.system import SystemClock

REPORT_SECONDS = 1.0
"""Seconds after which somebody who looks at a terminal wants to know what is going on."""


@asynccontextmanager
async def watched(progress: Progress, plan: Plan, about: str, clock: Clock) -> AsyncIterator[None]:
    """Tells on stderr what a resize waits for, in a terminal, and what was sent when it is interrupted."""
    telling = asyncio.create_task(_tell_progress(progress, clock)) if sys.stderr.isatty() else None
    try:
        yield
    except asyncio.CancelledError:
        for line in stands(progress, plan):
            render.progress(line)
        if progress.outcomes or progress.sending:
            render.advice(f"  see:  {commands().podfit('why', *filter(None, (about,)))}")
        raise
    finally:
        if telling is not None:
            telling.cancel()


async def _tell_progress(progress: Progress, clock: Clock) -> None:
    told = ""
    while True:
        await clock.sleep(REPORT_SECONDS)
        now = _state(progress)
        if now and now != told:
            render.progress(now)
            told = now


def _state(progress: Progress) -> str:
    """What the pod that is waited for waits for."""
    if progress.seen is None:
        return ""
    because = f": {readable_text(progress.seen.message)}" if progress.seen.message else ""
    return f"{progress.pod}  resize {progress.seen.state}{because}"


def stands(progress: Progress, plan: Plan) -> list[str]:
    """What was sent, what came of it, and what was left."""
    done = [outcome.pod for outcome in progress.outcomes if outcome.good]
    lines = [f"interrupted: {len(done)} of {len(plan.pods)} {'pod' if len(plan.pods) == 1 else 'pods'} resized"]
    if progress.sent and progress.seen is not None:
        lines.append(f"{_state(progress)}; it was sent, and the node goes on with it")
    elif progress.sending:
        lines.append(f"{progress.pod}  was being sent: whether the API server has stored it is not known")
    asked = [name for name in progress.asked if name != progress.pod]
    if asked:
        lines.append(f"{', '.join(asked)}  asked for: the node goes on with it")
    left = len(plan.pods) - len(progress.outcomes) - len(asked) - bool(progress.pod and progress.sending)
    if left:
        lines.append(f"{left} left as {'it is' if left == 1 else 'they are'}")
    return lines


DRY = "(server dry run)"
_Several: TypeAlias = tuple[Path, list[Any]]
"""A manifest that names its targets itself, and its documents."""


class _Selected(msgspec.Struct, frozen=True):
    """Several targets, and the request for all of them."""

    selection: Selection
    request: ResizeRequest | None


_Wanted: TypeAlias = Wanted | _Several | _Selected


class Done(msgspec.Struct, frozen=True):
    """`against` is what spoke against beginning, and what helps."""

    plan: Plan
    outcomes: Sequence[Outcome] = ()
    template: Outcome | None = None
    against: tuple[str, str] = ("", "")
    canary: CanaryTold | None = None

    @property
    def good(self) -> bool:
        if self.canary is not None and self.canary.rolled_back:
            return False
        every = len(self.outcomes) == len(self.plan.pods) and all(outcome.good for outcome in self.outcomes)
        return bool(self.plan.pods) and every and not self.against[0] and (self.template is None or self.template.good)


def resize(
    target: Annotated[
        str,
        Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...; without one, what -f names or -l selects."),
    ] = "",
    name: Name = "",
    /,
    *more: More,
    cpu: Cpu = "",
    memory: Memory = "",
    container: ContainerName = "",
    filename: Filename = None,
    undo: Undo = False,
    to_recommendation: FromVpa = False,
    wait: Annotated[bool, Parameter(negative="", help="Until each resize is complete, or --timeout.")] = False,
    timeout: Annotated[
        str, Parameter(help="How long to wait for one pod, such as 90s or 5m; seconds without a unit.")
    ] = ("60s"),
    dry_run: Annotated[bool, Parameter(negative="", help="Let the API server judge, and store nothing.")] = False,
    shrink: Annotated[
        Literal["plain", "guarded"], Parameter(help="guarded lowers memory step by step (podfit's nodes).")
    ] = "plain",
    also_template: AlsoTemplate = False,
    allow_disruption: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also when it ends other pods (a critical one has room made), begins a rollout, or restarts a "
            "container of a pod that a disruption budget protects.",
        ),
    ] = False,
    canary: Canary = 0,
    watch: Watch = "",
    rollback_on: RollbackOn = "",
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """Resize running pods in place: planned first, then pod by pod, ended by the first refusal.

    Nothing is begun when the plan has a refusal. Exit code 1 when not every pod was resized, one still waits, or a
    canary went back.
    """
    options = Options(
        wait=wait, dry_run=dry_run, timeout=_longest(timeout), guarded=shrink == "guarded", disrupt=allow_disruption
    )
    words = [word for word in (target, name, *more) if word]
    selection = parse_selection(words, selector, everywhere=everywhere)
    wanted: _Wanted
    if selection is not None:
        if selection.everywhere and not selection.labels and selection.kind is None:
            raise OptionError("-A alone would resize every pod of the cluster: name a kind, or labels with -l")
        given = request_of_several(
            cpu, memory, container, filename, undo=undo, from_vpa=to_recommendation, also_template=also_template
        )
        wanted = _Selected(selection, given)
    elif target:
        about = parse_target(target, POD, *WORKLOADS, name=name)
        check_template(about, also_template=also_template)
        given = given_request(cpu, memory, container, filename, about, undo=undo, from_vpa=to_recommendation)
        wanted = Wanted(about=about, request=given, also_template=also_template)
    else:
        sized = bool(cpu or memory or container or undo or to_recommendation or also_template)
        wanted = documents_alone(filename, sized=sized)
    first = canary_options(canary, watch, rollback_on, workload=isinstance(wanted, Wanted) and wanted.about.is_workload)

    async def act(client: Client, where: str) -> Done:
        planned = await _planned(client, where, wanted)
        now = replace(options, commands=commands())
        against = await _objection(client, where, planned, now)
        if against is None and first is not None and (why := await cannot_watch(client, planned, first)):
            against = why, "leave throttled out of --rollback-on, or ask for the right to nodes/proxy"
        if against is not None:
            return Done(planned.plan, against=against)
        if undo and output.for_people:
            show(planned.plan, read_only=False)
        return await _carried_out(client, where, planned, wanted, now, output, canary=first)

    done = asked(act, namespace=namespace, context=context, kubeconfig=kubeconfig)
    _tell(done, wanted, output, options)
    return exits.DONE if done.good else exits.REFUSED


async def _planned(client: Client, where: str, wanted: _Wanted) -> Planned:
    match wanted:
        case Wanted():
            return await read_plan(client, where, wanted, commands())
        case _Selected():
            return await plan_selection(client, where, wanted.selection, wanted.request)
    return await read_several(client, where, wanted)


async def _objection(client: Client, where: str, planned: Planned, options: Options) -> tuple[str, str] | None:
    """What speaks against beginning, and what helps, empty where the plan says it; None when nothing does."""
    plan, workload = planned.plan, planned.workload
    against = objection(plan, options)
    if against[0] or not all(may_begin(pod, options) for pod in plan.pods):
        return against
    changes = plan.template is not None and plan.template.changes
    if workload and changes and (text := await dry_run_template(client, workload, planned.request, where)):
        return f"the template of {workload.target} would be refused: {text}", ""
    return None


async def _carried_out(
    client: Client,
    where: str,
    planned: Planned,
    wanted: _Wanted,
    options: Options,
    output: Output,
    *,
    canary: CanaryOptions | None = None,
) -> Done:
    """Pod by pod, then the template; each is told of when it is over. With a `canary` some pods come first."""
    plan, progress, clock = planned.plan, Progress(), SystemClock()
    outcomes, about = progress.outcomes, str(wanted.about) if isinstance(wanted, Wanted) else ""
    for line in not_following(plan.pods, planned.snapshot.pods) if output.for_people else ():
        render.progress(f"note: {line}")
    run: CanaryRun | None = None
    deeds = carry_out(client, planned, options, clock, progress=progress)
    if canary is not None and not options.dry_run and isinstance(wanted, Wanted):
        run = CanaryRun(
            client, planned, options, canary, clock, about=wanted.about, namespace=where, tell=render.progress
        )
        deeds = run.outcomes(progress)
    async with watched(progress, plan, about, clock):
        async for outcome in deeds:
            if output.for_people:
                which = f"{len(outcomes)}/{len(plan.pods)}"
                told = _marked_waiting(outcome, plan.pods[len(outcomes) - 1])
                _progress(told, which, outcome.sizes, dry_run=options.dry_run)
    if run is not None and run.told.rolled_back:
        return Done(plan, outcomes, canary=run.told)
    told_of = run.told if run is not None else None
    if not planned.workload or not plan.template:
        return Done(plan, outcomes, canary=told_of)
    if any(outcome.ends for outcome in outcomes):
        return Done(plan, outcomes, Outcome(pod=about, state="refused", text="not every pod was resized"))
    template = await retemplate(client, planned.workload, planned.request, plan.template, where, options)
    if output.for_people:
        _progress(template, "template", plan.template.sizes, dry_run=options.dry_run)
    return Done(plan, outcomes, template, canary=told_of)


def _tell(done: Done, wanted: _Wanted, output: Output, options: Options) -> None:
    if not output.for_people:
        more: dict[str, Any] = {"template": done.template} if done.template else {}
        more |= {"canary": done.canary} if done.canary else {}
        render.document({"plan": done.plan, "deeds": done.outcomes, "dryRun": options.dry_run, **more}, output)
    elif done.outcomes:
        _tell_of(done, options)
    elif done.plan.pods:
        show(done.plan, wide=output is Output.WIDE, read_only=False)
        render.line("nothing was changed")
    if not done.plan.pods:
        match wanted:
            case Wanted():
                no_pods(wanted.about, done.plan)
            case _Selected():
                no_pods_of_several(done.plan)
            case file, _:
                nothing_runs(file)
    if done.against[0]:
        render.error(done.against[0], fix=filter(None, (done.against[1],)))


def _tell_of(done: Done, options: Options) -> None:
    if done.canary is not None:
        _tell_of_canary(done.canary)
    if done.canary is None or not done.canary.rolled_back:
        render.say(summary(done, options))


def _tell_of_canary(canary: CanaryTold) -> None:
    """What was seen of the first pods, and what became of them."""
    if not canary.rolled_back:
        if canary.pods:
            render.say(f"canary {', '.join(canary.pods)}: nothing happened in {canary.watched_for:.3g} s")
        return
    render.say(f"canary went back after {canary.watched_for:.3g} s: {readable_text(canary.seen)}")
    for outcome in canary.back:
        _progress(outcome, "back", outcome.sizes, dry_run=False)


def _longest(timeout: str) -> float:
    """Seconds, of `90s`, `5m` or a number of seconds."""
    try:
        found = float(timeout) if timeout[-1:].isdigit() else parse_duration(timeout)
    except ValueError:
        raise OptionError(f'invalid value "{timeout}" for --timeout: not a duration, such as 90s or 5m') from None
    if not 0 <= found < math.inf:
        raise OptionError(f'invalid value "{timeout}" for --timeout: must be 0 or more seconds')
    return found


def _marked_waiting(outcome: Outcome, planned: PodPlan) -> Outcome:
    """What was accepted and has no room yet is said to wait."""
    if outcome.state != "accepted" or planned.verdict != DEFERRED:
        return outcome
    return replace(outcome, text=f"it has to wait: {planned.text}")


def _progress(outcome: Outcome, which: str, sizes: tuple[ResourceChange, ...], *, dry_run: bool) -> None:
    """A line on what became of a pod: from, to, and how it ended."""
    changed = [f"{name} {column(sizes, name)}" for name in RESOURCES if column(sizes, name) != "-"]
    took = f" after {outcome.seconds:.2f} s" if outcome.seconds else ""
    dry = f" {DRY}" if dry_run and outcome.state == "accepted" else ""
    words = (word for word in (which, outcome.pod, ", ".join(changed)) if word)
    told = readable_text(outcome.text)
    render.styled(*words, render.judged(outcome.state)._replace(text=f"{outcome.state}{took}{dry}"), then=told)
    if advice := why_the_class_stays(outcome.text):
        render.say(f"     {advice}")


def summary(done: Done, options: Options) -> str:
    """`2 of 3 pods resized, 1 waits`."""
    count = Counter(outcome.state for outcome in done.outcomes)
    total = len(done.plan.pods)
    pods = "pod" if total == 1 else "pods"
    if options.dry_run:
        return f"{count['accepted'] + count['unchanged']} of {total} {pods} would be accepted {DRY}"
    if count["unchanged"] == total:
        return f"nothing to do: {total} {pods} {'has' if total == 1 else 'have'} that size"
    finished = f"{count['done']} of {total} {pods} resized"
    several = {"waits": "wait"}
    others = [
        f"{number} {state if number == 1 else several.get(state, state)}"
        for state, number in count.items()
        if state != "done"
    ]
    left = total - len(done.outcomes)
    rest = [f"{left} left as {'it is' if left == 1 else 'they are'}"] if left else []
    more = "; --wait waits until the node has done it" if count["waits"] and not options.wait else ""
    return ", ".join([finished, *others, *rest]) + more
