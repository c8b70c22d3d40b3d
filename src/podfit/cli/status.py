"""`podfit status`: what runs on a data directory."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import NarrowOutputOption, Output
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.inspect import Report, inspect
from podfit.process.node.leftovers import counted


def status(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """Show the cluster: address, nodes, pods; what a crashed one has left. Exit code 1 when none is ready."""

    found = asyncio.run(inspect(DataDir.at(data)))
    if not output.for_people:
        render.document(found, output)
    elif not found.running:
        _ended(found, DataDir.at(data))
    else:
        render.line(f"podfit {found.version}, pid {found.pid}, since {found.started}")
        render.fact("api", f"{found.server} ({'ready' if found.ready else 'not ready'})")
        for node in found.nodes:
            render.fact("node", f"{node.name}: {node.kind}, {'Ready' if node.ready else 'NotReady'}, {node.detail}")
        if found.played:
            counts = ", ".join(f"{count} {state}" for state, count in sorted(found.played.items(), reverse=True))
            render.fact("played", f"{counts}: Nodes that others made, simulated; their containers do not run")
        render.fact("pods", ", ".join(f"{count} {phase}" for phase, count in found.pods.items()) or "none")
        render.fact("data", found.data)
        _others(found)
    return exits.DONE if _healthy(found) else exits.REFUSED


def _healthy(report: Report) -> bool:
    """What a health check sees: the API server answers that it is ready, and so is every node of this process."""
    return report.running and report.ready and all(node.ready for node in report.nodes)


def _ended(report: Report, data: DataDir) -> None:
    """No cluster runs: whether one was stopped or has crashed, and what is left of it."""
    render.say(f"no cluster is running on {report.data}")
    if report.crashed:
        render.fact("crashed", report.crashed)
    for trace in counted(report.left):
        render.fact("left", trace)
    _others(report)
    if report.crashed or report.left:
        keeps = " and take over what still runs" if report.left else ""
        render.line(f"start it again{keeps}:  {data.command('up')}")
        render.line(f"clean up:  {data.command('down')}")
    else:
        render.line(f"start one:  {data.command('up')}")


def _others(report: Report) -> None:
    if report.others:
        runs = "a cluster runs" if len(report.others) == 1 else f"{len(report.others)} clusters run"
        render.fact("also", f"{runs} on {', '.join(report.others)}")
