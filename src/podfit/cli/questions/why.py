"""`podfit why`: desired, allocated and actual, and what keeps a resize from being done; numbers of autoscalers."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.answers.facts.pod_state import ENDED, SETTLED, UNSCHEDULED
from podfit.answers.facts.readable import readable_text, why_the_class_stays
from podfit.answers.facts.rights import by_rights
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import HPA, NODE, NODE_GROUP, POD, VPA, WORKLOADS, Target, TargetError, parse_target
from podfit.answers.why.node import NodeWhy, why_node
from podfit.answers.why.pods import HOLDERS, PodWhy, why_pod, why_waiting
from podfit.answers.why.removable import RemovableWhy, RemovalFacts, read_removal_facts, why_removable
from podfit.cli import exits, render
from podfit.cli.cluster_questions import (
    ContextName,
    Kubeconfig,
    Name,
    Namespace,
    asked,
    commands,
    missing_namespace,
    repeated,
    snapshot,
)
from podfit.cli.output import Output
from podfit.cli.questions.why_hpa import why_of_an_hpa
from podfit.cli.questions.why_node_group import why_of_a_node_group
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def why_of_a_removal(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    async def read(client: Client, _: str) -> RemovalFacts:
        return await read_removal_facts(client, name)

    facts = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    answer = why_removable(facts, SystemClock().now())
    if output.for_people:
        _show_removable(answer)
    else:
        render.document(answer, output)
    return exits.DONE if answer.good else exits.REFUSED


def _show_removable(answer: RemovableWhy) -> None:
    render.line(f"node {answer.node}  {answer.verdict}")
    used = answer.utilization
    if used is not None:
        text = f"its pods ask for {used.cpu:.1%} of its cpu and {used.memory:.1%} of its memory"
        render.fact("used", f"{text}; the threshold is {used.threshold:.0%}")
    for kept in answer.kept_by:
        render.fact(
            "kept by", f"{kept.pod}, {kept.reason}: {kept.because}" if kept.pod else f"{kept.reason}: {kept.because}"
        )
    for line in answer.missing:
        render.fact("not read", line)
    if answer.moves:
        render.table(("POD", "WOULD RUN ON"), [(move.pod, move.to) for move in answer.moves], indent="  ")
    if answer.daemon_set_pods:
        render.fact("ends", f"{', '.join(answer.daemon_set_pods)}: of daemon sets, they end with the node")
    for note in answer.notes:
        render.fact("note", note)


STATES = {SETTLED: "nothing is outstanding", UNSCHEDULED: "not scheduled", ENDED: "ended"}
"""What is said of a pod that has no resize under way."""


def why(
    target: Annotated[
        str,
        Parameter(
            help="pod/NAME, deployment/NAME, ..., node/NAME, node-group/NAME, vpa/NAME, hpa/NAME; without it what "
            "waits in the namespace"
        ),
    ] = "",
    name: Name = "",
    /,
    *,
    everywhere: Annotated[
        bool,
        Parameter(name=["--all-namespaces", "-A"], negative="", help="Every resize of the cluster that is not done."),
    ] = False,
    removable: Annotated[
        bool, Parameter(negative="", help="Of a node: could it go, and would its pods find room elsewhere?")
    ] = False,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative="", help="Again and again, until Ctrl-C.")] = (
        False
    ),
    interval: Annotated[float, Parameter(help="--watch: seconds between two readings.")] = 5.0,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: Annotated[
        Output,
        Parameter(name=["--output", "-o"], help="text, wide (more columns, but none of a VPA or HPA), json or yaml."),
    ] = Output.TEXT,
) -> int:
    """Why is a resize not done, and until when? Of a VPA: where its numbers come from, and why pods differ from them.
    Of an HPA: what each metric wants, what holds it back, and who acts next.

    Exit code 1 when something waits or fails, a VPA's pods are outside its bounds, an HPA's wish is bounded or unknown,
    or a node could not go, or a node group failed or waits for nodes.
    """

    def once() -> int:
        return _once(target, name, output, namespace, context, kubeconfig, everywhere=everywhere, removable=removable)

    return repeated(once, interval, apart=output.for_people) if watch else once()


def _once(
    target: str,
    name: str,
    output: Output,
    namespace: str,
    context: str,
    kubeconfig: Path | None,
    *,
    everywhere: bool,
    removable: bool,
) -> int:
    if removable:
        about = parse_target(target, NODE, name=name)
        if everywhere:
            raise TargetError(f"-A cannot be combined with {about}")
        return why_of_a_removal(about.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if everywhere:
        if target:
            raise TargetError(f"-A cannot be combined with {target}")
        return _all(output, "", context, kubeconfig, everywhere=True)
    if not target:
        return _all(output, namespace, context, kubeconfig)
    about = parse_target(target, POD, *WORKLOADS, NODE, VPA, HPA, NODE_GROUP, name=name)
    if about.kind is NODE_GROUP:
        return why_of_a_node_group(about.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if about.kind is HPA:
        return why_of_an_hpa(about.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if about.kind is VPA:
        from podfit.cli.questions.why_vpa import why_of_a_vpa  # loads the checks of a resize, for 30 ms

        return why_of_a_vpa(about.name, output, namespace=namespace, context=context, kubeconfig=kubeconfig)
    found = snapshot(about, namespace=namespace, context=context, kubeconfig=kubeconfig)
    now = SystemClock().now()
    if about.kind is NODE:
        return _of_node(about.name, found, now, output)
    return _of_pods(about, found, now, output)


def _of_node(name: str, cluster: Snapshot, now: datetime, output: Output) -> int:
    node = why_node(name, cluster, now)
    _tell(node, output)
    return exits.REFUSED if node.waiting else exits.DONE


def _of_pods(about: Target, cluster: Snapshot, now: datetime, output: Output) -> int:
    pods = [why_pod(pod, cluster, now) for pod in cluster.pods]
    if not output.for_people:
        render.document(pods if about.is_workload else pods[0], output)
    else:
        for number, pod in enumerate(pods):
            if number:
                render.line()
            _show(pod, wide=output is Output.WIDE)
    if not pods:
        fix = f"see its pods:  {commands().kubectl('describe', str(about))}"
        render.error(f"{about} has no running pod in namespace {cluster.namespace}", fix=(fix,))
        return exits.REFUSED
    return exits.DONE if all(pod.good for pod in pods) else exits.REFUSED


def _all(output: Output, namespace: str, context: str, kubeconfig: Path | None, *, everywhere: bool = False) -> int:
    """What waits in the namespace, or everywhere."""

    async def read(client: Client, where: str) -> Snapshot:
        seen = await Reader(client, "" if everywhere else where).everything()
        if not seen.pods and not everywhere and (missing := await missing_namespace(client, where)):
            raise missing
        return seen

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    waiting = why_waiting(found, SystemClock().now())
    if not output.for_people:
        render.document(waiting, output)
        return exits.REFUSED if waiting else exits.DONE
    if waiting:
        _list(waiting, wide=output is Output.WIDE, everywhere=everywhere)
    else:
        render.line("no resize waits" + (f" in namespace {found.namespace}" if found.namespace else ""))
    for line in by_rights(f"not read: {line}" for line in found.unread):
        render.fact("note", line)
    return exits.REFUSED if waiting else exits.DONE


def _list(waiting: Sequence[PodWhy], *, wide: bool, everywhere: bool) -> None:
    rows = [
        (
            *([pod.namespace] if everywhere else []),
            pod.pod,
            pod.node,
            render.judged(pod.state),
            render.duration(pod.waited) if pod.since else "-",
            pod.short_by or "-",
            *(_more(pod) if wide else ()),
            "; ".join(filter(None, (readable_text(pod.message), *pod.troubles))) or pod.next,
        )
        for pod in waiting
    ]
    more = ("GENERATION", "QUEUE", "ALLOCATED TO") if wide else ()
    where = ("NAMESPACE",) if everywhere else ()
    header = (*where, "POD", "NODE", "RESIZE", "SINCE", "SHORT BY", *more, "BECAUSE")
    render.table(header, rows, keys=1 + len(where), whole=wide)


def _tell(node: NodeWhy, output: Output) -> None:
    if not output.for_people:
        render.document(node, output)
        return
    render.line(f"node {node.node}")
    rows = [
        (name, node.allocatable.get(name, "-"), node.promised.get(name, "0"), node.counted.get(name, "0"))
        for name in node.allocatable
    ]
    render.table(("RESOURCE", "ALLOCATABLE", "ALLOCATED", "SCHEDULER COUNTS"), rows, indent="  ")
    if output is Output.WIDE:
        _members(node)
    else:
        for resource, holders in (("cpu", node.holders), ("memory", node.memory_holders)):
            shown = [f"{holder.pod} {holder.amount.removesuffix(f' {resource}')}" for holder in holders[:HOLDERS]]
            more = [f"and {len(holders) - HOLDERS} more (-o wide)"] * (len(holders) > HOLDERS)
            held = ", ".join([*shown, *more])
            render.fact(resource, f"allocated to {held}" if held else "no pod requests any")
    for pod in node.waiting:
        place = f"{pod.position}." if pod.position else "-"
        render.fact(
            "waits", f"{place} {pod.namespace}/{pod.pod}, resize {pod.state}: {readable_text(pod.message) or pod.next}"
        )
    if node.nominated:
        render.fact("kept for", f"{', '.join(node.nominated)}: the scheduler has nominated this node for them")
    if node.shut_out:
        text = "would fit, but the scheduler counts resizes that wait"
        render.fact("kept out", f"{', '.join(node.shut_out)}: {text}")
    for off in node.kept_off:
        render.fact("kept out", f"{off.pod}: {off.because}")
    for note in node.notes:
        render.fact("note", note)


def _members(node: NodeWhy) -> None:
    rows = [
        (
            member.pod,
            member.qos,
            str(member.priority),
            member.promised.get("cpu", "-"),
            member.counted.get("cpu", "-"),
            member.promised.get("memory", "-"),
            member.counted.get("memory", "-"),
            member.why or "-",
        )
        for member in node.members
    ]
    header = ("POD", "QOS", "PRIORITY", "CPU", "COUNTED", "MEMORY", "COUNTED", "BECAUSE")
    render.table(header, rows, indent="  ", whole=True)


def _more(pod: PodWhy) -> tuple[str, str, str]:
    """Generation and how much of it was seen, the place in the queue, and who has what is short."""
    place = f"{pod.position} of {pod.queued}" if pod.queued else "-"
    held = ", ".join(f"{holder.pod} {holder.amount}" for holder in pod.holders)
    return f"{pod.generation} (observed {pod.observed})", place, held or "-"


def _show(pod: PodWhy, *, wide: bool) -> None:
    """`wide` has the holders in a table, with what would free room, and when the condition began."""
    since = f" for {render.duration(pod.waited)} (observed generation {pod.observed} of {pod.generation})"
    state = f"resize {pod.state}{since if pod.since else ''}"
    told = STATES.get(pod.state) or state
    render.styled(pod.pod, render.toned(told, render.judged(pod.state).tone))
    rows = [
        (
            size.container or "(pod)",
            f"{size.resource} {size.side[:-1]}",
            size.desired or "-",
            size.allocated or "-",
            size.actual or "-",
        )
        for size in pod.sizes
    ]
    if rows:
        render.table(("CONTAINER", "VALUE", "DESIRED", "ALLOCATED", "ACTUAL"), rows, indent="  ", keys=2)
    facts = (
        ("node", pod.node),
        ("because", readable_text(pod.message)),
        ("", why_the_class_stays(pod.message)),
        ("short by", pod.short_by),
        ("queue", _queue(pod)),
        (
            "allocated",
            "" if wide else _to(f"{holder.pod} {holder.amount} (priority {holder.priority})" for holder in pod.holders),
        ),
        ("lower", _lower(pod)),
        ("since", pod.since if wide else ""),
        ("ends", ", ".join(pod.ends)),
        *(("room", text) for text in pod.room),
        ("nodes", pod.nodes),
        ("shrunk", pod.gave),
        *(("burst", text) for text in pod.burst),
        ("retried", pod.next),
        *(("trouble", text) for text in pod.troubles),
        *(("note", note) for note in pod.notes),
    )
    for label, text in facts:
        if text:
            render.fact(label, text)
    if wide and pod.holders:
        holders = [
            (holder.pod, holder.amount, str(holder.priority), "yes" if holder.pod in pod.frees else "no")
            for holder in pod.holders
        ]
        render.table(("ALLOCATED TO", "AMOUNT", "PRIORITY", "LOWER PRIORITY"), holders, indent="  ")


def _to(holders: Iterable[str]) -> str:
    listed = ", ".join(holders)
    return f"to {listed}" if listed else ""


def _lower(pod: PodWhy) -> str:
    if not pod.frees:
        return ""
    have = "has a lower priority" if len(pod.frees) == 1 else "have a lower priority"
    return f"{', '.join(pod.frees)} {have}: room comes when one of them shrinks or ends"


def _queue(pod: PodWhy) -> str:
    if not pod.queued:
        return ""
    ahead = f": {', '.join(pod.ahead)} tried first" if pod.ahead else ""
    return f"{pod.position} of {pod.queued}{ahead}"
