"""`podfit allocation`: what is requested, set aside, used and recommended, by node, namespace or workload."""

from typing import Annotated

from cyclopts import Parameter

from podfit.answers.allocation import Allocation, AllocationFacts, AllocationRow, By, Shares, read_allocation
from podfit.answers.allocation import allocation as summed
from podfit.answers.facts.readable import readable_amount
from podfit.answers.facts.rights import by_rights
from podfit.cli import exits, render
from podfit.cli.cluster_questions import (
    AllNamespaces,
    ContextName,
    Kubeconfig,
    Namespace,
    Selector,
    asked,
    missing_namespace,
)
from podfit.cli.output import Output, OutputOption
from podfit.cli.tables import Cell
from podfit.client.rest import Client
from podfit.core.quantity import Quantity
from podfit.net.system import SystemClock
from podfit.process.errors import UsageError

BAR = 8
"""Letters of a bar that is full."""
FULL, NEARLY = 1.0, 0.9


def allocation(
    by: Annotated[By, Parameter(help="What a row is.")] = "node",
    /,
    *,
    selector: Selector = "",
    everywhere: AllNamespaces = False,
    namespace: Namespace = "",
    context: ContextName = "",
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """What pods request, what is allocated to them, what they use and what VPAs recommend, summed. Nothing is written.

    Nodes and namespaces are summed over the whole cluster, or over -n; workloads over the namespace, or all with -A.
    Bars are shares of a node's capacity, elsewhere of what is requested.
    """
    if everywhere and namespace:
        raise UsageError("-A cannot be combined with -n")
    clock = SystemClock()

    async def read(client: Client, where: str) -> AllocationFacts:
        own = namespace or ("" if everywhere or by != "workload" else where)
        facts = await read_allocation(client, own, by, clock, labels=selector)
        if not facts.pods and own and (missing := await missing_namespace(client, own)):
            raise missing
        return facts

    found = summed(asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig), by)
    if output.for_people:
        _show(found, wide=output is Output.WIDE)
    else:
        render.document(found, output)
    return exits.DONE


def _show(answer: Allocation, *, wide: bool) -> None:
    if answer.rows:
        rows = [*answer.rows, answer.total] if len(answer.rows) > 1 else list(answer.rows)
        grid = _grid(rows, answer, wide=wide)
        keys = 2 if "NAMESPACE" in grid else 1
        render.table(tuple(grid), list(zip(*grid.values(), strict=True)), keys=keys, whole=wide)
    else:
        render.line("no pod has a node")
    for note in by_rights((*answer.notes, *answer.missing)):
        render.progress(f"note: {note}")


def _grid(rows: list[AllocationRow], answer: Allocation, *, wide: bool) -> dict[str, list[str | Cell]]:
    """Columns by header; what is allocated is shown where it differs from what is requested."""
    grid: dict[str, list[str | Cell]] = {}
    if answer.by == "workload" and (wide or len({row.namespace for row in answer.rows}) > 1):
        grid["NAMESPACE"] = [row.namespace or "-" for row in rows]
    grid[answer.by.upper()] = [row.name for row in rows]
    grid["PODS"] = [str(row.pods) for row in rows]
    for name, short in (("cpu", "CPU"), ("memory", "MEM")):
        shares: list[Shares] = [getattr(row, name) for row in rows]
        if wide and any(share.capacity for share in shares):
            grid[f"{short} CAPACITY"] = [_amount(name, share.capacity) for share in shares]
        grid[f"{short} REQUESTED"] = [_bar(name, share, share.requested) for share in shares]
        if wide or any(share.allocated != share.requested for share in shares):
            grid[f"{short} ALLOCATED"] = [_bar(name, share, share.allocated) for share in shares]
        if answer.source:
            grid[f"{short} USED"] = [_bar(name, share, share.used, of_requests=True) for share in shares]
        if wide or any(share.recommended for share in shares):
            grid[f"{short} VPA"] = [_amount(name, share.recommended) for share in shares]
    return grid


def _bar(resource: str, shares: Shares, amount: str, *, of_requests: bool = False) -> str | Cell:
    """`1300m ###..... 33 %`; without a whole to compare it with the amount alone."""
    text = _amount(resource, amount)
    whole = shares.capacity or (shares.requested if of_requests else "")
    share = shares.share(amount, whole)
    if share is None:
        return text
    filled = min(round(share * BAR), BAR)
    tone = render.BAD if share > FULL else render.WAITS if share >= NEARLY else ""
    return render.toned(f"{text} {'#' * filled}{'.' * (BAR - filled)} {100 * share:.0f} %", tone)


def _amount(resource: str, amount: str) -> str:
    if not amount:
        return "-"
    return f"{Quantity.parse(amount).milli()}m" if resource == "cpu" else readable_amount(resource, amount)
