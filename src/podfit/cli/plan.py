"""`podfit plan`: what would this resize do?"""

from typing import Annotated

from cyclopts import Parameter

from podfit.answers.effects import RESOURCES, Change
from podfit.answers.plan import DEFERRED, FITS, Plan, PodPlan
from podfit.answers.plan import plan as planned
from podfit.answers.snapshot import Reader
from podfit.answers.target import POD, WORKLOADS, parse_target
from podfit.answers.template import TemplatePlan, read_workload, template_plan
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, asked
from podfit.cli.output import Output, OutputOption
from podfit.cli.wishing import AlsoTemplate, ContainerName, Cpu, Filename, Memory, check_template, wish_of
from podfit.client.rest import Client


def plan(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...")],
    /,
    *,
    cpu: Cpu = "",
    memory: Memory = "",
    container: ContainerName = "",
    filename: Filename = None,
    also_template: AlsoTemplate = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """What would this resize do? Read only. Exit code 1 when not every pod can be resized now."""
    about = parse_target(target, POD, *WORKLOADS)
    wish = wish_of(cpu, memory, container, filename)
    check_template(about, also_template=also_template)

    async def read(client: Client, where: str) -> Plan:
        seen = await Reader(client, where).read(about)
        workload = await read_workload(client, about, where) if also_template else None
        return planned(seen, wish, template_plan(workload, wish) if workload else None)

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if output.for_people:
        show(found, wide=output is Output.WIDE)
        if found.good and any(each.verdict == FITS for each in found.pods):
            options = (("--cpu", cpu), ("--memory", memory), ("-c", container), ("-f", str(filename or "")))
            typed = [f" {name} {text}" for name, text in options if text] + [" --also-template"] * also_template
            render.line(f"next: podfit resize {about}{''.join(typed)}")
    else:
        render.document(found, output)
    return exits.DONE if found.good else exits.REFUSED


def show(found: Plan, *, wide: bool = False) -> None:
    """`wide` has a line for each amount that changes, and the QoS class."""
    render.line(f"cluster {found.server}, namespace {found.namespace}, read only")
    render.line()
    if wide:
        _amounts(found)
    else:
        rows = [(each.pod, each.node or "-", *_columns(each.changes), each.verdict, _what(each)) for each in found.pods]
        render.table(("POD", "NODE", "CPU", "MEMORY", "VERDICT", "WHAT HAPPENS"), rows)
    render.line()
    for each in found.pods:
        if each.verdict == DEFERRED:
            render.line(f"{each.pod} waits: {each.text}")
            if each.after:
                render.line(f"  tried after {', '.join(each.after)}")
            if each.blocked_by:
                render.line(f"  the room is held by {', '.join(each.blocked_by[:5])}")
            if each.ends:
                render.line(f"  would end {', '.join(each.ends)}: the node makes room for critical pods")
    if found.template is not None:
        _template(found.template)
    for note in found.notes:
        render.line(note)


def _amounts(found: Plan) -> None:
    header = ("POD", "NODE", "QOS", "CONTAINER", "VALUE", "NOW", "THEN", "VERDICT", "WHAT HAPPENS")
    rows = [
        (each.pod, each.node or "-", each.qos or "-", one.container or "(pod)",
         f"{one.resource} {one.side[:-1]}".strip() or "-", one.before or "-", one.after or "-", each.verdict,
         _what(each))
        for each in found.pods for one in each.changes or [Change("-", "", "", "", "")]]  # fmt: skip
    render.table(header, rows)


def _template(found: TemplatePlan) -> None:
    sizes = [f"{name} {text}" for name, text in zip(RESOURCES, _columns(found.changes), strict=True) if text != "-"]
    what = ", ".join(sizes) or "nothing to change"
    render.line(f"template of {found.target}: {'; '.join(filter(None, (what, found.text)))}")
    if found.fix:
        render.line(f"  fix:  {found.fix}")


def _columns(changes: tuple[Change, ...]) -> tuple[str, str]:
    return _column(changes, "cpu"), _column(changes, "memory")


def _column(changes: tuple[Change, ...], resource: str) -> str:
    """The request's change, or the limit's when that is all."""
    of_resource = [each for each in changes if each.resource == resource]
    shown = [each for each in of_resource if each.side == "requests"] or of_resource
    texts = dict.fromkeys(f"{each.before or 'none'} → {each.after or 'none'}" for each in shown)
    return ", ".join(texts) or "-"


def _what(each: PodPlan) -> str:
    if each.verdict != FITS:
        ends = f"; would end {', '.join(each.ends)}" if each.ends else ""
        return (f"short of {each.short_by}" if each.short_by else each.text or "-") + ends
    parts = [f'restarts "{one.container}" ({one.why})' for one in each.restarts] or ["in place, no restart"]
    return "; ".join([*parts, *filter(None, (each.text, each.shrink))])
