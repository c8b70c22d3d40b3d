"""Selectors: what they match, and what is no selector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.meta.selector_text import parse_fields, parse_labels
from podfit.core.selectors import Matcher, Requirement, SelectorError, from_map

LABELS = {"app": "web", "tier": "front", "n": "5"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("absent!=x", True),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("app in (db, web)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("absent notin (x)", True),
        ("absent in (x)", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (a,web),tier", True),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("app>4", False),
        ("  app = web , tier  ", True),
        ("example.com/x", False),
    ],
)
def test_labels(text: str, matches: bool) -> None:
    assert parse_labels(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["=x", "a b", "!", "a,,b", "-a=b", "a in", "a=b,"])
def test_what_is_no_selector(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_labels(text)


@pytest.mark.parametrize("text", ["a,", "a in (b),", "a in (" + "b," * 1000 + "b)"])
def test_more_terms_than_a_selector_may_have(text: str) -> None:
    parse_labels(("a," * 999 + "a")[: 2 * 1000])
    with pytest.raises(SelectorError, match="at most 1000"):
        parse_labels(text * 1001 + "a")
    with pytest.raises(SelectorError, match="at most 1000"):
        parse_fields("a=b," * 1000 + "a=b")


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
)
def test_a_map_selects_what_contains_it(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert from_map(wanted).matches(labels) is (wanted.items() <= labels.items())


@given(
    st.sampled_from("ab"),
    st.lists(st.sampled_from("xyz"), min_size=1),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz")),
)
def test_notin_is_the_opposite_of_in(key: str, values: list[str], labels: dict[str, str]) -> None:
    inside = Requirement(key, "In", tuple(values)).matches(labels)
    assert Requirement(key, "NotIn", tuple(values)).matches(labels) is not inside


def test_fields() -> None:
    selector = parse_fields("spec.nodeName=n1,status.phase!=Failed")
    assert selector.matches({"spec.nodeName": "n1", "status.phase": "Running"})
    assert not selector.matches({"spec.nodeName": "n1", "status.phase": "Failed"})
    assert not selector.matches({"spec.nodeName": "n2"})
    assert selector.exact("spec.nodeName") == "n1"
    assert selector.exact("status.phase") is None
    assert parse_fields("spec.nodeName=").matches({"spec.nodeName": ""})
    assert not parse_fields("")


@pytest.mark.parametrize("text", ["spec.nodeName", "a=b=c", "a=b\\x", "a=b\\", "a>b"])
def test_what_is_no_field_selector(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_fields(text)


_WORDS = st.sampled_from(["a", "b", "c", "1", "2"])
_REQUIREMENTS = st.lists(
    st.builds(
        Requirement,
        _WORDS,
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
        st.lists(_WORDS, max_size=3).map(tuple),
    ),
    max_size=4,
)


@given(_REQUIREMENTS, st.dictionaries(_WORDS, _WORDS))
def test_a_matcher_says_what_each_requirement_says(wanted: list[Requirement], labels: dict[str, str]) -> None:
    assert Matcher(wanted).matches(labels) == all(requirement.matches(labels) for requirement in wanted)
