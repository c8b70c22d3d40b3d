"""Which changes a watch is told of by the store, and which it passes over by itself."""

import pytest

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import info_for
from podfit.apiserver.handlers.selection import Selection
from podfit.net.wire import Request
from podfit.store.protocol import Change, Record


def selection(kind: type, fields: str) -> Selection:
    return Selection.of(info_for(kind), Request("GET", "/", {"fieldSelector": (fields,)}))


def change(name: str) -> Change:
    return Change(False, Record(f"/registry/x/{name}", b'{"spec":{"nodeName":"n1"}}', 1, 1), None)


@pytest.mark.parametrize("kind", [Node, ConfigMap, Pod])
def test_a_watch_of_one_name_is_told_of_that_name(kind: type) -> None:
    about = selection(kind, "metadata.name=a").about
    assert about is not None
    assert [about.value in about.of(change(name)) for name in ("a", "b", "x/a", "aa")] == [True, False, True, False]


def test_a_watch_of_a_nodes_pods_is_told_of_theirs() -> None:
    about = selection(Pod, "spec.nodeName=n1").about
    assert about is not None
    assert about.value in about.of(change("a"))


@pytest.mark.parametrize("fields", ["metadata.name!=a", "spec.nodeName!=n1"])
def test_a_watch_of_all_but_one_is_told_of_everything(fields: str) -> None:
    assert selection(Pod, fields).about is None
