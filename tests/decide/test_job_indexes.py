"""Completion indexes as a job's status writes them."""

import pytest

from podfit.decide.workload.job.indexes import MOST_INDEXES, Spans, parse, shown


@pytest.mark.parametrize(
    ("text", "most", "indexes"),
    [
        ("1,3-5,7", 10, {1, 3, 4, 5, 7}),
        ("1,3-5,7", 5, {1, 3, 4}),
        ("", 10, set()),
        ("x,2,-3,4-,5-y", 10, {2, 4}),
        ("9" * 5000, 10, set()),
        ("0-" + "9" * 5000 + ",1", 10, {1}),
    ],
)
def test_what_can_be_read_is(text: str, most: int, indexes: set[int]) -> None:
    assert parse(text, most) == indexes
    spans = Spans(text, most)
    assert (len(spans), {index for index in range(20) if index in spans}) == (len(indexes), indexes)


def test_a_few_bytes_do_not_name_all_numbers_of_32_bits() -> None:
    assert len(parse("0-2147483646,0-2147483646", 2**31 - 1)) == MOST_INDEXES
    spans = Spans("0-2147483646,5,0-2147483646,3-2147483646", 2**31 - 1)
    assert (len(spans), 2**31 - 2 in spans, 2**31 - 1 in spans) == (2**31 - 1, True, False)


def test_two_are_listed_and_more_are_a_span() -> None:
    assert shown({1, 2, 5, 6, 7}) == "1,2,5-7"
