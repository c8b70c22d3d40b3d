"""`podfit why node-group/NAME`: what comes and goes in it, and what is in the way."""

from pathlib import Path

from podfit.answers.facts.node_scaling import NodeScaling, read_node_scaling
from podfit.answers.why.node_group import NodeGroupWhy, why_node_group
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked
from podfit.cli.output import Output
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def why_of_a_node_group(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    async def read(client: Client, _: str) -> NodeScaling:
        return await read_node_scaling(client, SystemClock().now())

    answer = why_node_group(name, asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig))
    if output.for_people:
        _show(answer)
    else:
        render.document(answer, output)
    return exits.DONE if answer.good else exits.REFUSED


def _show(answer: NodeGroupWhy) -> None:
    render.line(
        f"node group {answer.group}  {answer.ready} of {answer.size} ready, from {answer.min_size} to {answer.max_size}"
    )
    if answer.coming:
        render.fact("coming", f"{answer.coming}, by {answer.due}")
    if answer.cannot_grow:
        until = f", until {answer.backoff_until}" if answer.backoff_until else ""
        render.fact("grows not", f"{answer.cannot_grow}{until}")
    if answer.problem:
        render.fact("failed", answer.problem)
    if answer.pods:
        render.table(("POD", "NEXT"), [(pod.pod, pod.next) for pod in answer.pods], indent="  ")
    if answer.nodes:
        render.table(("NODE", "NEXT"), [(node.node, node.next) for node in answer.nodes], indent="  ")
    for note in answer.notes:
        render.fact("note", note)
