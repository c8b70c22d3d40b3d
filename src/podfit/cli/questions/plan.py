"""`podfit plan`: what would this resize do?"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from podfit.answers.facts.selection import parse_selection
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import HPA, POD, WORKLOADS, Target, TargetError, parse_target
from podfit.answers.plan.amounts import OptionError, RequestError
from podfit.answers.plan.initial_resources import NOT_FOUND, InitialPlans, plan_initial
from podfit.answers.plan.read_plan import Planned, Wanted, read_plan
from podfit.answers.plan.result import Plan
from podfit.answers.plan.rollout import RolloutPlan, plan_rollouts
from podfit.answers.plan.several_targets import NothingSized, plan_selection, plan_several, sized_in
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
from podfit.cli.questions.manifests import display_name, documents_of
from podfit.cli.questions.plan_burst import plan_burst
from podfit.cli.questions.plan_fit import plan_fit
from podfit.cli.questions.plan_hpa import plan_average_value
from podfit.cli.questions.plan_text import show, show_rollout
from podfit.cli.questions.resize_options import (
    AlsoTemplate,
    ContainerName,
    Cpu,
    Filename,
    FromVpa,
    Memory,
    Undo,
    check_template,
    given_request,
    request_of_several,
)
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.system import SystemClock

ONLY_FIT = "--fit finds the size itself: give a target, and -c where there are several containers"
ONLY_BURST = "--burst is about the ceilings that a VPA asks for: give a target alone"


def plan(
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
    from_vpa: FromVpa = False,
    also_template: AlsoTemplate = False,
    to_average_value: Annotated[
        bool, Parameter(negative="", help="Of an HPA: what its shares of requests are as amounts, at today's requests.")
    ] = False,
    burst: Annotated[
        bool, Parameter(negative="", help="Which burst ceilings the pods would be granted, and what nodes have moved.")
    ] = False,
    fit: Annotated[
        bool, Parameter(negative="", help="The largest size that the pods can have now, and who stands in the way.")
    ] = False,
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """What would this resize do? Nothing is written. Exit code 1: not every pod can be resized now, or none runs."""
    words = [word for word in (target, name, *more) if word]
    selection = None if to_average_value else parse_selection(words, selector, everywhere=everywhere)
    if selection is not None:
        if fit or burst:
            raise TargetError(f"{'--burst' if burst else '--fit'} is about one target, not about {selection}")
        given = request_of_several(
            cpu, memory, container, filename, undo=undo, from_vpa=from_vpa, also_template=also_template
        )
        typed = typed_options(cpu, memory, container, None, undo=undo, from_vpa=from_vpa)
        question = partial(plan_selection, selection=selection, request=given)
        return _of_a_selection(question, [*selection.words, *typed], namespace, context, kubeconfig, output)
    if fit or burst:
        both = burst and (fit or container)
        if cpu or memory or filename or undo or from_vpa or also_template or to_average_value or both:
            raise TargetError(ONLY_BURST if burst else ONLY_FIT)
        about = parse_target(target, POD, *WORKLOADS, name=name)
        answer = partial(plan_burst, about) if burst else partial(plan_fit, about, container)
        return answer(output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if to_average_value:
        if cpu or memory or container or filename or undo or from_vpa or also_template:
            raise TargetError("--to-average-value is about hpa/NAME alone, without a size")
        hpa = parse_target(target, HPA, name=name)
        return plan_average_value(hpa.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if not target:
        sized = bool(cpu or memory or container or undo or from_vpa or also_template)
        several = documents_alone(filename, sized=sized)
        return _several(several, namespace=namespace, context=context, kubeconfig=kubeconfig, output=output)
    about = parse_target(target, POD, *WORKLOADS, name=name)
    given = given_request(cpu, memory, container, filename, about, undo=undo, from_vpa=from_vpa)
    check_template(about, also_template=also_template)
    wanted = Wanted(about=about, request=given, also_template=also_template)

    typed = typed_options(cpu, memory, container, filename, undo=undo, from_vpa=from_vpa)
    typed += ["--also-template"] * also_template
    return _of_a_target(wanted, typed, namespace=namespace, context=context, kubeconfig=kubeconfig, output=output)


def _of_a_target(
    wanted: Wanted, typed: list[str], *, namespace: str, context: str, kubeconfig: Path | None, output: Output
) -> int:
    async def read(client: Client, where: str) -> Plan:
        return (await read_plan(client, where, wanted, commands())).plan

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    _tell(found, output)
    if output.for_people and found.advisable:
        render.line(f"next: {commands().podfit('resize', str(wanted.about), *typed)}")
    if not found.pods:
        no_pods(wanted.about, found)
    return exits.DONE if found.good else exits.REFUSED


def typed_options(
    cpu: str, memory: str, container: str, filename: Path | None, *, undo: bool, from_vpa: bool
) -> list[str]:
    """What says a size, as it is typed."""
    options = (("--cpu", cpu), ("--memory", memory), ("-c", container), ("-f", str(filename or "")))
    typed = [word for option in options if option[1] for word in option]
    return [*typed, *["--undo"] * undo, *["--to-recommendation"] * from_vpa]


def _of_a_selection(
    question: Callable[[Client, str], Awaitable[Planned]],
    typed: list[str],
    namespace: str,
    context: str,
    kubeconfig: Path | None,
    output: Output,
) -> int:
    found = asked(question, namespace=namespace, context=context, kubeconfig=kubeconfig).plan
    _tell(found, output)
    if output.for_people and found.advisable:
        render.line(f"next: {commands().podfit('resize', *typed)}")
    if not found.pods:
        no_pods_of_several(found)
    return exits.DONE if found.good else exits.REFUSED


def no_pods_of_several(answer: Plan) -> None:
    render.error(f"none of what is selected in namespace {answer.namespace} has a running pod")


def _tell(answer: Plan, output: Output) -> None:
    if output.for_people:
        show(answer, wide=output is Output.WIDE)
    else:
        render.document(answer, output)


def documents_alone(filename: Path | None, *, sized: bool) -> tuple[Path, list[Any]]:
    """The manifest that names its targets itself. Raises OptionError, RequestError."""
    if filename is None or sized:
        raise OptionError("a target is required, such as pod/NAME, or -f alone")
    return filename, documents_of(filename)


async def read_several(client: Client, where: str, several: tuple[Path, list[Any]]) -> Planned:
    """All pods and workloads of a manifest, each at its own size."""
    filename, documents = several
    try:
        asked_for = sized_in(documents, where)
    except RequestError as error:
        raise type(error)(f"{display_name(filename)}: {error}") from error
    return await plan_several(client, asked_for)


def _several(
    several: tuple[Path, list[Any]], *, namespace: str, context: str, kubeconfig: Path | None, output: Output
) -> int:
    async def read(client: Client, where: str) -> tuple[Plan, list[RolloutPlan]]:
        plan = await _of_manifest(client, where, several)
        return plan, await plan_rollouts(client, several[1], where, SystemClock())

    found, rollouts = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if output.for_people:
        show(found, wide=output is Output.WIDE)
        for rollout in rollouts:
            show_rollout(rollout)
    else:
        render.document(with_rollouts(found, rollouts), output)
    if output.for_people and found.advisable:
        render.line(f"next: {commands().podfit('resize', '-f', str(several[0]))}")
    if found.initial and not found.pods:
        return exits.DONE
    if not found.pods:
        nothing_runs(several[0])
    return exits.DONE if found.good else exits.REFUSED


async def _of_manifest(client: Client, where: str, several: tuple[Path, list[Any]]) -> Plan:
    """Its pods and workloads that are there, and what new ones get."""
    try:
        plan = (await read_several(client, where, several)).plan
    except (ApiError, NothingSized) as error:
        new = isinstance(error, NothingSized) or error.code == NOT_FOUND
        initial = await _initial(client, where, several) if new else InitialPlans()
        if not initial.plans:
            raise
        plan = Plan(server=(await Reader(client, where).age()).version, namespace=where, pods=())
    else:
        initial = await _initial(client, where, several)
    notes = (*plan.notes, *(f"not known: {text}" for text in initial.unknown))
    return replace(plan, initial=initial.plans, notes=notes)


async def _initial(client: Client, where: str, several: tuple[Path, list[Any]]) -> InitialPlans:
    """What new pods of the manifest get that ask for nothing."""
    filename, documents = several
    try:
        return await plan_initial(client, documents, where)
    except RequestError as error:
        raise RequestError(f"{display_name(filename)}: {error}") from error


class ManifestPlan(Plan, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """And what `kubectl apply` of the manifest would do to the pods of its workloads."""

    rollouts: tuple[RolloutPlan, ...] = ()


def with_rollouts(plan: Plan, rollouts: Sequence[RolloutPlan]) -> ManifestPlan:
    """The plan as one document."""
    fields = {name: getattr(plan, name) for name in plan.__struct_fields__}
    return ManifestPlan(**fields, rollouts=tuple(rollouts))


def nothing_runs(filename: Path) -> None:
    render.error(f"{display_name(filename)}: none of its pods and workloads runs")


def no_pods(about: Target, answer: Plan) -> None:
    """The pods are what is resized, so there is nothing to answer."""
    fix = f"see its pods:  {commands().kubectl('describe', str(about))}"
    render.error(f"{about} has no running pod in namespace {answer.namespace}", fix=(fix,))
