"""Quantities: exact, canonical, and comparable whatever their spelling."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.core.quantity import MALFORMED, Format, Quantity

SCALES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("100000m", "100"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1E3", "1e3"),
        ("0.5Gi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("1000Ki", "1000Ki"),
        ("1Ki", "1Ki"),
        ("512", "512"),
        ("0.9Gi", "966367641600m"),
        (".5", "500m"),
        ("5.", "5"),
        ("+3", "3"),
        ("-1", "-1"),
        ("1G", "1G"),
        ("1000k", "1M"),
        ("0.0005", "500u"),
        ("0.0000000001", "1n"),
        ("1Ei", "1Ei"),
        ("1048576", "1048576"),
        ("-1.5Gi", "-1536Mi"),
    ],
)
def test_canonical_form(text: str, printed: str) -> None:
    """R-019."""
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", "1 Gi", "Gi", "1gi", "1.2.3", "--1", "0x10", "1e", "NaN", "1Ki2", "1\n", "٣"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        Quantity.parse(text)
    assert MALFORMED.startswith("quantities must match the regular expression")


@pytest.mark.parametrize(("text", "value", "milli"), [("1.1", 2, 1100), ("0.0001", 1, 1), ("-1.5", -1, -1500)])
def test_rounding_is_upwards(text: str, value: int, milli: int) -> None:
    assert (Quantity.parse(text).value(), Quantity.parse(text).milli()) == (value, milli)


@pytest.mark.row("R-010")
def test_equality_is_numeric_and_hashing_agrees() -> None:
    """R-010."""
    assert Quantity.parse("1") == Quantity.parse("1000m")
    assert len({Quantity.parse("1Gi"), Quantity.parse("1024Mi"), Quantity.of_bytes(2**30)}) == 1
    assert Quantity.parse("1") != 1


def test_a_quantity_cannot_change() -> None:
    with pytest.raises(AttributeError):
        Quantity.of(1).nano = 2


def test_absurd_sizes_are_capped_not_computed() -> None:
    assert Quantity.parse("1e999999999") == Quantity.parse("9223372036854775807")
    assert Quantity.parse("1e-999999999") == Quantity.parse("1n")


numbers = st.decimals(min_value=0, max_value=10**6, places=3)


@given(numbers, st.sampled_from([*SCALES, *BINARY]), st.booleans())
def test_value_is_exact_and_printing_keeps_it(number: object, suffix: str, negative: bool) -> None:
    text = f"{'-' if negative else ''}{number}{suffix}"
    factor = Fraction(10) ** SCALES[suffix] if suffix in SCALES else Fraction(2) ** BINARY[suffix]
    exact = Fraction(str(number)) * factor * 10**9
    quantity = Quantity.parse(text)
    expected = min(-(-exact.numerator // exact.denominator), (2**63 - 1) * 10**9)
    assert quantity.nano == (-expected if negative else expected)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(st.integers(-(10**15), 10**15), st.sampled_from(list(Format)))
def test_every_amount_survives_its_own_spelling(nano: int, form: Format) -> None:
    assert Quantity.parse(str(Quantity(nano, form))).nano == nano


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_arithmetic_and_order_are_those_of_integers(left: int, right: int) -> None:
    one, other = Quantity(left), Quantity(right)
    assert (one + other).nano == left + right
    assert (one - other).nano == left - right
    assert (-one).nano == -left
    assert (one < other, one <= other, one == other) == (left < right, left <= right, left == right)
