"""`podfit image`: what the node's private containerd can run."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import Output, OutputOption
from podfit.process.layout import DataDir, default_data_dir


def load(
    *files: Annotated[Path, Parameter(help="Archives made by `docker save`, or OCI archives.")],
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
) -> int:
    """Load images from archives into the running cluster."""
    from podfit.process.images import load_archives

    for name in asyncio.run(load_archives(DataDir.at(data), files)):
        render.line(f"loaded {name}")
    return exits.DONE


def list_images(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    output: OutputOption = Output.TEXT,
) -> int:
    """List the images of the running cluster."""
    from podfit.process.images import list_images as listed

    images = asyncio.run(listed(DataDir.at(data)))
    if not output.for_people:
        render.document(images, output)
    else:
        render.table(
            ("IMAGE", "ID", "SIZE"), [(each.name, each.id[:19], f"{each.size / 2**20:.1f} MiB") for each in images]
        )
    return exits.DONE
