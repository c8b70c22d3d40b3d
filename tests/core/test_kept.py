"""Caches that are bounded by what they hold."""

from collections.abc import Callable

from podfit.core.bounded_cache import ENTRY, cached_where_short, cached_within, length


def counted() -> tuple[Callable[[str], str], list[str]]:
    calls: list[str] = []

    def function(text: str) -> str:
        calls.append(text)
        return text.upper()

    return function, calls


def test_short_texts_are_kept_and_long_ones_are_not() -> None:
    function, calls = counted()
    kept = cached_where_short(10, longest=3)(function)
    assert [kept("abc"), kept("abc"), kept("abcd"), kept("abcd")] == ["ABC", "ABC", "ABCD", "ABCD"]
    assert calls == ["abc", "abcd", "abcd"]


def test_what_was_asked_for_last_is_kept_within_the_total() -> None:
    function, calls = counted()
    kept = cached_within(4 * (ENTRY + 100))(function)
    texts = [letter * 100 for letter in "abcd"]
    for text in (*texts, texts[0]):
        kept(text)
    assert calls == texts
    kept("e" * 100)  # there is room for three of five
    assert [kept(text) for text in ("e" * 100, texts[0], texts[3])]
    assert calls == [*texts, "e" * 100], "these were asked for last"
    kept(texts[1])
    assert calls == [*texts, "e" * 100, texts[1]]


def test_what_is_larger_than_the_total_is_not_kept() -> None:
    function, calls = counted()
    kept = cached_within(1000)(function)
    kept("small")
    for _ in range(2):
        kept("a" * 1000)
    kept("small")
    assert calls == ["small", "a" * 1000, "a" * 1000]


def test_results_are_weighed_where_it_is_they_that_are_large() -> None:
    function, calls = counted()
    kept = cached_within(2 * (ENTRY + 10), weigh=len)(function)
    for text in ("a" * 10, "b" * 400, "a" * 10, "b" * 400):
        kept(text)
    assert calls == ["a" * 10, "b" * 400, "b" * 400]


def test_lengths_of_what_is_nested() -> None:
    assert length("ab", b"c", 5, ("d", ("ef",))) == 6
