"""`podfit plan hpa/NAME --to-average-value`: a share of requests as an amount, and the command that writes it."""

import json
from pathlib import Path

from podfit.answers.plan.average_value import AverageValues, read_average_values
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked, commands
from podfit.cli.output import Output
from podfit.client.rest import Client
from podfit.net.system import SystemClock


def plan_average_value(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    """Exit code 1: not every share of it can be converted, or it has none."""

    async def read(client: Client, where: str) -> AverageValues:
        return await read_average_values(client, name, where, SystemClock())

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if output.for_people:
        _show(found)
    else:
        render.document(found, output)
    return exits.DONE if found.patch and len(found.patch) == len(found.metrics) else exits.REFUSED


def _show(answer: AverageValues) -> None:
    rows = [
        (
            told.resource + (f" of {told.container}" if told.container else ""),
            f"{told.utilization} %",
            told.request or "-",
            told.average_value or "-",
            told.why_not or "-",
        )
        for told in answer.metrics
    ]
    if rows:
        render.table(("METRIC", "UTILIZATION", "REQUEST NOW", "AVERAGE VALUE", "WHY NOT"), rows)
    for note in answer.notes:
        render.say(note)
    if answer.patch:
        command = commands().kubectl("patch", "hpa", answer.hpa, "--type=json", "-p", json.dumps(answer.patch))
        render.line(f"next: {command}")
