"""`podfit down`: stop the cluster of a data directory, and whatever an earlier one left behind."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.teardown import stop_everything


def down(
    *, data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None
) -> int:
    """Stop everything, containers too. What a killed cluster left running is stopped as well; the data stays."""

    asyncio.run(stop_everything(DataDir.at(data), announce=render.line))
    return exits.DONE
