"""The three kinds of patch, as pure functions on documents."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.config.types import ConfigMap, ServiceAccount
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.registry.patch import decoding, jsonpatch, mergepatch, strategic
from podfit.apiserver.request.bodies import typed_object
from podfit.apiserver.request.patch_messages import unfit
from podfit.core.errors import ApiError

Json = Any
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=10,
)


def _pod(*containers: Json, **spec: Json) -> Json:
    return {"spec": {"containers": list(containers), **spec}}


def op(kind: str, path: str, **more: Json) -> Json:
    return {"op": kind, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"a": [1, 3]}, [op("add", "/a/1", value=2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [op("add", "/a/-", value=2)], {"a": [1, 2]}),
        ({"a": 1}, [op("replace", "", value=[])], []),
        ({"a": 1}, [op("replace", "", value=2)], {"a": 1}),
        ({"a": [1, 2]}, [op("replace", "/a/-1", value=3), op("add", "/a/-1", value=4)], {"a": [1, 3, 4]}),
        ({"a": [1, 2]}, [op("remove", "/a/+0"), op("add", "/a/01", value=3)], {"a": [2, 3]}),
        ({"a": [1, 2]}, [op("move", "/a/-", **{"from": "/a/0"})], {"a": [2, 1]}),
        ({"a": 1}, [op("copy", "/b", **{"from": "/absent"})], {"a": 1, "b": None}),
        ({"a": {"b": 1}}, [op("test", "", value={"a": {"b": 1}}), op("replace", "x/a/b", value=2)], {"a": {"b": 2}}),
        ({"~1": 1}, [op("test", "/~01", value=1), op("add", "/~01", value=2)], {"~1": 2}),
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1, "b": 2}, [op("remove", "/a")], {"b": 2}),
        ({"a": [1, 2, 3]}, [op("remove", "/a/1")], {"a": [1, 3]}),
        ({"a": {"b": 1}}, [op("replace", "/a/b", value=None)], {"a": {"b": None}}),
        ({"a": {"b": 1}}, [op("move", "/c", **{"from": "/a/b"})], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"})], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, [op("remove", "/a~1b"), op("test", "/m~0n", value=2)], {"m~n": 2}),
        ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
        ({}, [op("test", "/absent", value=None), op("replace", "/absent", value=1)], {"absent": 1}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_json_patch(document: Json, operations: Json, expected: Json) -> None:
    assert jsonpatch.apply(document, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        op("remove", "/absent"),
        op("replace", "/list/9", value=1),
        op("add", "/absent/x", value=1),
        op("add", "/list/9", value=1),
        op("add", "/list/0x1", value=1),
        op("remove", "/list/-"),
        op("remove", ""),
        op("test", "/one", value=2),
        op("move", "/one/deep", **{"from": "/one"}),
        op("copy", "/x"),
        op("jump", "/one"),
        {"op": "add"},
        op("add", "one", value=1),
        {},
        None,
        op("remove", "/list/\u0661"),
        op("add", "", value={}),
        op("test", "/one", value=1.0),
        op("test", "/one", value=True),
        op("test", "/one", value="1"),
        op("test", "/one"),
        op("test", "", value={"list": [1, 2]}),
        op("test", "/list", value=[1, 2.0]),
        op("replace", "/list/-3", value=1),
        op("replace", "/list/2", value=1),
        op("add", "/list/-4", value=1),
        op("move", "/two", **{"from": "/absent"}),
        op("copy", "/two", **{"from": ""}),
        op("copy", "/two", **{"from": "/one/deep"}),
        op("Add", "/one", value=1),
        op("add", "/one/x", value=1),
        {"op": "add", "path": ["one"], "value": 1},
        op("remove", "/list/1e0"),
    ],
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(operation: Json) -> None:
    with pytest.raises(ApiError) as refused:
        jsonpatch.apply({"one": 1, "list": [1, 2]}, [operation])
    assert refused.value.code == 422


@pytest.mark.parametrize("patch", [{}, "x", 3])
def test_a_json_patch_is_a_list(patch: Json) -> None:
    with pytest.raises(ApiError) as refused:
        jsonpatch.apply({}, patch)
    assert refused.value.code == 400


@given(JSON, st.text(max_size=3), JSON)
def test_what_is_added_can_be_tested_and_removed(document: Json, name: str, value: Json) -> None:
    before = {"d": document}
    path = "/" + ("new" + name).replace("~", "~0").replace("/", "~1")
    added = jsonpatch.apply(before, [op("add", path, value=value), op("test", path, value=value)])
    assert added == {**before, "new" + name: value}
    assert jsonpatch.apply(added, [op("remove", path)]) == before == {"d": document}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [  # the examples of RFC 7386, appendix A, that have an object as patch
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(document: Json, patch: Json, expected: Json) -> None:
    assert mergepatch.apply(document, patch) == expected


@given(JSON, st.dictionaries(st.text(max_size=2), JSON, max_size=3))
def test_a_merge_patch_applied_again_changes_nothing(document: Json, patch: Json) -> None:
    once = mergepatch.apply(document, patch)
    assert mergepatch.apply(once, patch) == once


A, B, C = ({"name": name, "image": name * 2} for name in "abc")


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        # by merge key: changed in place, added, deleted, replaced
        (_pod(A, B), _pod({"name": "b", "image": "x"}), _pod(A, {"name": "b", "image": "x"})),
        (_pod(A, B), _pod(C, B), _pod(C, A, B)),
        (_pod(A, B), _pod({"name": "a", "$patch": "delete"}), _pod(B)),
        (_pod(A, B), _pod(C, {"$patch": "replace"}), _pod(C)),
        (_pod(A), _pod({"name": "a", "image": None}), _pod({"name": "a"})),
        # a resize, as kubectl sends it
        (
            _pod({**A, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}),
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "a"}],
                    "containers": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}],
                }
            },
            _pod({**A, "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}),
        ),
        # the order that the client wants, with and without items
        (
            _pod(A, B, C),
            {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]}},
            _pod(C, A, B),
        ),
        (
            _pod(A, B),
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}], "containers": [C]}},
            _pod(B, C, A),
        ),
        # maps merge, null removes; directives of a map
        (
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"b": None, "c": "3"}}},
            {"metadata": {"labels": {"a": "1", "c": "3"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
            {"metadata": {"labels": {"c": "3"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "delete"}}},
            {"metadata": {"labels": {}}},
        ),
        # scalars: united, taken out; lists without a key are replaced
        (
            {"metadata": {"finalizers": ["x", "y"]}},
            {"metadata": {"finalizers": ["z", "x"]}},
            {"metadata": {"finalizers": ["z", "x", "y"]}},
        ),
        (
            {"metadata": {"finalizers": ["x", "y"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x", "q"]}},
            {"metadata": {"finalizers": ["y"]}},
        ),
        (
            _pod({"name": "a", "command": ["x", "y"]}),
            _pod({"name": "a", "command": ["z"]}),
            _pod({"name": "a", "command": ["z"]}),
        ),
        # a union keeps only what the patch names
        (
            _pod(volumes=[{"name": "v", "emptyDir": {}}]),
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}},
            _pod(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]),
        ),
        # tolerations have no key to merge by
        (_pod(tolerations=[{"key": "a"}]), _pod(tolerations=[{"key": "b"}]), _pod(tolerations=[{"key": "b"}])),
    ],
)
def test_strategic_merge(document: Json, patch: Json, expected: Json) -> None:
    assert strategic.apply(document, patch, Pod) == expected


def test_the_merge_key_is_the_one_of_the_kind() -> None:
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}
    account = {"secrets": [{"name": "a"}]}
    assert strategic.apply(node, patch, Node)["spec"]["taints"] == [{"key": "a", "effect": "NoExecute"}]
    assert strategic.apply(account, {"secrets": [{"name": "b"}]}, ServiceAccount) == {
        "secrets": [{"name": "b"}, {"name": "a"}]
    }


@pytest.mark.parametrize(
    "patch",
    [
        [],
        "x",
        _pod({"image": "no name"}),
        _pod({"name": {"x": None}}),
        _pod({"name": []}),
        _pod("a"),
        {"spec": {"$patch": "explode"}},
        {"spec": {"$retainKeys": "a"}},
        {"spec": {"$setElementOrder/containers": 1}},
        {"metadata": {"$deleteFromPrimitiveList": ["x"]}},
        {"spec": {"$setElementOrder/containers": [{"image": "x"}]}},
    ],
)
def test_a_strategic_patch_that_makes_no_sense_is_a_bad_request(patch: Json) -> None:
    with pytest.raises(ApiError) as refused:
        strategic.apply({**_pod(A), "metadata": {"finalizers": ["x"]}}, patch, Pod)
    assert refused.value.code == 400


NAMES = st.sampled_from("abcdef")
CONTAINERS = st.lists(NAMES, unique=True, max_size=5).map(lambda names: [{"name": name} for name in names])


@given(CONTAINERS, CONTAINERS, st.sets(NAMES))
def test_strategic_merge_against_its_meaning(live: Json, added: Json, deleted: set[str]) -> None:
    """As a set of names: what was there, and what is patched in, without what is deleted."""
    patch = [item for item in added if item["name"] not in deleted]
    patch += [{"name": name, "$patch": "delete"} for name in sorted(deleted)]
    merged = strategic.apply(_pod(*live), _pod(*patch), Pod)["spec"]["containers"]
    names = [item["name"] for item in merged]
    assert sorted(names) == sorted(({item["name"] for item in (*live, *added)}) - deleted)
    untouched = [item["name"] for item in live if item["name"] in names and item not in added]
    assert [name for name in names if name in untouched] == untouched


@given(CONTAINERS, st.permutations("abcdef"))
def test_the_order_asked_for_is_the_order_given(live: Json, order: list[str]) -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order]}}
    merged = strategic.apply(_pod(*live), patch, Pod)["spec"]["containers"]
    assert [item["name"] for item in merged] == [name for name in order if {"name": name} in live]


@given(JSON, st.dictionaries(st.sampled_from(["data", "metadata", "x"]), JSON, max_size=3))
def test_documents_are_never_changed_in_place(document: Json, patch: Json) -> None:
    live = {"data": document, "metadata": {"labels": {"a": "1"}, "finalizers": ["f"]}}
    text = repr(live)
    with suppress(ApiError):
        strategic.apply(live, patch, ConfigMap)
    mergepatch.apply(live, patch)
    assert repr(live) == text


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"spec": "x"}, "cannot restore struct from: string"),
        ({"spec": {"containers": {"name": "c"}}}, "cannot restore slice from map"),
        ({"spec": {"containers": [{"name": "c", "resources": [1]}]}}, "cannot restore struct from: slice"),
        ({"spec": {"containers": [{"name": "c", "resources": {"limits": 5}}]}}, "cannot restore map from int64"),
        ({"spec": {"containers": [{"name": "c", "command": [{}]}]}}, "unrecognized type: string"),
        ({"spec": {"containers": [{"name": "c", "image": 5}]}}, "cannot convert int64 to string"),
        ({"spec": {"nodeSelector": [1]}}, "cannot restore map from slice"),
        ({"spec": {"priority": "x"}}, "unrecognized type: int32"),
        ({"spec": {"terminationGracePeriodSeconds": "x"}}, "unrecognized type: int64"),
        ({"spec": {"hostNetwork": "x"}}, "unrecognized type: bool"),
        ({"spec": {"tolerations": [7]}}, "cannot restore struct from: int64"),
        ({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": True}}}]}}, "quantities must match"),
    ],
)
def test_an_outcome_that_does_not_fit_the_kind_is_named_by_its_shape(patch: Json, text: str) -> None:
    merged = strategic.apply(_pod({"name": "c"}), patch, Pod)
    with pytest.raises(ApiError) as refused:
        typed_object(merged, Pod)
    assert unfit(str(refused.value.__cause__), Pod, merged).startswith(text)
    assert refused.value.message.startswith('Pod in version "v1" cannot be handled as a Pod: ')


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'{"a": "b', "unexpected end of JSON input"),
        (b"spec: x", "invalid character 's' looking for beginning of value"),
        (b"{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair"),
        (b'{"a": [1 2]}', "invalid character '2' after array element"),
        (b"{} x", "invalid character 'x' after top-level value"),
    ],
)
def test_what_is_no_json_is_refused_in_the_words_of_upstreams_decoder(body: bytes, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        decoding.decoded(body, prefix="error decoding patch: ")
    assert refused.value.message == f"error decoding patch: {text}"
