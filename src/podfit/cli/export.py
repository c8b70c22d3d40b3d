"""`podfit export`: what runs, as something to deploy; and whether it is what was deployed."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.answers.drift import Drift
from podfit.answers.drift import drift as compared
from podfit.answers.export import Form, document, export, with_sizes
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, parse_target
from podfit.answers.plan.amounts import OptionError
from podfit.answers.plan.recommended_request import RecommendingVpa
from podfit.cli import exits, render
from podfit.cli.cluster_questions import ContextName, Kubeconfig, Name, Namespace, asked, commands
from podfit.cli.manifests import display_name, spec_in
from podfit.cli.output import NarrowOutputOption, Output
from podfit.client.rest import Client


def export_sizes(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...")],
    name: Name = "",
    /,
    *,
    to: Annotated[Form, Parameter(help="A patch with names for kustomize, Helm values, or a bare patch.")] = (
        Form.KUSTOMIZE
    ),
    recommended: Annotated[
        bool, Parameter(negative="", help="What the workload's VPA recommends, instead of what runs.")
    ] = False,
    drift: Annotated[bool, Parameter(negative="", help="Compare instead: exit code 1 when sizes differ.")] = False,
    filename: Annotated[
        Path | None,
        Parameter(
            name=["--filename", "-f"],
            allow_leading_hyphen=True,
            help="--drift: compare with this manifest (- is stdin).",
        ),
    ] = None,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """The accepted sizes of running pods as a file for the next deploy, on stdout; notes go to stderr.

    Where pods differ their largest sizes are taken. Nothing is written to the cluster. Exit code 1: no pod runs, or
    --drift found differences.
    """
    about = parse_target(target, POD, *WORKLOADS, name=name)
    if filename is not None and not drift:
        raise OptionError("-f needs --drift: it names the manifest to compare with")
    manifest = spec_in(filename, about) if filename else None
    if recommended and (drift or not about.is_workload):
        raise OptionError("--recommended needs a workload, such as deployment/NAME, and no --drift")

    async def read(client: Client, where: str) -> tuple[Snapshot, RecommendingVpa | None]:
        seen = await Reader(client, where).read(about)
        return seen, await RecommendingVpa.find(client, about, where) if recommended else None

    found, recommending = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if drift:
        return _drift(
            compared(about, found, manifest=manifest, name=display_name(filename) if filename else ""), output
        )
    sizes = export(about, found)
    if recommending is not None and found.pods:
        sizes = with_sizes(sizes, recommending.containers(found.pods[0], found.limit_ranges))
    for note in sizes.notes:
        render.progress(f"note: {note}")
    if not sizes.pods:
        return _no_pods(str(about), found.namespace)
    render.document(document(sizes, to), "json" if output is Output.JSON else "yaml")
    return exits.DONE


def _drift(drift: Drift, output: Output) -> int:
    if not output.for_people:
        render.document(drift, output)
    else:
        _show(drift)
    if not drift.pods:
        return _no_pods(drift.target, drift.namespace)
    return exits.REFUSED if drift.drifted else exits.DONE


def _no_pods(target: str, namespace: str) -> int:
    """There are no sizes, so none that could be right or wrong."""
    fix = f"see its pods:  {commands().kubectl('describe', target)}"
    render.error(f"{target} has no running pod in namespace {namespace}", fix=(fix,))
    return exits.REFUSED


def _show(drift: Drift) -> None:
    if drift.pods and not drift.drifted:
        run = "pod runs" if drift.pods == 1 else "pods run"
        render.say(f"{drift.target}: {drift.pods} {run} with the sizes of {drift.against}")
    if drift.drifted:
        rows = [
            (
                value.pod,
                value.container or "(pod)",
                f"{value.resource} {value.side[:-1]}",
                value.template or "-",
                value.desired or "-",
                value.allocated or "-",
            )
            for value in drift.differences
        ]
        render.table(("POD", "CONTAINER", "VALUE", "TEMPLATE", "DESIRED", "ALLOCATED"), rows, keys=3)
    for note in drift.notes:
        render.say(note)
