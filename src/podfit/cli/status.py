"""`podfit status`: what runs on a data directory."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import Output, OutputOption
from podfit.cluster.layout import DataDir, default_data_dir


def status(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """Show the cluster: address, nodes, pods. Exit code 1 when none is running."""
    from podfit.cluster.inspect import inspect

    found = asyncio.run(inspect(DataDir.at(data)))
    if not output.for_people:
        render.document(found, output)
    elif not found.running:
        render.line(f"no cluster is running on {found.data}")
        render.line("start one:  podfit up")
    else:
        render.line(f"podfit {found.version}, pid {found.pid}, since {found.started}")
        render.fact("api", f"{found.server} ({'ready' if found.ready else 'not ready'})")
        for node in found.nodes:
            render.fact("node", f"{node.name}: {node.kind}, {'Ready' if node.ready else 'NotReady'}, {node.detail}")
        render.fact("pods", ", ".join(f"{count} {phase}" for phase, count in found.pods.items()) or "none")
        render.fact("data", found.data)
    return exits.DONE if found.running else exits.REFUSED
