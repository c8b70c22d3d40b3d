"""Processes that have the library in their memory, so that nobody else has."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process

ENVIRONMENT = {"PATH": os.defpath, "OPENBLAS_NUM_THREADS": "1"}
"""Nothing of the caller's; NumPy would reserve memory for each processor."""


async def started(module: str) -> Process:
    """One that runs a module of this package. Raises OSError."""
    words = (sys.executable, "-m", module)
    return await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=ENVIRONMENT)
