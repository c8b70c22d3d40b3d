"""Two clusters in one process have nothing in common: neither kinds, nor objects, nor counts, nor their end."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.testing.cluster import Cluster

CLEAN_UP = 10


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    first, second = Cluster(tmp_path / "first"), Cluster(tmp_path / "second")
    try:
        yield first, second
    finally:
        second.close()


def kind(default: str) -> dict[str, Any]:
    """Of one name in both, with another schema."""
    size = {"type": "string", "default": default}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {"size": size}}}}
    names = {"plural": "foos", "singular": "foo", "kind": "Foo"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


FOO = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}}
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: busybox, resources: {requests: {cpu: CPU}}}]}
"""


def requests_for_foos(cluster: Cluster) -> float:
    page = cluster.run(cluster.client.request("GET", "/metrics")).decode()
    lines = re.findall(r'^apiserver_request_total\{.*resource="foos".*\} (\S+)$', page, re.MULTILINE)
    return sum(map(float, lines))


def test_two_clusters_in_one_process_have_nothing_in_common(clusters: tuple[Cluster, Cluster]) -> None:
    first, second = clusters
    for cluster, size in ((first, "small"), (second, "large")):
        cluster.apply(kind(size), FOO, POD.replace("CPU", "1" if cluster is first else "2"))
    shown = [cluster.get("example.com/v1", "Foo", "a")["spec"]["size"] for cluster in clusters]
    assert shown == ["small", "large"]

    before = requests_for_foos(second)
    for _ in range(3):
        first.get("example.com/v1", "Foo", "a")
    assert requests_for_foos(second) == before
    assert requests_for_foos(first) > 0

    first.resize("web", app={"requests": {"cpu": "3"}})
    first.clock.advance(CLEAN_UP)
    sizes = [
        cluster.get("v1", "Pod", "web")["spec"]["containers"][0]["resources"]["requests"]["cpu"] for cluster in clusters
    ]
    assert sizes == ["3", "2"]
    assert second.clock.elapsed < first.clock.elapsed

    first.close()
    second.resize("web", app={"requests": {"cpu": "1"}})
    second.clock.advance(CLEAN_UP)
    status = second.get("v1", "Pod", "web")["status"]
    assert status["containerStatuses"][0]["resources"]["requests"]["cpu"] == "1"
    second.apply({**FOO, "metadata": {"name": "b"}})
    assert second.get("example.com/v1", "Foo", "b")["spec"]["size"] == "large"
