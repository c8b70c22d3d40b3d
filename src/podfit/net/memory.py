"""The process's memory, as the machine sees it."""

import ctypes


def give_back() -> None:
    """Give pages that the C library keeps for later back to the machine; nothing where it has no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
