"""`podfit why node/NAME --removable`: whether the node could go, and else what keeps it."""

from pathlib import Path

from podfit.answers.why.removable import RemovableWhy, RemovalFacts, read_removal_facts, why_removable
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked
from podfit.cli.output import Output
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def why_of_a_removal(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    async def read(client: Client, _: str) -> RemovalFacts:
        return await read_removal_facts(client, name)

    facts = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    answer = why_removable(facts, SystemClock().now())
    if output.for_people:
        _show(answer)
    else:
        render.document(answer, output)
    return exits.DONE if answer.good else exits.REFUSED


def _show(answer: RemovableWhy) -> None:
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
