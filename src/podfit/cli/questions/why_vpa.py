"""`podfit why vpa/NAME`: its numbers, step by step, of slices as well, and the pods that differ from them."""

from pathlib import Path

from podfit.answers.autoscaling.vpas import EstimateStep
from podfit.answers.facts.readable import readable_amount
from podfit.answers.why.vpa import VpaFacts, VpaWhy, read_facts, why_vpa
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked
from podfit.cli.output import Output
from podfit.client.rest import Client
from podfit.net.system import SystemClock

MOST_SLICES_SHOWN = 40
"""Rows."""


def why_of_a_vpa(name: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None) -> int:
    async def read(client: Client, where: str) -> VpaFacts:
        return await read_facts(client, name, where)

    facts, now = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig), SystemClock().now()
    steps: tuple[EstimateStep, ...] = ()
    if facts.checkpoints:
        from podfit.answers.autoscaling.estimate_steps import estimate_steps  # loads NumPy

        told = estimate_steps(facts.checkpoints, facts.vpa, now.timestamp())
        steps = tuple(step for chain in told.values() for step in chain)
    found = why_vpa(facts, now, steps)
    if output.for_people:
        _show_vpa(found)
    else:
        render.document(found, output)
    return exits.DONE if found.good else exits.REFUSED


def _show_vpa(answer: VpaWhy) -> None:
    render.say(f"vpa {answer.vpa}  for {answer.target}, mode {answer.mode}: {answer.means}")
    rows = [
        (
            chain.container,
            chain.resource,
            *(
                readable_amount(chain.resource, amount) or "-"
                for amount in (chain.uncapped, chain.target, chain.lower, chain.upper)
            ),
            chain.capped or "-",
        )
        for chain in answer.chains
    ]
    if rows:
        header = ("CONTAINER", "RESOURCE", "UNCAPPED", "TARGET", "LOWER", "UPPER", "CAPPED BY")
        render.table(header, rows, indent="  ", keys=2)
    if answer.steps:
        steps = [
            (step.container, step.resource, step.step, readable_amount(step.resource, step.value), step.because)
            for step in answer.steps
        ]
        render.table(("CONTAINER", "RESOURCE", "STEP", "AFTER IT", "BECAUSE"), steps, indent="  ", keys=3)
    if answer.slices:
        _show_slices(answer)
    if answer.age is not None:
        render.fact("updated", f"{render.duration(answer.age)} ago ({answer.updated})")
    for condition in answer.conditions:
        render.fact("condition", condition)
    if answer.stands:
        stands = [
            (
                *(stand.pod, stand.container, stand.resource),
                readable_amount(stand.resource, stand.request) or "none",
                readable_amount(stand.resource, stand.target),
                *(stand.stands, stand.why),
            )
            for stand in answer.stands
        ]
        render.table(
            ("POD", "CONTAINER", "RESOURCE", "REQUEST", "TARGET", "REQUEST IS", "BECAUSE"), stands, indent="  ", keys=3
        )
    elif answer.pods and answer.chains:
        render.fact("pods", f"{answer.pods}, all with the target")
    for step in answer.next:
        render.fact("next", f"{answer.updater} {step}")
    for note in answer.notes:
        render.fact("note", note)


def _show_slices(answer: VpaWhy) -> None:
    rows = [
        (
            *(one.slice or "(all pods)", str(one.pods), one.container, one.resource),
            *(readable_amount(one.resource, amount) for amount in (one.target, one.lower, one.upper)),
        )
        for one in answer.slices
    ]
    header = ("SLICE", "PODS", "CONTAINER", "RESOURCE", "TARGET", "LOWER", "UPPER")
    render.table(header, rows[:MOST_SLICES_SHOWN], indent="  ", keys=3)
    if len(rows) > MOST_SLICES_SHOWN:
        render.fact("note", f"{len(rows) - MOST_SLICES_SHOWN} more rows of slices: see -o json")
