"""The data of controller revisions, byte by byte, as clients compare it."""

import json
from typing import Any

import msgspec
import pytest

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.history import HASH
from podfit.testing.cluster import Cluster
from support.forged_owners import LABELS, workload

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
SHELL = ["sh", "-c", "true && cat < /dev/null > /dev/null \u2028\u2029é"]
TEMPLATE = {
    "metadata": {"labels": {**LABELS, "a": "first"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "app", "image": "one", "env": [{"name": "B", "value": "1"}], "command": SHELL}],
    },
}


def sorted_bytes(document: Any) -> bytes:
    """As Go's json.Marshal writes a map."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode()


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str]


class _Revision(msgspec.Struct):
    metadata: _Meta
    data: msgspec.Raw
    revision: int


class _Revisions(msgspec.Struct):
    items: list[_Revision]


class Histories:
    """Of the one workload of a cluster."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        self._cluster, self._kind = cluster, kind

    def current(self) -> _Revision:
        """The only revision whose bytes are the patch of the present template, as upstream's suite finds it."""
        found = self._cluster.get("apps/v1", self._kind, "w")
        patch = sorted_bytes({"spec": {"template": found["spec"]["template"] | {"$patch": "replace"}}})
        (same,) = [revision for revision in self.revisions() if bytes(revision.data) == patch]
        return same

    def revisions(self) -> list[_Revision]:
        told = self._cluster.run(self._cluster.client.request("GET", REVISIONS))
        return msgspec.json.decode(told, type=_Revisions).items

    def pods(self) -> list[Pod]:
        return list(self._cluster.run(self._cluster.client.list(Pod, "default")).items)


@pytest.mark.podfit(nodes=2)
def test_daemon_set_should_update_pod_when_spec_was_updated_and_update_strategy_is_rolling_update(
    cluster: Cluster,
) -> None:
    """The steps of the conformance spec of that name."""
    cluster.apply(workload("DaemonSet", template=TEMPLATE, updateStrategy={"type": "RollingUpdate"}))
    cluster.clock.advance(10)
    histories = Histories(cluster, "DaemonSet")
    first = histories.current()
    assert (first.revision, len(histories.revisions())) == (1, 1)
    assert [pod.metadata.labels[HASH] for pod in histories.pods()] == [first.metadata.labels[HASH]] * 2
    image = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "two"}]}}}}
    cluster.run(cluster.client.patch(DaemonSet, "w", "default", image))
    cluster.clock.advance(60)
    second = histories.current()
    assert (second.revision, len(histories.revisions())) == (2, 2)
    assert second.metadata.labels[HASH] != first.metadata.labels[HASH]
    pods = histories.pods()
    assert [pod.metadata.labels[HASH] for pod in pods] == [second.metadata.labels[HASH]] * 2
    assert [pod.spec.containers[0].image for pod in pods] == ["two", "two"]


@pytest.mark.podfit(nodes=2)
@pytest.mark.parametrize("kind", [DaemonSet, StatefulSet], ids=lambda kind: kind.__name__)
def test_a_revision_that_an_earlier_podfit_wrote_rolls_nothing_out(cluster: Cluster, kind: type[Any]) -> None:
    """Its keys are in the order of a pod's fields, and `$patch` is the last."""
    name = kind.__name__
    cluster.apply(workload(name, template=TEMPLATE))
    cluster.clock.advance(30)
    histories = Histories(cluster, name)
    before, current = {pod.metadata.uid for pod in histories.pods()}, histories.current()
    cluster.run(cluster.client.delete(kind, "w", "default", propagation="Orphan"))
    cluster.clock.advance(5)
    cluster.run(cluster.client.delete(ControllerRevision, current.metadata.name, "default"))
    data = _reversed(json.loads(bytes(current.data)))
    assert sorted_bytes(data) == bytes(current.data) != json.dumps(data, separators=(",", ":")).encode()
    meta = {"name": current.metadata.name, "labels": current.metadata.labels}
    made = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "data": data, "revision": 1}
    cluster.apply(made)
    cluster.apply(workload(name, template=TEMPLATE))
    cluster.clock.advance(60)
    assert {pod.metadata.uid for pod in histories.pods()} == before
    assert [revision.metadata.name for revision in histories.revisions()] == [current.metadata.name]


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value
