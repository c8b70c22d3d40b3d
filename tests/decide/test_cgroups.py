"""The published table (R-183), and what must hold between its rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.cgroup import conversion as cgroups
from support.runtime_weights import weight_from_shares_curve, weight_matches

TABLE = [  # millicores, shares, linear weight, weight by the curve, millicores read back from the linear weight
    (0, 2, 1, 1, 2),
    (1, 2, 1, 1, 2),
    (2, 2, 1, 1, 2),
    (5, 5, 1, 2, 2),
    (10, 10, 1, 4, 2),
    (50, 51, 2, 11, 28),
    (100, 102, 4, 17, 79),
    (200, 204, 8, 29, 181),
    (250, 256, 10, 35, 232),
    (300, 307, 12, 40, 284),
    (500, 512, 20, 59, 489),
    (800, 819, 32, 84, 795),
    (1000, 1024, 39, 100, 975),
    (1500, 1536, 59, 138, 1487),
    (2000, 2048, 79, 174, 1999),
    (4000, 4096, 157, 303, 3996),
    (256_000, 262_144, 10_000, 10_000, 256_000),
    (1_000_000, 262_144, 10_000, 10_000, 256_000),
]


@pytest.mark.parametrize(("milli", "shares", "linear", "curve", "read_back"), TABLE)
def test_table(milli: int, shares: int, linear: int, curve: int, read_back: int) -> None:
    assert cgroups.shares_from_milli(milli) == shares
    assert cgroups.weight_from_shares_linear(shares) == linear
    assert weight_from_shares_curve(shares) == curve
    assert cgroups.milli_from_shares(cgroups.shares_from_weight(linear)) == read_back


@pytest.mark.parametrize(
    ("milli", "period", "quota"),
    [
        (0, 100_000, 0),
        (1, 100_000, 1000),
        (10, 100_000, 1000),
        (11, 100_000, 1100),
        (250, 100_000, 25_000),
        (1500, 100_000, 150_000),
        (100, 5000, 1000),
        (333, 1000, 1000),
    ],
)
def test_quota(milli: int, period: int, quota: int) -> None:
    assert cgroups.quota_from_milli(milli, period) == quota


@pytest.mark.parametrize(
    ("quota", "period", "milli"),
    [(-1, 100_000, 0), (0, 100_000, 0), (25_000, 100_000, 250), (1000, 0, 0), (1999, 1000, 1999)],
)
def test_milli_from_quota(quota: int, period: int, milli: int) -> None:
    assert cgroups.milli_from_quota(quota, period) == milli


def test_shares_below_the_minimum_mean_no_request() -> None:
    assert [cgroups.milli_from_shares(shares) for shares in (0, 1, 2)] == [0, 0, 2]


def test_a_container_may_carry_either_weight() -> None:
    assert weight_matches(32, 819)
    assert weight_matches(84, 819)
    assert not weight_matches(33, 819)


@given(st.integers(3, 256_000))
def test_a_cpu_request_survives_shares(milli: int) -> None:
    """1024 shares to 1000 millicores: rounding down and then up meets the same millicore again."""
    assert cgroups.milli_from_shares(cgroups.shares_from_milli(milli)) == milli


@given(st.integers(10, 10_000_000))
def test_a_cpu_limit_survives_the_default_period(milli: int) -> None:
    assert cgroups.milli_from_quota(cgroups.quota_from_milli(milli), cgroups.DEFAULT_PERIOD) == milli


@given(st.integers(0, 300_000), st.integers(0, 300_000))
def test_more_never_weighs_less(one: int, other: int) -> None:
    low, high = sorted((one, other))
    for convert in (cgroups.weight_from_shares_linear, weight_from_shares_curve, cgroups.shares_from_milli):
        assert convert(low) <= convert(high)


@given(st.integers(1, 10_000))
def test_weights_survive_shares(weight: int) -> None:
    """Within one: both directions round down."""
    assert weight - cgroups.weight_from_shares_linear(cgroups.shares_from_weight(weight)) in (0, 1)
