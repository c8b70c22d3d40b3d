"""`podfit plan TARGET --burst`: which burst ceilings the pods would be granted, and what their nodes have moved."""

from pathlib import Path

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import Target
from podfit.answers.plan.ceilings import CeilingsPlan
from podfit.answers.plan.ceilings import ceilings as planned_ceilings
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked, commands
from podfit.cli.output import Output
from podfit.client.rest import Client


def plan_burst(about: Target, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    """Exit code 1: not every pod may burst, or none runs."""

    async def read(client: Client, where: str) -> CeilingsPlan:
        return planned_ceilings(await Reader(client, where).read(about, usage=True))

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if output.for_people:
        _show(found)
    else:
        render.document(found, output)
    if not found.pods:
        fix = f"see its pods:  {commands().kubectl('describe', str(about))}"
        render.error(f"{about} has no running pod in namespace {found.namespace}", fix=(fix,))
    return exits.DONE if found.good else exits.REFUSED


def _show(answer: CeilingsPlan) -> None:
    if not answer.pods:
        return
    render.say(f"cluster {answer.server}, namespace {answer.namespace}, read only")
    render.line()
    rows = [
        (pod.pod, pod.vpa or "-", pod.verdict, "; ".join(pod.ranges) or "-", pod.text or "-") for pod in answer.pods
    ]
    render.table(("POD", "VPA", "CEILING", "LIMITS MOVE", "WHAT HOLDS IT BACK"), rows)
    render.line()
    for pod in answer.pods:
        if pod.burst:
            render.say(f"{pod.pod} now: {pod.burst}")
    for note in answer.notes:
        render.say(note)
