"""`podfit why`: desired, allocated and actual, and what keeps a resize from being done; of a VPA, its numbers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.answers.snapshot import Reader, Snapshot
from podfit.answers.target import NODE, POD, VPA, WORKLOADS, TargetError, parse_target
from podfit.answers.why import HOLDERS, SETTLED, NodeWhy, PodWhy, why_node, why_pod, why_waiting
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, asked, snapshot
from podfit.cli.output import Output
from podfit.cli.why_vpa import why_of_a_vpa
from podfit.client.rest import Client
from podfit.core.errors import not_found
from podfit.net.system import SystemClock


def why(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, ..., node/NAME, vpa/NAME")] = "",
    /,
    *,
    everywhere: Annotated[bool, Parameter(
        name=["--all-namespaces", "-A"], negative="", help="All resizes of the cluster that are not done.")] = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: Annotated[Output, Parameter(
        name=["--output", "-o"], help="text, wide (more columns, but none of a VPA), json or yaml.")] = Output.TEXT,
) -> int:  # fmt: skip
    """Why is a resize not done, and until when? Of a VPA: where its numbers come from, and why pods differ.

    Exit code 1 when something waits or fails, or a VPA's pods are outside its bounds.
    """
    if everywhere:
        if target:
            raise TargetError(f"-A is about the whole cluster; leave out {target}")
        return _all(context, kubeconfig, output)
    about = parse_target(target, POD, *WORKLOADS, NODE, VPA)
    if about.kind is VPA:
        return why_of_a_vpa(about.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    found = snapshot(about, namespace=namespace, context=context, kubeconfig=kubeconfig)
    now = SystemClock().now()
    if about.kind is NODE:
        if about.name not in found.nodes:
            raise not_found("nodes", about.name)
        node = why_node(about.name, found, now)
        _tell(node, output)
        return exits.REFUSED if node.waiting else exits.DONE
    pods = [why_pod(pod, found, now) for pod in found.pods]
    if not output.for_people:
        render.document(pods if about.is_workload else pods[0], output)
    else:
        for number, pod in enumerate(pods):
            if number:
                render.line()
            _show(pod, wide=output is Output.WIDE)
        if not pods:
            render.line(f"{about} has no running pod")
    return exits.DONE if all(pod.state == SETTLED for pod in pods) else exits.REFUSED


def _all(context: str, kubeconfig: Path | None, output: Output) -> int:
    async def read(client: Client, where: str) -> Snapshot:
        return await Reader(client, where).everything()

    found = asked(read, namespace="", context=context, kubeconfig=kubeconfig)
    waiting = why_waiting(found, SystemClock().now())
    if not output.for_people:
        render.document(waiting, output)
        return exits.REFUSED if waiting else exits.DONE
    if waiting:
        wide = output is Output.WIDE
        rows = [(each.namespace, each.pod, each.node, each.state, render.duration(each.waited) if each.since else "-",
                 each.short_by or "-", *(_more(each) if wide else ()), each.message or each.next)
                for each in waiting]  # fmt: skip
        more = ("GENERATION", "QUEUE", "HELD BY") if wide else ()
        render.table(("NAMESPACE", "POD", "NODE", "RESIZE", "SINCE", "SHORT BY", *more, "BECAUSE"), rows)
    else:
        render.line("no resize waits")
    for line in found.unread:
        render.fact("note", f"not read: {line}")
    return exits.REFUSED if waiting else exits.DONE


def _tell(node: NodeWhy, output: Output) -> None:
    if not output.for_people:
        render.document(node, output)
        return
    render.line(f"node {node.node}")
    rows = [(name, node.allocatable.get(name, "-"), node.promised.get(name, "0"), node.counted.get(name, "0"))
            for name in node.allocatable]  # fmt: skip
    render.table(("RESOURCE", "ALLOCATABLE", "PROMISED", "SCHEDULER COUNTS"), rows, indent="  ")
    if output is Output.WIDE:
        _members(node)
    else:
        for holders in (node.holders, node.memory_holders):
            shown = [f"{each.pod} {each.amount}" for each in holders[:HOLDERS]]
            more = [f"and {len(holders) - HOLDERS} more (-o wide)"] * (len(holders) > HOLDERS)
            render.fact("held by", ", ".join([*shown, *more]) or "nobody")
    for pod in node.waiting:
        place = f"{pod.position}." if pod.position else "-"
        render.fact("waits", f"{place} {pod.namespace}/{pod.pod}, resize {pod.state}: {pod.message or pod.next}")
    if node.nominated:
        render.fact("kept for", f"{', '.join(node.nominated)}: the scheduler has nominated this node for them")
    if node.shut_out:
        render.fact("kept out", f"{', '.join(node.shut_out)}: they would fit, but what waits is counted")
    for note in node.notes:
        render.fact("note", note)


def _members(node: NodeWhy) -> None:
    rows = [(each.pod, each.qos, str(each.priority), each.promised.get("cpu", "-"), each.counted.get("cpu", "-"),
             each.promised.get("memory", "-"), each.counted.get("memory", "-"), each.why or "-")
            for each in node.members]  # fmt: skip
    header = ("POD", "QOS", "PRIORITY", "CPU", "COUNTED", "MEMORY", "COUNTED", "BECAUSE")
    render.table(header, rows, indent="  ")


def _more(pod: PodWhy) -> tuple[str, str, str]:
    """Generation and how much of it was seen, the place in the queue, and who has what is short."""
    place = f"{pod.position} of {pod.queued}" if pod.queued else "-"
    held = ", ".join(f"{each.pod} {each.amount}" for each in pod.holders)
    return f"{pod.generation} (observed {pod.observed})", place, held or "-"


def _show(pod: PodWhy, *, wide: bool) -> None:
    """`wide` has the holders in a table, with what would free room, and when the condition began."""
    since = f" for {render.duration(pod.waited)} (observed generation {pod.observed} of {pod.generation})"
    state = f"resize {pod.state}{since if pod.since else ''}"
    render.line(f"{pod.pod}  {'nothing is outstanding' if pod.state == SETTLED else state}")
    rows = [(each.container or "(pod)", f"{each.resource} {each.side[:-1]}", each.desired or "-", each.allocated or "-",
             each.actual or "-") for each in pod.sizes]  # fmt: skip
    if rows:
        render.table(("CONTAINER", "VALUE", "DESIRED", "ALLOCATED", "ACTUAL"), rows, indent="  ")
    facts = (
        ("node", pod.node),
        ("because", pod.message),
        ("short by", pod.short_by),
        ("queue", _queue(pod)),
        ("held by", "" if wide else ", ".join(
            f"{each.pod} {each.amount} (priority {each.priority})" for each in pod.holders)),
        ("would free", ", ".join(pod.frees)),
        ("since", pod.since if wide else ""),
        ("ends", ", ".join(pod.ends)),
        ("retried", pod.next),
        *(("note", note) for note in pod.notes),
    )
    for label, text in facts:
        if text:
            render.fact(label, text)
    if wide and pod.holders:
        holders = [(each.pod, each.amount, str(each.priority), "yes" if each.pod in pod.frees else "no")
                   for each in pod.holders]  # fmt: skip
        render.table(("HELD BY", "AMOUNT", "PRIORITY", "WOULD FREE"), holders, indent="  ")


def _queue(pod: PodWhy) -> str:
    if not pod.queued:
        return ""
    ahead = f": {', '.join(pod.ahead)} tried first" if pod.ahead else ""
    return f"{pod.position} of {pod.queued}{ahead}"
