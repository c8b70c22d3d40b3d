"""Waiting longer after every failure: the arithmetic."""


def delay_after(failures: int, first: float, longest: float) -> float:
    """The delay after the failure that followed `failures` others: doubling from `first` up to `longest`."""
    return min(longest, first * 2.0 ** min(failures, 62))
