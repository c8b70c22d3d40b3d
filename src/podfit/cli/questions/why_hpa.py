"""`podfit why hpa/NAME`: what each metric wants, what holds it back, and who acts next."""

from pathlib import Path

from podfit.answers.why.hpa import HpaWhy, why_hpa
from podfit.answers.why.hpa_facts import HpaFacts, read_hpa
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked
from podfit.cli.output import Output
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def why_of_an_hpa(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    async def read(client: Client, where: str) -> HpaFacts:
        return await read_hpa(client, name, where, SystemClock())

    found = why_hpa(asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig))
    if output.for_people:
        _show(found)
    else:
        render.document(found, output)
    return exits.DONE if found.good else exits.REFUSED


def _show(answer: HpaWhy) -> None:
    render.say(f"hpa {answer.hpa}  for {answer.target}, {answer.least} to {answer.most} replicas")
    rows = [
        (
            metric.metric,
            metric.current or "-",
            metric.target or "-",
            "-" if metric.ratio is None else f"{metric.ratio:g}",
            "-" if metric.wants is None else str(metric.wants),
        )
        for metric in answer.metrics
    ]
    if rows:
        render.table(("METRIC", "CURRENT", "TARGET", "RATIO", "WANTS"), rows, indent="  ")
    if answer.replicas is not None:
        coming = "not known" if answer.next is None else str(answer.next)
        wanted = "" if answer.wanted is None else f", {answer.wanted} wanted before any bound"
        render.fact("replicas", f"{answer.replicas} now, {coming} next{wanted}")
    for label, text in (("active", answer.active), ("held", answer.held), ("limited", answer.limited)):
        if text:
            render.fact(label, text)
    for label, texts in (("changes", answer.changes), ("next", answer.acts), ("note", answer.notes)):
        for text in texts:
            render.fact(label, text)
