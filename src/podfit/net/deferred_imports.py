"""Modules that a start does not wait for, imported in a thread."""

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial


class DeferredImports:
    """One thread imports one module after the other, so that what is waited for first is there first: imports share
    the interpreter, and side by side each would take as long as all."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "import")

    async def need(self, *modules: str) -> None:
        """Returns when they can be imported without taking time. Raises what importing them raises."""
        loop = asyncio.get_running_loop()
        wanted = [loop.run_in_executor(self._thread, partial(importlib.import_module, module)) for module in modules]
        await asyncio.gather(*wanted)

    def close(self) -> None:
        self._thread.shutdown(wait=False)
