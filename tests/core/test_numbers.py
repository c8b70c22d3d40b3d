"""Numbers of any length, as clients may write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.core.cron import objection
from podfit.core.numbers import LEAST, MOST, parse_int
from podfit.core.quantity import Quantity
from podfit.core.times import seconds_later
from support.turns import cpu_ms


@given(st.integers(LEAST, MOST))
def test_what_fits_is_read(number: int) -> None:
    assert parse_int(str(number)) == number
    assert parse_int("+" + "0" * 5000 + str(abs(number))) == min(abs(number), MOST) if abs(number) <= MOST else True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "invalid syntax"),
        ("-", "invalid syntax"),
        ("1_0", "invalid syntax"),
        ("٣", "invalid syntax"),
        ("--1", "invalid syntax"),
        (" 1", "invalid syntax"),
        (str(MOST + 1), "value out of range"),
        (str(LEAST - 1), "value out of range"),
        ("9" * 100_000, "value out of range"),
        ("1e3", "invalid syntax"),
    ],
)
def test_what_does_not_fit_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^strconv.ParseInt: parsing .*: {why}$"):
        parse_int(text)


def test_no_moment_is_out_of_range() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert seconds_later(now, 60) == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert seconds_later(now, MOST).year == 9999
    assert seconds_later(now, -MOST).year == 1


@pytest.mark.parametrize("digits", ["1" * 60_000 + "x", "1" * 60_000, "1." + "1" * 60_000 + "x", "." * 60_000])
def test_long_numbers_are_refused_in_time(digits: str) -> None:
    def refused() -> None:
        with pytest.raises(ValueError):  # noqa: PT011  (its text is another test's)
            Quantity.parse(digits)

    assert cpu_ms(refused) < 100
    assert cpu_ms(lambda: objection(f"@every {digits}x")) < 100
    assert objection(f"{digits} * * * *")
