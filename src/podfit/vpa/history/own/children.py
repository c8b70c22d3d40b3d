"""Processes that have the library in their memory, so that nobody else has."""

import os
import sys
from asyncio.subprocess import Process

import msgspec
from msgspec import Struct

from podfit.net.programs import started

ENVIRONMENT = {"PATH": os.defpath, "OPENBLAS_NUM_THREADS": "1"}
"""Nothing of the caller's; NumPy would reserve memory for each processor."""


async def child(module: str, asked: Struct) -> Process:
    """One that runs a module of this package, and reads what it is asked. Raises OSError."""
    given = msgspec.json.encode(asked)
    return await started(sys.executable, "-m", module, given=given, environment=ENVIRONMENT)
