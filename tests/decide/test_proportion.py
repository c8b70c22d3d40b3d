"""The limit that goes with a request: the proportion that was said, whatever was resized in between."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.decide.resize.proportion import largest_ratio, limit_for

ONE = Quantity.of(1).nano

MILLIS = st.integers(1, 100_000).map(Quantity.of_milli)
MEBIBYTES = st.integers(1, 1 << 20).map(lambda amount: Quantity.of_bytes(amount << 20))
BYTES = st.integers(1, 1 << 40).map(Quantity.of_bytes)


def limit(request: str, now: tuple[str, str], *said: tuple[str, str], memory: bool = False) -> str:
    pairs = [(Quantity.parse(one), Quantity.parse(other)) for one, other in said]
    return str(
        limit_for(Quantity.parse(request), (Quantity.parse(now[0]), Quantity.parse(now[1])), pairs, memory=memory)
    )


@pytest.mark.parametrize(
    ("request_", "limit_"),
    [
        ("400m", "670m"),
        ("900m", "1500m"),
        ("600m", "1"),
        ("310m", "520m"),
        ("3", "5"),
        ("7", "11500m"),
        ("30m", "50m"),
        ("20m", "33m"),
        ("303m", "505m"),
    ],
)
def test_amounts_of_cpu_that_a_person_would_write(request_: str, limit_: str) -> None:
    assert limit(request_, ("300m", "500m")) == limit_


@pytest.mark.parametrize(
    ("request_", "limit_"),
    [("200Mi", "333Mi"), ("150Mi", "250Mi"), ("1Gi", "1712Mi"), ("100M", "167M"), ("1000", "1667"), ("30Gi", "50Gi")],
)
def test_amounts_of_memory_that_a_person_would_write(request_: str, limit_: str) -> None:
    assert limit(request_, ("300Mi", "500Mi"), memory=True) == limit_


def test_a_limit_that_was_set_on_purpose_keeps_its_own_proportion() -> None:
    assert limit("800m", ("400m", "1"), ("300m", "500m")) == "2"


def test_a_request_that_there_was_not_has_no_proportion() -> None:
    assert limit("200m", ("0", "500m"), ("300m", "500m")) == "500m"
    assert limit("800m", ("0", "500m"), ("300m", "500m")) == "800m"


@given(st.data(), st.booleans())
def test_no_sequence_of_resizes_drifts(data: st.DataObject, memory: bool) -> None:
    amounts = st.one_of(MEBIBYTES, BYTES) if memory else MILLIS
    first = tuple(sorted((data.draw(amounts), data.draw(amounts))))
    said, now = (first[0], first[1]), (first[0], first[1])
    for request in data.draw(st.lists(amounts, min_size=1, max_size=8)):
        now = (request, limit_for(request, now, [said], memory=memory))
    assert now[1] == limit_for(now[0], said, [said], memory=memory), "as if it had been asked for at once"
    back = limit_for(said[0], now, [said], memory=memory)
    assert back == said[1], "and back again"


@given(st.data(), st.booleans())
def test_it_is_near_the_proportion_and_keeps_the_qos_class(data: st.DataObject, memory: bool) -> None:
    amounts = MEBIBYTES if memory else MILLIS
    low, high = sorted((data.draw(amounts), data.draw(amounts)))
    request = data.draw(amounts)
    new = limit_for(request, (low, high), [], memory=memory)
    assert (new == request) == (low == high)
    assert new >= request
    exact = high.nano * request.nano / low.nano
    smallest = (1 << 20) * 10**9 if memory else 10**6
    assert abs(new.nano - exact) <= max(smallest, exact * 0.06)


def limit_range(kind: str, **ratios: str) -> LimitRange:
    return convert({"spec": {"limits": [{"type": kind, "maxLimitRequestRatio": ratios}]}}, LimitRange)


@pytest.mark.parametrize(
    ("request_", "ratio", "limit_"),
    [("400m", None, "670m"), ("400m", "2", "670m"), ("400m", "1.6666667", "660m"), ("900m", "1.6666667", "1500m")],
)
def test_nothing_is_rounded_up_beyond_the_largest_ratio(request_: str, ratio: str | None, limit_: str) -> None:
    now = Quantity.parse("300m"), Quantity.parse("500m")
    bound = Quantity.parse(ratio) if ratio else None
    assert str(limit_for(Quantity.parse(request_), now, [now], memory=False, ratio=bound)) == limit_


@given(st.data(), st.booleans())
def test_what_was_within_the_ratio_stays_so(data: st.DataObject, memory: bool) -> None:
    amounts = st.one_of(MEBIBYTES, BYTES) if memory else MILLIS
    request, before, limit_ = (data.draw(amounts) for _ in range(3))
    limit_ = max(before, limit_)
    ratio = Quantity(-(-limit_.nano * ONE // before.nano), limit_.format)
    step = Quantity.of(1).nano if memory else Quantity.of_milli(1).nano
    assume(limit_.nano * request.nano // before.nano // step * step > request.nano)  # there is such an amount
    new = limit_for(request, (before, limit_), [(before, limit_)], memory=memory, ratio=ratio)
    assert request < new
    assert new.nano * ONE <= ratio.nano * request.nano


def test_the_ratio_is_the_smallest_bound_there_is() -> None:
    limits = [limit_range("Container", cpu="4"), limit_range("Pod", cpu="3"), limit_range("Container", cpu="2")]
    assert largest_ratio("cpu", limits, alone=True) == Quantity.parse("2")
    assert largest_ratio("cpu", limits[:2], alone=True) == Quantity.parse("3")
    assert largest_ratio("cpu", limits[:2], alone=False) == Quantity.parse("0"), "the others' share is not known"
    assert largest_ratio("cpu", limits, alone=False, level=True) == Quantity.parse("3")
    assert largest_ratio("memory", limits, alone=True) is None
