"""`podfit export`: what runs, as something to deploy; and whether it is what was deployed."""

import sys
from pathlib import Path
from typing import Annotated, Any

import yaml
from cyclopts import Parameter

from podfit.answers.drift import Drift, manifest_of
from podfit.answers.drift import drift as compared
from podfit.answers.export import Form, document, export
from podfit.answers.target import POD, WORKLOADS, Target, parse_target
from podfit.answers.wish import WishError
from podfit.api.core.pods import PodSpec
from podfit.cli import exits, render
from podfit.cli.asking import ContextName, Kubeconfig, Namespace, snapshot
from podfit.cli.output import NarrowOutputOption, Output


def export_sizes(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, statefulset/NAME, ...")],
    /,
    *,
    to: Annotated[Form, Parameter(help="A patch with names for kustomize, Helm values, or a bare patch.")] = (
        Form.KUSTOMIZE),
    drift: Annotated[bool, Parameter(negative="", help="Compare instead: exit code 1 when sizes differ.")] = False,
    filename: Annotated[Path | None, Parameter(
        name=["--filename", "-f"], help="--drift: compare with this manifest (- is stdin).")] = None,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: NarrowOutputOption = Output.TEXT,
) -> int:  # fmt: skip
    """The accepted sizes of running pods as a file for the next deploy, on stdout; what to know is on stderr.

    Pods that differ give their largest sizes. Read only. Exit code 1: no pod runs, or --drift found differences.
    """
    about = parse_target(target, POD, *WORKLOADS)
    if filename is not None and not drift:
        raise WishError("-f is what --drift compares with; leave it out, or add --drift")
    manifest = _manifest(filename, about) if filename else None
    found = snapshot(about, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if drift:
        return _drift(compared(about, found, manifest=manifest, name=str(filename or "")), output)
    sizes = export(about, found)
    for note in sizes.notes:
        render.progress(f"note: {note}")
    if not sizes.pods:
        render.error(f"{about} has no running pod, so no size to export")
        return exits.REFUSED
    render.document(document(sizes, to), "json" if output is Output.JSON else "yaml")
    return exits.DONE


def _manifest(path: Path, target: Target) -> PodSpec:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        documents: list[Any] = [each for each in yaml.safe_load_all(text) if each]
        return manifest_of(documents, target)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise WishError(f"{path}: {error}") from error


def _drift(found: Drift, output: Output) -> int:
    if not output.for_people:
        render.document(found, output)
    else:
        _show(found)
    return exits.REFUSED if found.drifted else exits.DONE


def _show(found: Drift) -> None:
    if found.pods and not found.drifted:
        run = "pod runs" if found.pods == 1 else "pods run"
        render.line(f"{found.target}: {found.pods} {run} with the sizes of {found.against}")
    if found.drifted:
        rows = [(each.pod, each.container or "(pod)", f"{each.resource} {each.side[:-1]}", each.template or "-",
                 each.desired or "-", each.allocated or "-") for each in found.differences]  # fmt: skip
        render.table(("POD", "CONTAINER", "VALUE", "TEMPLATE", "DESIRED", "ALLOCATED"), rows)
    for note in found.notes:
        render.line(note)
