"""A shared map against plain dicts: every version keeps what it maps, whichever is asked in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.core.shared_map import SharedMap

KEYS = st.sampled_from("abcdef")
CHANGES = st.lists(st.tuples(st.integers(0, 40), KEYS, st.none() | st.integers(0, 9)), max_size=40)


@given(CHANGES, st.lists(st.integers(0, 40), max_size=20))
@settings(max_examples=200, deadline=None)
def test_every_version_keeps_its_entries(changes: list[tuple[int, str, int | None]], looks: list[int]) -> None:
    """A change is made to any earlier version; None takes the key away."""
    versions: list[tuple[SharedMap[str, int], dict[str, int]]] = [(SharedMap({"a": 1}), {"a": 1})]
    for which, key, value in changes:
        shared, plain = versions[which % len(versions)]
        if value is None:
            versions.append((shared.without([key]), {name: kept for name, kept in plain.items() if name != key}))
        else:
            versions.append((shared.set(key, value), {**plain, key: value}))
    for look in (*looks, *range(len(versions))):
        shared, plain = versions[look % len(versions)]
        assert (dict(shared.items()), set(shared), len(shared)) == (plain, set(plain), len(plain))
        assert [shared.get(key) for key in "abcdef"] == [plain.get(key) for key in "abcdef"]
        assert shared == plain


def test_what_is_not_there_is_not_taken_away() -> None:
    shared = SharedMap({"a": 1})
    assert shared.without(["b"]) is shared
    with pytest.raises(KeyError):
        shared["b"]


def test_the_newest_is_in_the_order_of_insertion() -> None:
    shared = SharedMap(zip("cab", range(3), strict=True)).set("d", 3).set("a", 9).without(["c"])
    assert list(shared.items()) == [("a", 9), ("b", 2), ("d", 3)]


def test_it_may_be_changed_while_it_is_gone_through() -> None:
    shared = newer = SharedMap({"a": 1, "b": 2})
    for key, value in shared.items():
        newer = newer.set(key + key, value)
    assert [*shared] == ["a", "b"]
    assert [*newer] == ["a", "b", "aa", "bb"]
