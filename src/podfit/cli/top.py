"""`podfit top`: usage beside limits, requests and recommendations."""

from typing import Annotated

from cyclopts import Parameter

from podfit.answers.target import POD, WORKLOADS, TargetError, parse_target
from podfit.answers.top import Figures, Order, Top, TopReader
from podfit.answers.top import top as arranged
from podfit.cli import exits, render
from podfit.cli.asking import AllNamespaces, ContextName, Kubeconfig, Namespace, Selector, asked, missing_namespace
from podfit.cli.output import Output, OutputOption
from podfit.client.rest import Client
from podfit.core.quantity import Quantity
from podfit.net.system import SystemClock

Grid = dict[str, list[str]]


def top(
    target: Annotated[str, Parameter(help="pod/NAME, deployment/NAME, ...; else the pods of the namespace")] = "",
    /,
    *,
    sort: Annotated[Order, Parameter(help="Largest first, but for name; % is the share of the limit.")] = "name",
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative="", help="Again and again, until Ctrl-C.")] = (
        False),
    interval: Annotated[float, Parameter(help="--watch: seconds between two readings.")] = 5.0,
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """What running containers use, beside their limits, their requests and what a VPA recommends. Read only.

    A request that is not granted yet is shown as allocated→desired. Exit code 4: nobody tells what is used.
    """
    if target and (everywhere or selector):
        raise TargetError(f"-A and -l say which pods; leave out {target}, or them")
    about = parse_target(target, POD, *WORKLOADS) if target else None
    clock = SystemClock()

    async def read(client: Client, where: str) -> Top:
        reader = TopReader(client, "" if everywhere else where, clock, labels=selector)
        while True:
            found = arranged(await reader.read(about), sort)
            if not found.rows and not everywhere and (missing := await missing_namespace(client, where)):
                raise missing
            if not watch:
                return found
            _show(found, output, everywhere=everywhere)
            await clock.sleep(interval)
            if output.for_people:
                render.line()

    found = asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)
    return _show(found, output, everywhere=everywhere)


def _show(found: Top, output: Output, *, everywhere: bool) -> int:
    if not output.for_people:
        render.document(found, output)
    elif found.rows:
        grid = _grid(found, everywhere=everywhere, wide=output is Output.WIDE)
        render.table(tuple(grid), zip(*grid.values(), strict=True))
    else:
        render.line("no container runs here")
    if output.for_people:
        for line in (*found.notes, *found.missing):
            render.progress(f"note: {line}")
    if found.rows and not found.source:
        fix = (f"fix:  {found.fix}",) if found.fix else ()
        render.error("nobody here tells what containers use", evidence=found.notes, fix=fix)
        return exits.API
    if found.fix and output.for_people:
        render.progress(f"fix:  {found.fix}")
    return exits.DONE


def _grid(found: Top, *, everywhere: bool, wide: bool) -> Grid:
    """Columns by their header. Those of which nothing is known in the whole cluster are left out."""
    rows = found.rows
    grid: Grid = {"NAMESPACE": [row.namespace for row in rows]} if everywhere else {}
    grid |= {"POD": [row.pod for row in rows], "CONTAINER": [row.container for row in rows]}
    if wide:
        grid["NODE"] = [row.node for row in rows]
    for name, short in (("cpu", "CPU"), ("memory", "MEM")):
        each: list[Figures] = [getattr(row, name) for row in rows]
        grid[short] = [_used(one, name) for one in each]
        grid[f"{short} REQUEST"] = [_request(one) for one in each]
        grid[f"{short} LIMIT"] = [one.limit or "-" for one in each]
        if found.vpas:
            grid[f"{short} VPA"] = [_recommended(one, wide=wide) for one in each]
        if name == "cpu" and (found.throttling or wide):
            grid["THROTTLED"] = [_share(row.throttled) for row in rows]
    if wide:
        grid["VPA"] = [row.vpa or "-" for row in rows]
    if wide or any(row.resize for row in rows):
        grid["RESIZE"] = [row.resize or "-" for row in rows]
    return grid


def _used(each: Figures, resource: str) -> str:
    """`130m (26 %)`, the share being that of the limit."""
    if not each.used:
        return "-"
    amount = Quantity.parse(each.used)
    text = f"{amount.milli()}m" if resource == "cpu" else f"{-(-amount.value() // (1 << 20))}Mi"
    return text + (f" ({_share(each.of_limit)})" if each.of_limit is not None else "")


def _request(each: Figures) -> str:
    if each.desired == each.allocated:
        return each.desired or "-"
    return f"{each.allocated or 'none'}→{each.desired or 'none'}"


def _recommended(each: Figures, *, wide: bool) -> str:
    bounds = f" ({each.lower or '-'}..{each.upper or '-'})" if wide and each.recommended else ""
    return (each.recommended or "-") + bounds


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
