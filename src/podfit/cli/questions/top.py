"""`podfit top`: usage beside limits, requests and recommendations."""

from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.rights import by_rights
from podfit.answers.top import NO_USAGE, Figures, Order, Top, TopReader
from podfit.answers.top import top as arranged
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
from podfit.cli.output import Output, OutputOption
from podfit.cli.tables import Cell
from podfit.client.rest import Client
from podfit.core.quantity import Quantity
from podfit.net.system import SystemClock

Grid = dict[str, list[str | Cell]]
HELD_BACK, NEARLY = 0.25, 0.9
"""From which share on throttling, and usage of a limit, is worth a look."""


def top(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, ...; else the pods of the namespace")] = "",
    name: Name = "",
    /,
    *,
    sort: Annotated[Order, Parameter(help="Largest first, but for name; % is the share of the limit.")] = "name",
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative="", help="Again and again, until Ctrl-C.")] = (
        False
    ),
    interval: Annotated[float, Parameter(help="--watch: seconds between two readings.")] = 5.0,
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """What running containers use, beside their limits, their requests and what a VPA recommends. Nothing is written.

    A request that is not granted yet is shown as allocated→desired. Exit code 4: no usage is available.
    """
    about = narrowed(target, name, everywhere=everywhere, selector=selector)
    clock = SystemClock()

    async def read(client: Client, where: str) -> Top:
        reader = TopReader(client, "" if everywhere else where, clock, labels=selector)
        last = Frame()
        while True:
            found = arranged(await reader.read(about), sort)
            if not found.rows and not everywhere and (missing := await missing_namespace(client, where)):
                raise missing
            if not watch or render.reader_left():
                return found
            last = _frame(found, output, last, everywhere=everywhere)
            await clock.sleep(interval)
            if output.for_people:
                render.line()

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    return _show(found, output, everywhere=everywhere)


class Frame(msgspec.Struct, frozen=True):
    """What `--watch` has shown: columns stay, and notes are not repeated, `left_out` neither."""

    columns: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def _frame(answer: Top, output: Output, last: Frame, *, everywhere: bool) -> Frame:
    notes, columns, left_out = by_rights((*answer.notes, *answer.missing)), last.columns, last.left_out
    wide = output is Output.WIDE
    if not output.for_people:
        render.document(answer, output)
        return last
    if answer.rows:
        grid = _grid(answer, everywhere=everywhere, wide=wide, kept=columns)
        columns = frozenset(grid)
        keys = tuple(grid).index("CONTAINER") + 1
        rows = list(zip(*grid.values(), strict=True))
        left_out = render.table(tuple(grid), rows, keys=keys, whole=wide, told=left_out)
    else:
        render.line("no running container")
    for line in notes if notes != last.notes else ():
        render.progress(f"note: {line}")
    return Frame(columns, notes, left_out)


def _show(answer: Top, output: Output, *, everywhere: bool) -> int:
    nothing = bool(answer.rows and not answer.source)
    told = replace(answer, missing=tuple(line for line in answer.missing if line != NO_USAGE)) if nothing else answer
    _frame(told if output.for_people else answer, output, Frame(), everywhere=everywhere)
    if nothing:
        fix = (f"fix:  {answer.fix}",) if answer.fix else ()
        evidence = () if output.for_people else answer.notes
        render.error("no metrics: neither metrics.k8s.io nor a kubelet provides usage", evidence=evidence, fix=fix)
        return exits.API
    if answer.fix and output.for_people:
        render.advice(f"fix:  {answer.fix}")
    return exits.DONE


def _grid(answer: Top, *, everywhere: bool, wide: bool, kept: frozenset[str]) -> Grid:
    """Columns by their header. Those with no value in the whole cluster are left out, but not `kept` ones."""
    rows = answer.rows
    grid: Grid = {"NAMESPACE": [row.namespace for row in rows]} if everywhere else {}
    grid |= {"POD": [row.pod for row in rows], "CONTAINER": [row.container for row in rows]}
    if wide:
        grid["NODE"] = [row.node for row in rows]
    for name, short in (("cpu", "CPU"), ("memory", "MEM")):
        figures: list[Figures] = [getattr(row, name) for row in rows]
        grid[short] = [_used(one, name) for one in figures]
        grid[f"{short} REQUEST"] = [_request(one, name) for one in figures]
        grid[f"{short} LIMIT"] = [readable_amount(name, one.limit) or "-" for one in figures]
        if answer.vpas or f"{short} VPA" in kept:
            grid[f"{short} VPA"] = [_recommended(one, name, wide=wide) for one in figures]
        if name == "cpu" and (answer.throttling or wide or "THROTTLED" in kept):
            grid["THROTTLED"] = [_throttled(row.throttled) for row in rows]
    if wide:
        grid["VPA"] = [row.vpa or "-" for row in rows]
    if wide or "RESIZE" in kept or any(row.resize for row in rows):
        grid["RESIZE"] = [render.judged(row.resize) if row.resize else "-" for row in rows]
    return grid


def _used(figures: Figures, resource: str) -> str | Cell:
    """`130m (26 %)`, the share being that of the limit."""
    if not figures.used:
        return "-"
    amount = Quantity.parse(figures.used)
    text = f"{amount.milli()}m" if resource == "cpu" else f"{-(-amount.value() // (1 << 20))}Mi"
    if figures.of_limit is None:
        return text
    return render.toned(f"{text} ({_share(figures.of_limit)})", _tone(figures.of_limit, NEARLY))


def _request(figures: Figures, resource: str) -> str:
    allocated, desired = (readable_amount(resource, text) for text in (figures.allocated, figures.desired))
    if figures.desired == figures.allocated:
        return desired or "-"
    return f"{allocated or 'none'}→{desired or 'none'}"


def _recommended(figures: Figures, resource: str, *, wide: bool) -> str:
    lower, target, upper = (
        readable_amount(resource, text) or "-" for text in (figures.lower, figures.recommended, figures.upper)
    )
    return target + (f" ({lower}..{upper})" if wide and figures.recommended else "")


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _throttled(share: float | None) -> str | Cell:
    return "-" if share is None else render.toned(_share(share), _tone(share, HELD_BACK))


def _tone(share: float, notable: float) -> str:
    """All of it is bad, from `notable` on it is worth a look; as it is shown, so 99.6 % is all of it."""
    if round(share, 2) >= 1:
        return render.BAD
    return render.WAITS if share >= notable else ""
