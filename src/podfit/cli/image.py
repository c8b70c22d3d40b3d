"""`podfit image`: what the node's private containerd can run."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import Output
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.node.images import list_images as listed
from podfit.process.node.images import load_archives

SHORT_ID = len("sha256:") + 12


def load(
    *files: Annotated[Path, Parameter(help="Archives made by `docker save`, or OCI archives.")],
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
) -> int:
    """Load images from archives into the running cluster."""

    for name in asyncio.run(load_archives(DataDir.at(data), files)):
        render.line(f"loaded {name}")
    return exits.DONE


def list_images(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    output: Annotated[
        Output, Parameter(name=["--output", "-o"], help="text, wide (IDs in full), json or yaml.")
    ] = Output.TEXT,
) -> int:
    """List the images of the running cluster."""

    images = asyncio.run(listed(DataDir.at(data)))
    if not output.for_people:
        render.document(images, output)
    else:
        length = None if output is Output.WIDE else SHORT_ID
        rows = [(image.name, image.id[:length], f"{image.size / 2**20:.1f} MiB") for image in images]
        render.table(("IMAGE", "ID", "SIZE"), rows)
    return exits.DONE
