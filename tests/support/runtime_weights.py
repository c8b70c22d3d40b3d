"""Weights of containers as OCI runtimes write them: a test that reads the kernel has to take either (R-184)."""

import math

from podfit.decide.cgroup.conversion import MAX_SHARES, MAX_WEIGHT, MIN_SHARES, weight_from_shares_linear


def weight_from_shares_curve(shares: int) -> int:
    """cpu.weight as runc 1.3.2 and crun 1.23, and later ones, set it on containers; 0 shares = leave alone."""
    if shares <= 0:
        return 0
    if shares <= MIN_SHARES:
        return 1
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    exponent = math.log2(shares)
    return math.ceil(10 ** ((exponent * exponent + 125 * exponent) / 612 - 7 / 34))


def weight_matches(weight: int, shares: int) -> bool:
    """Whether a container's cpu.weight is right for its shares, by either conversion."""
    return weight in (weight_from_shares_linear(shares), weight_from_shares_curve(shares))
