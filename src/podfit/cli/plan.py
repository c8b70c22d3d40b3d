"""`podfit plan`: what would this resize do?"""

from pathlib import Path
from typing import Annotated

import yaml
from cyclopts import Parameter

from podfit.answers.effects import Change
from podfit.answers.plan import DEFERRED, FITS, Plan, PodPlan
from podfit.answers.plan import plan as planned
from podfit.answers.target import POD, WORKLOADS, parse_target
from podfit.answers.wish import Wish, WishError, from_template, parse_amount
from podfit.api import codec
from podfit.api.core.pods import Pod
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, snapshot
from podfit.cli.output import Output

AMOUNT = "{} (request; a limit keeps its proportion), {} (request:limit) or {} (limit)."


def plan(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...")],
    /,
    *,
    cpu: Annotated[str, Parameter(help=AMOUNT.format("500m", "500m:1", ":1"))] = "",
    memory: Annotated[str, Parameter(help=AMOUNT.format("768Mi", "768Mi:1Gi", ":1Gi"))] = "",
    container: Annotated[str, Parameter(name=["--container", "-c"], help="Which one, when there are several.")] = "",
    filename: Annotated[Path | None, Parameter(name=["--filename", "-f"], help="Sizes of this manifest.")] = None,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: Annotated[Output, Parameter(name=["--output", "-o"], help="text, json or yaml.")] = Output.TEXT,
) -> int:
    """What would this resize do? Read only. Exit code 1 when not every pod can be resized now."""
    about = parse_target(target, POD, *WORKLOADS)
    wish = wish_of(cpu, memory, container, filename)
    found = planned(snapshot(about, namespace=namespace, context=context, kubeconfig=kubeconfig), wish)
    if output is Output.TEXT:
        show(found)
        if found.good and any(each.verdict == FITS for each in found.pods):
            options = (("--cpu", cpu), ("--memory", memory), ("-c", container), ("-f", str(filename or "")))
            render.line(f"next: podfit resize {about}{''.join(f' {name} {text}' for name, text in options if text)}")
    else:
        render.document(found, output)
    return exits.DONE if found.good else exits.REFUSED


def wish_of(cpu: str, memory: str, container: str, filename: Path | None) -> Wish:
    if filename is not None:
        if cpu or memory or container:
            raise WishError("-f says all sizes; leave out --cpu, --memory and -c")
        return from_template(_template(filename))
    amounts = {name: parse_amount(f"--{name}", text) for name, text in (("cpu", cpu), ("memory", memory)) if text}
    if not amounts:
        raise WishError("say what to change: --cpu, --memory or -f MANIFEST")
    return Wish(amounts, container)


def _template(path: Path) -> Pod:
    """The pod of a manifest, or the pod template of a workload's."""
    try:
        document = yaml.safe_load(path.read_text())
        spec = document["spec"]
        return codec.convert(document if document.get("kind") == "Pod" else spec["template"], Pod)
    except (OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise WishError(f"{path} is not the manifest of a pod or a workload: {error!r}") from error


def show(found: Plan) -> None:
    render.line(f"cluster {found.server}, namespace {found.namespace}, read only")
    render.line()
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
    for note in found.notes:
        render.line(note)


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
        return f"short of {each.short_by}" if each.short_by else each.text or "-"
    parts = [f'restarts "{one.container}" ({one.why})' for one in each.restarts] or ["in place, no restart"]
    return "; ".join([*parts, *filter(None, (each.text, each.shrink))])
