"""`podfit recommend`: right sizes for what runs, VPA or not."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from msgspec.structs import replace

from podfit.answers.autoscaling.prices import PriceError, Prices, priced, prices_of
from podfit.answers.autoscaling.recommend import MEBI, Recommendations, Size, recommend
from podfit.answers.autoscaling.recommended_facts import Facts, FactsReader, ReadBlocks, UsageWindow
from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.rights import by_rights
from podfit.answers.plan.amounts import RequestError
from podfit.cli import exits, render
from podfit.cli.cluster_questions import (
    AllNamespaces,
    ContextName,
    Kubeconfig,
    Name,
    Namespace,
    Selector,
    asked,
    missing_namespace,
    narrowed,
)
from podfit.cli.flags import Given, takes
from podfit.cli.output import Output, SheetOption, SheetOutput
from podfit.cli.questions.history import DirectoryOption, readable_history
from podfit.cli.questions.manifests import display_name, documents_of
from podfit.cli.questions.sheets import csv_sheet, markdown_sheet
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.durations import parse_duration
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU
from podfit.decide.autoscaling.flags import EstimatorFlags, ResourceFlags
from podfit.decide.autoscaling.tracked import PodKey
from podfit.net.system import SystemClock
from podfit.process.errors import UsageError
from podfit.process.vpa.history import HistoryOptions
from podfit.vpa.history.gathered import TooMuchError, gathered
from podfit.vpa.history.own.streaming import own_history
from podfit.vpa.history.prometheus import read_history
from podfit.vpa.history.replay import Blocks

LOW = 0.1
"""Below this confidence a size is a guess."""


@takes(HistoryOptions)
def recommend_sizes(
    given: Given,
    target: Annotated[str, Parameter(help="deployment/NAME, pod/NAME, ...; else all of the namespace")] = "",
    name: Name = "",
    /,
    *,
    watch: Annotated[
        str, Parameter(name="--for", help="How long usage is watched where nothing else is known; 0 for not at all.")
    ] = "1m",
    interval: Annotated[str, Parameter(help="From one reading to the next.")] = "15s",
    percentile: Annotated[float, Parameter(help="Share of samples that the size covers.")] = 0.9,
    margin: Annotated[float, Parameter(help="What is put on top, as a share.")] = 0.15,
    min_cpu: Annotated[float, Parameter(help="The least CPU of a pod, in millicores.")] = 10.0,
    min_memory: Annotated[float, Parameter(help="The least memory of a pod, in MiB.")] = 16.0,
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    data: Annotated[
        Path | None, Parameter(help="Data directory of the `podfit up` whose history --storage history reads.")
    ] = None,
    history_dir: DirectoryOption = None,
    prices: Annotated[
        Path | None, Parameter(help="A YAML file with the price of an hour: cpu (a core), memory (a GiB), currency.")
    ] = None,
    output: SheetOption = SheetOutput.TEXT,
) -> int:
    """Right sizes of running containers, why, how sure that is, and what they would save in requests.

    From VPAs and their checkpoints, from Prometheus or podfit's own history, else from usage that is watched for a
    while. Nothing is written.
    """
    about = narrowed(target, name, everywhere=everywhere, selector=selector)
    watching = UsageWindow(0.0 if watch in ("0", "0s") else _seconds(watch, "--for"), _seconds(interval, "--interval"))
    flags, clock = _flags(percentile, margin, min_cpu, min_memory), SystemClock()
    source = _source(given.options(HistoryOptions), data, history_dir)
    table = _prices(prices) if prices is not None else None

    async def read(client: Client, where: str) -> Facts:
        wanted = (about.kind.kind, about.name) if about is not None else None
        tell = render.progress if output.for_people else None
        reader = FactsReader(client, clock, "" if everywhere else where, labels=selector, wanted=wanted, tell=tell)
        async with _past(source, clock, "" if everywhere else where) as past:
            found = await reader.read(watching, past)
        if not found.pods and about is not None:  # raises when there is no such thing
            await client.request("GET", f"{about.kind.path}/namespaces/{where}/{about.kind.resource}/{about.name}")
        if not found.pods and not everywhere and (missing := await missing_namespace(client, where)):
            raise missing
        return found

    facts = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    recommendations = recommend(facts, flags)
    if table is not None:
        recommendations = priced(recommendations, table)
    if output.is_sheet:
        return _sheet(recommendations, output)
    return _show(recommendations, Output(output), everywhere=everywhere)


class _Source(NamedTuple):
    """A source of usage of the past; `own` is the directory of podfit's history, where that is asked for."""

    options: HistoryOptions
    own: Path | None


def _source(options: HistoryOptions, data: Path | None, history_dir: Path | None) -> _Source:
    """Raises UsageError, MachineError."""
    options.check()
    if not options.own and (data, history_dir) != (None, None):
        flag = "--history-dir" if history_dir is not None else "--data"
        raise UsageError(f"{flag}: it goes with --storage history")
    return _Source(options, readable_history(data, history_dir) if options.own else None)


@asynccontextmanager
async def _past(source: _Source, clock: Clock, namespace: str) -> AsyncIterator[ReadBlocks | None]:
    """How it is read; None where only the cluster is asked. Of all namespaces where none is named."""
    options, own = source
    server = options.server(clock) if options.wanted else None

    async def of_server(now: float, _: Collection[PodKey]) -> Blocks:
        assert server is not None
        return await read_history(server, options.settings(namespace), now)

    async def of_files(now: float, pods: Collection[PodKey]) -> Blocks:
        assert own is not None
        read = own_history(own, options.asked.length, namespace, lambda file: render.progress(f"left out: {file}"))
        try:
            return await gathered(await read(now), pods)
        except TooMuchError as error:
            raise UsageError(f"{error}: name a workload, or a shorter --history-length") from error

    try:
        yield of_files if own is not None else of_server if server is not None else None
    finally:
        if server is not None:
            await server.close()


def _prices(path: Path) -> Prices:
    """Raises RequestError."""
    name, documents = display_name(path), documents_of(path)
    if len(documents) > 1:
        raise RequestError(f"{name}: {len(documents)} documents where one table of prices is expected")
    try:
        return prices_of(documents[0])
    except PriceError as error:
        raise RequestError(f"{name}: {error}") from error


def _flags(percentile: float, margin: float, min_cpu: float, min_memory: float) -> EstimatorFlags:
    """Raises UsageError."""
    if not 0 < percentile <= 1:
        raise UsageError(f"--percentile {percentile:g}: it has to be more than 0 and at most 1")
    for flag, value in (("--margin", margin), ("--min-cpu", min_cpu), ("--min-memory", min_memory)):
        if value < 0:
            raise UsageError(f"{flag} {value:g}: it has to be at least 0")
    share = replace(ResourceFlags(), target=percentile)
    return EstimatorFlags(cpu=share, memory=share, margin=margin, min_cpu_millicores=min_cpu, min_memory_mb=min_memory)


SHEET = (
    *("namespace", "workload", "pods", "container", "resource", "unit", "request", "recommended", "lower", "upper"),
    *("saves", "saves_monthly", "currency", "confidence", "samples", "source", "reason"),
)
"""Columns; amounts are numbers in the row's unit, cores or MiB, and what they save is that of all pods."""


def _sheet(recommendations: Recommendations, output: SheetOutput) -> int:
    rows = [
        (
            *(row.namespace, row.workload, row.pods, size.container, size.resource),
            "cores" if size.resource == CPU else "MiB",
            _numbers(size.resource, size.request),
            *(_number(size.resource, text) for text in (size.recommended, size.lower, size.upper, size.saves)),
            *(float(size.saves_monthly) if size.saves_monthly else None, recommendations.currency or None),
            *(size.confidence, size.samples, size.source, size.reason),
        )
        for row in recommendations.workloads
        for size in row.sizes
    ]
    (csv_sheet if output is SheetOutput.CSV else markdown_sheet)(SHEET, rows)
    return exits.DONE if rows else exits.REFUSED


def _number(resource: str, text: str) -> float | None:
    if not text:
        return None
    amount = Quantity.parse(text)
    return amount.nano / 1e9 if resource == CPU else round(amount.nano / 1e9 / MEBI, 3)


def _numbers(resource: str, texts: str) -> float | str | None:
    """A number, or several where pods differ."""
    numbers = [_number(resource, text) for text in texts.split(", ")]
    return numbers[0] if len(numbers) == 1 else ", ".join(map(str, numbers))


def _seconds(text: str, flag: str) -> float:
    """More than 0. Raises UsageError."""
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
    if found <= 0:
        raise UsageError(f"{flag} {text}: it has to be more than 0")
    return found


def _show(recommendations: Recommendations, output: Output, *, everywhere: bool) -> int:
    if not output.for_people:
        render.document(recommendations, output)
        return exits.DONE if recommendations.workloads else exits.REFUSED
    wide = output is Output.WIDE
    monthly = ("A MONTH",) if recommendations.saves_monthly else ()
    header = (
        *("WORKLOAD", "PODS", "CONTAINER", "RESOURCE", "REQUEST", "SIZE", "SAVES", *monthly),
        *("SURE", "FROM", "BECAUSE"),
    )
    more = ("LOWER", "UPPER", "SAMPLES") if wide else ()
    rows = [
        (
            *((row.namespace,) if everywhere else ()),
            row.workload,
            str(row.pods),
            size.container,
            size.resource,
            ", ".join(readable_amount(size.resource, amount) for amount in size.request.split(", ")) or "none",
            readable_amount(size.resource, size.recommended),
            readable_amount(size.resource, size.saves),
            *((size.saves_monthly,) if recommendations.saves_monthly else ()),
            _sure(size),
            size.source,
            *((*_bounds(size), str(size.samples)) if wide else ()),
            size.reason,
        )
        for row in recommendations.workloads
        for size in row.sizes
    ]
    if rows:
        columns = (*(("NAMESPACE",) if everywhere else ()), *header[:-1], *more, header[-1])
        render.table(columns, rows, keys=columns.index("RESOURCE") + 1, whole=wide)
        render.fact(*total_saved(recommendations.saves))
        if recommendations.saves_monthly:
            render.fact("a month", f"{recommendations.saves_monthly} {recommendations.currency}".rstrip())
    else:
        render.line("nothing is known of any running container")
    for container in recommendations.unknown:
        render.progress(f"note: nothing is known of {container}")
    for note in by_rights(recommendations.notes):
        render.progress(f"note: {note}")
    return exits.DONE if rows else exits.REFUSED


def _bounds(size: Size) -> tuple[str, str]:
    return readable_amount(size.resource, size.lower) or "-", readable_amount(size.resource, size.upper) or "-"


def total_saved(saves: Mapping[str, str]) -> tuple[str, str]:
    """`saves 600m cpu in requests; needs 234Mi memory more`."""
    amounts = {name: readable_amount(name, saved.removeprefix("-")) for name, saved in saves.items() if saved != "0"}
    less = ", ".join(f"{amount} {name}" for name, amount in amounts.items() if not saves[name].startswith("-"))
    more = ", ".join(f"{amount} {name}" for name, amount in amounts.items() if saves[name].startswith("-"))
    if less:
        return "saves", f"{less} in requests" + (f"; needs {more} more" if more else "")
    return ("needs", f"{more} more in requests") if more else ("saves", "nothing: requests are as recommended")


def _sure(size: Size) -> str:
    """A day of minutes is as sure as it gets."""
    if size.confidence is None:
        return "-"
    if size.confidence < LOW:
        return "a guess"
    return f"{min(size.confidence, 1.0):.0%}"
