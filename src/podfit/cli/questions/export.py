"""`podfit export`: what runs, as something to deploy; and whether it is what was deployed."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from podfit.answers.drift import Drift
from podfit.answers.drift import drift as compared
from podfit.answers.export import Export, Form, document, export, placed, totals, with_sizes
from podfit.answers.facts.selection import AT_ONCE, Selected, Selection, parse_selection, select
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target, parse_target
from podfit.answers.plan.amounts import OptionError
from podfit.answers.plan.recommended_request import RecommendingVpa
from podfit.cli import exits, render
from podfit.cli.cluster_questions import (
    AllNamespaces,
    ContextName,
    Kubeconfig,
    More,
    Name,
    Namespace,
    Selector,
    asked,
    commands,
)
from podfit.cli.output import NarrowOutputOption, Output
from podfit.cli.questions.manifests import display_name, spec_in
from podfit.client.rest import Client


def export_sizes(
    target: Annotated[
        str, Parameter(help="pod/NAME, deployment/NAME, ...; or a kind, such as deployment, with -l or -A.")
    ] = "",
    name: Name = "",
    /,
    *more: More,
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
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """The accepted sizes of running pods as a file for the next deploy, on stdout; notes go to stderr.

    Where pods differ their largest sizes are taken. Nothing is written to the cluster. Exit code 1: no pod runs, or
    --drift found differences.
    """
    if filename is not None and not drift:
        raise OptionError("-f needs --drift: it names the manifest to compare with")
    words = [word for word in (target, name, *more) if word]
    selection = parse_selection(words, selector, everywhere=everywhere)
    if selection is not None:
        if filename is not None:
            raise OptionError(f"-f is about one target, not about {selection}")
        check_selection(selection, to)
        wanted = _Wanted(recommended=recommended, drift=drift)
        several = asked(
            partial(_read_several, selection=selection, wanted=wanted),
            namespace=namespace,
            context=context,
            kubeconfig=kubeconfig,
        )
        return _drifts(several, output) if drift else _export_several(several, to, output)
    about = parse_target(target, POD, *WORKLOADS, name=name)
    manifest = spec_in(filename, about) if filename else None
    if recommended and (drift or not about.is_workload):
        raise OptionError("--recommended needs a workload, such as deployment/NAME, and no --drift")

    async def read(client: Client, where: str) -> _Running:
        return await _read(client, Selected(about, where), _Wanted(recommended=recommended, drift=drift))

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    if drift:
        named = display_name(filename) if filename else ""
        return _drift(compared(about, found.snapshot, manifest=manifest, name=named), output)
    sizes = found.sizes
    for note in sizes.notes:
        render.progress(f"note: {note}")
    if not sizes.pods:
        return _no_pods(str(about), found.snapshot.namespace)
    render.document(document(sizes, to), "json" if output is Output.JSON else "yaml")
    return exits.DONE


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    recommended: bool
    drift: bool


class _Running(msgspec.Struct, frozen=True):
    """A target as it runs; `recommending` where its VPA's sizes are wanted."""

    target: Target
    snapshot: Snapshot
    recommending: RecommendingVpa | None

    @property
    def sizes(self) -> Export:
        sizes = export(self.target, self.snapshot)
        if self.recommending is None or not self.snapshot.pods:
            return sizes
        return with_sizes(sizes, self.recommending.template_sizes(self.snapshot))


async def _read(client: Client, selected: Selected, wanted: _Wanted) -> _Running:
    about, where = selected.target, selected.namespace
    seen = await Reader(client, where).read(about)
    recommending = await RecommendingVpa.find(client, about, where) if wanted.recommended else None
    return _Running(about, seen, recommending)


def check_selection(selection: Selection, to: Form) -> None:
    """Raises OptionError: what is exported has to be told apart, and pods of owners are their owners' to write."""
    if to is Form.PATCH:
        raise OptionError("--to patch names no object: of several write --to kustomize")
    if not selection.targets and (selection.kind is None or selection.kind is POD):
        raise OptionError(f"name a kind of workloads, such as deployment {selection}")


async def _read_several(client: Client, where: str, *, selection: Selection, wanted: _Wanted) -> list[_Running]:
    limit = asyncio.Semaphore(AT_ONCE)

    async def read(selected: Selected) -> _Running:
        async with limit:
            return await _read(client, selected, wanted)

    return await asyncio.gather(*map(read, await select(client, where, selection)))


def _export_several(several: Sequence[_Running], to: Form, output: Output) -> int:
    """A document for each that runs, with its namespace; of Helm values one, by kind and name (and
    namespace, where there are several). Notes and the sums of
    what is exported go to stderr.
    """
    found = [(running, sizes) for running in several if (sizes := running.sizes).pods]
    for running in several:
        if not running.sizes.pods:
            render.progress(f"note: {running.target} in namespace {running.snapshot.namespace} has no running pod")
    for running, sizes in found:
        for note in sizes.notes:
            render.progress(f"note: {running.target}: {note}")
    if not found:
        render.error("none of what is selected has a running pod")
        return exits.REFUSED
    for line in totals([sizes for _, sizes in found]):
        render.progress(f"note: {line}")
    documents = [placed(document(sizes, to), running.snapshot.namespace, to) for running, sizes in found]
    if to is Form.HELM:
        where = {running.snapshot.namespace for running, _ in found}
        names = [
            f"{running.snapshot.namespace}/{running.target}" if len(where) > 1 else str(running.target)
            for running, _ in found
        ]
        by_target = dict(zip(names, documents, strict=True))
        render.document(by_target, "json" if output is Output.JSON else "yaml")
    elif output is Output.JSON:
        render.document({"apiVersion": "v1", "kind": "List", "items": documents}, "json")
    else:
        render.documents(documents)
    return exits.DONE


def _drifts(several: Sequence[_Running], output: Output) -> int:
    drifts = [compared(running.target, running.snapshot) for running in several]
    if not output.for_people:
        render.document(drifts, output)
    else:
        for drift in drifts:
            _show(drift)
    if not any(drift.pods for drift in drifts):
        render.error("none of what is selected has a running pod")
        return exits.REFUSED
    return exits.REFUSED if any(drift.drifted for drift in drifts) else exits.DONE


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
