"""`podfit plan TARGET --fit`: the largest size that the pods can have now, and who stands in the way of more."""

from pathlib import Path

from podfit.answers.facts.readable import readable_text
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import Target
from podfit.answers.plan.fit import Fit, LargestSize
from podfit.answers.plan.fit import fit as largest_sizes
from podfit.cli import exits, render
from podfit.cli.cluster_questions import asked, commands
from podfit.cli.output import Output
from podfit.client.rest import Client


def plan_fit(
    about: Target, container: str, output: Output, *, namespace: str, context: str, kubeconfig: Path | None
) -> int:
    """Exit code 1: the pods do not have what they ask for now, it is not known, or none runs."""

    async def read(client: Client, where: str) -> Fit:
        return largest_sizes(await Reader(client, where).read(about, usage=True), container)

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if output.for_people:
        _show(found, about, container)
    else:
        render.document(found, output)
    if not found.pods:
        fix = f"see its pods:  {commands().kubectl('describe', str(about))}"
        render.error(f"{about} has no running pod in namespace {found.namespace}", fix=(fix,))
    return exits.DONE if found.good else exits.REFUSED


def _show(answer: Fit, about: Target, container: str) -> None:
    if not answer.sizes:
        return
    render.say(f"cluster {answer.server}, namespace {answer.namespace}, read only")
    render.line()
    rows = [(size.resource, size.now or "-", size.largest or "-", _how(size), _why(size)) for size in answer.sizes]
    render.table(("RESOURCE", "NOW", "LARGEST", "HOW", "WHY NO MORE"), rows)
    render.line()
    for note in answer.notes:
        render.say(note)
    which = ["-c", container] if container else []
    for size in answer.sizes:
        if size.grows:
            command = commands().podfit("resize", str(about), *which, f"--{size.resource}", size.largest)
            render.line(f"next: {command}")


def _how(size: LargestSize) -> str:
    if not size.grows:
        return "-"
    return f"restarts {', '.join(size.restarts)}" if size.restarts else "in place, no restart"


def _why(size: LargestSize) -> str:
    """Why the first pod cannot have the next size."""
    what = f"short of {size.short_by}" if size.short_by else readable_text(size.text) or size.verdict
    holders = f"; the room is held by {', '.join(size.blocked_by)}" if size.blocked_by else ""
    return f"{size.more}: {size.pod} {size.verdict}, {what}{holders}"
