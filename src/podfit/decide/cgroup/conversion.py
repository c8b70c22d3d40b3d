"""Conversion from millicores to shares, quota and weight, and back. Divisions are integer divisions, as upstream's.

CPU has three scales: millicores of the API, shares of cgroup v1 and of CRI, weight of cgroup v2. Two conversions from
shares to weight are in use: the linear one, which the kubelet applies to its own pod and QoS cgroups, and a newer curve
that OCI runtimes apply to containers, so a container may carry either weight (R-184).
"""

MIN_SHARES = 2
MAX_SHARES = 262_144
SHARES_PER_CPU = 1024
MIN_QUOTA = 1000  # microseconds; the kernel takes no less
DEFAULT_PERIOD = 100_000  # microseconds
MAX_WEIGHT = 10_000
UNLIMITED = -1

_SHARES_RANGE = MAX_SHARES - MIN_SHARES
_WEIGHT_RANGE = MAX_WEIGHT - 1


def shares_from_milli(milli: int) -> int:
    return min(max(milli * SHARES_PER_CPU // 1000, MIN_SHARES), MAX_SHARES)


def milli_from_shares(shares: int) -> int:
    """Rounds up, so that a request survives the round trip; below the kernel's minimum means none."""
    return -(-shares * 1000 // SHARES_PER_CPU) if shares >= MIN_SHARES else 0


def quota_from_milli(milli: int, period: int = DEFAULT_PERIOD) -> int:
    """Microseconds of CPU time in each `period` of microseconds; 0 millicores = 0 = do not set."""
    return max(milli * period // 1000, MIN_QUOTA) if milli else 0


def milli_from_quota(quota: int, period: int) -> int:
    """0 = no limit: a quota of -1, or 0 or no period where the runtime reports nothing."""
    return quota * 1000 // period if quota > 0 and period > 0 else 0


def weight_from_shares_linear(shares: int) -> int:
    """cpu.weight of the cgroups that the kubelet writes."""
    return (
        MAX_WEIGHT
        if shares >= MAX_SHARES
        else 1 + (max(shares, MIN_SHARES) - MIN_SHARES) * _WEIGHT_RANGE // _SHARES_RANGE
    )


def shares_from_weight(weight: int) -> int:
    """The inverse of the linear conversion; loses up to 27 shares (26 millicores)."""
    return (weight - 1) * _SHARES_RANGE // _WEIGHT_RANGE + MIN_SHARES
