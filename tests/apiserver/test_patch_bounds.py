"""Patches that say much with little: each stops at a bound, and what is allowed takes time in step with its size."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.registry.patch import jsonpatch, strategic
from podfit.core.errors import ApiError
from support.turns import cpu_ms

MANY = 20_000


def test_copies_are_bounded_by_what_they_add() -> None:
    """Each of these doubles the document: 2 kB of patch would be 2 ** 40 values."""
    document = {"data": {"a": "x" * 100}}
    patch = [{"op": "copy", "from": "/data", "path": f"/data/z{number}"} for number in range(40)]
    with pytest.raises(ApiError) as refused:
        jsonpatch.apply(document, patch)
    assert refused.value.code == 422
    assert "accumulated size increase of copy is" in refused.value.details["causes"][0]["message"]
    assert f"exceeding the limit {3 * 1024 * 1024}" in refused.value.details["causes"][0]["message"]
    assert len(json.dumps(jsonpatch.apply(document, patch[:14]))) < 8 * 2**20


def test_a_copy_is_no_second_name_of_what_was_copied() -> None:
    patch = [
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/a/y", "value": 2},
        {"op": "add", "path": "/b/z", "value": 3},
    ]
    assert jsonpatch.apply({"a": {}}, patch) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "z": 3}}


def test_what_is_moved_on_by_insertions_is_bounded() -> None:
    front = [{"op": "add", "path": "/a/0", "value": 1}] * 9_000
    assert len(jsonpatch.apply({"a": [0] * 1000}, front)["a"]) == 10_000
    for patch in (front, [{"op": "remove", "path": "/a/0"}] * 9_000):
        with pytest.raises(ApiError, match="the server rejected our request") as refused:
            jsonpatch.apply({"a": [0] * 100_000}, patch)
        assert "move more than" in refused.value.details["causes"][0]["message"]


@pytest.mark.parametrize("path", ["/a" * 1_000_000, "/" * 101, "~1" * 1_000_000])
def test_pointers_deeper_than_any_document(path: str) -> None:
    def refused() -> None:
        with pytest.raises(ApiError):
            jsonpatch.apply({"a": 1}, [{"op": "add", "path": path, "value": 1}])

    assert cpu_ms(refused) < 100


def large_list() -> Any:
    return {"a": [0] * 100_000}


def large_map() -> Any:
    return {"a": {str(i): 0 for i in range(100_000)}}


@pytest.mark.parametrize(
    ("make", "patch"),
    [
        (large_list, [{"op": "add", "path": "/a/-", "value": 1}] * 10_000),
        (large_list, [{"op": "replace", "path": "/a/5", "value": 1}] * 10_000),
        (large_map, [{"op": "add", "path": "/a/x", "value": 1}] * 10_000),
        (large_map, [{"op": "test", "path": "/a/7", "value": 0}] * 10_000),
        (large_map, [{"op": "remove", "path": f"/a/{i}"} for i in range(10_000)]),
    ],
)
def test_ten_thousand_operations_on_something_large(make: Callable[[], Any], patch: Any) -> None:
    """Made when it is needed: a session keeps its parameters."""
    document = make()
    assert cpu_ms(lambda: jsonpatch.apply(document, patch)) < 100


def test_neither_document_nor_patch_is_changed() -> None:
    document = {"a": [1, {"b": [2]}]}
    patch = [
        {"op": "add", "path": "/c", "value": {"d": []}},
        {"op": "add", "path": "/c/d/-", "value": 1},
        {"op": "move", "from": "/a/1", "path": "/e"},
        {"op": "add", "path": "/e/b/0", "value": 5},
    ]
    before = copy.deepcopy((document, patch))
    assert jsonpatch.apply(document, patch) == {"a": [1], "c": {"d": [1]}, "e": {"b": [5, 2]}}
    assert jsonpatch.apply(document, patch) == {"a": [1], "c": {"d": [1]}, "e": {"b": [5, 2]}}
    assert (document, patch) == before


NAMED = [{"name": f"c{number}", "image": "x"} for number in range(MANY)]
SCALARS = [f"example.com/{number}" for number in range(MANY)]


@pytest.mark.parametrize(
    ("document", "patch"),
    [
        ({"spec": {"containers": NAMED}}, {"spec": {"containers": NAMED[::-1]}}),
        ({"spec": {"containers": NAMED}}, {"spec": {"containers": [{"$patch": "delete", **item} for item in NAMED]}}),
        ({"spec": {"containers": NAMED}}, {"spec": {"$setElementOrder/containers": NAMED[::-1]}}),
        ({"metadata": {"finalizers": SCALARS}}, {"metadata": {"finalizers": [*SCALARS[::2], *SCALARS[::-2]]}}),
        ({"metadata": {"finalizers": SCALARS}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": SCALARS[::-1]}}),
        ({"metadata": {"finalizers": SCALARS}}, {"metadata": {"$setElementOrder/finalizers": SCALARS[::-3]}}),
        ({"metadata": {"labels": dict.fromkeys(SCALARS, "")}}, {"metadata": {"labels": {"$retainKeys": SCALARS}}}),
    ],
    ids=["merge", "delete", "order", "unite", "take out", "order of scalars", "retain"],
)
def test_strategic_merges_of_long_lists(document: Any, patch: Any) -> None:
    assert cpu_ms(lambda: strategic.apply(document, patch, Pod), most=200) < 200


@given(st.permutations("abcdefgh"), st.permutations("abcdefgh"), st.integers(0, 8), st.integers(0, 8))
def test_an_order_of_some_leaves_the_others_between_their_neighbours(
    live: list[str], order: list[str], first: int, last: int
) -> None:
    document = {"spec": {"containers": [{"name": name} for name in live[first:]]}}
    wanted = [name for name in order[last:] if name in live[first:]]
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in wanted]}}
    merged = [container["name"] for container in strategic.apply(document, patch, Pod)["spec"]["containers"]]
    assert sorted(merged) == sorted(live[first:])
    assert [name for name in merged if name in wanted] == wanted
