"""The C library's heap: memory that is free in it is given back to the machine.

What thousands of connections have held (TLS buffers, bodies) is freed in pieces between pieces that stay, and the C
library keeps it for what may come: hundreds of MiB after a flood, until somebody asks it not to.
"""

import ctypes
import gc
from functools import lru_cache
from typing import Any


def give_back() -> None:
    """Takes some milliseconds for a hundred MiB; to be called in a thread. Without glibc there is nothing to do. What
    connections leave in cycles is young, so the old objects are not looked through."""
    gc.collect(1)
    if (trim := _trim()) is not None:
        trim(0)


@lru_cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
