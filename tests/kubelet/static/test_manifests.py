"""A file becomes a pod, with upstream's name and marks."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.static_pods import from_api, is_mirror, is_static
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES
from podfit.decide.pod.system_priority import is_critical
from podfit.kubelet.static.manifests import BadManifest, read

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YAML = b"""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: c1, image: "app:1", resources: {requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 1, memory: 64Mi}}}
"""


def pod(content: bytes = YAML, path: str = "/etc/web.yaml", node: str = "n1") -> Pod:
    return read(content, path=path, node=node, now=NOW, gates=DEFAULT_GATES)


def test_a_manifest_becomes_a_pod_of_this_node() -> None:
    found = pod()
    meta = found.metadata
    assert (meta.name, meta.namespace, meta.labels, found.spec.node_name) == ("web-n1", "default", {"app": "web"}, "n1")
    assert meta.annotations == {
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.hash": meta.uid,
        "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
    }
    assert (found.spec.tolerations[-1].operator, found.spec.tolerations[-1].effect) == ("Exists", "NoExecute")
    assert (found.status.phase, found.status.qos_class) == ("Pending", "Guaranteed")
    assert found.spec.restart_policy == "Always", "defaults are filled in"
    assert is_static(found)
    assert not is_mirror(found)
    assert is_critical(found)


def test_the_uid_is_of_what_the_file_says_and_where_it_lies() -> None:
    as_json = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "c1",
                        "image": "app:1",
                        "resources": {"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"cpu": 1, "memory": "64Mi"}},
                    }
                ]
            },
        }
    ).encode()
    assert len(pod().metadata.uid) == 32
    assert pod(as_json).metadata.uid == pod().metadata.uid, "JSON is YAML"
    others = (pod(YAML.replace(b"app:1", b"app:2")), pod(path="/etc/x.yaml"), pod(node="n2"))
    assert len({pod().metadata.uid, *(other.metadata.uid for other in others)}) == 4


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "one object"),
        (b"[]", "one object"),
        (YAML + b"---" + YAML, "one object"),
        (b"{", "neither YAML nor JSON"),
        (b"\xff\xfe\x00", "neither YAML nor JSON"),
        (YAML.replace(b"kind: Pod", b"kind: Secret"), "v1 Pod, not v1 Secret"),
        (YAML.replace(b"name: c1", b"name: C_1"), "spec.containers"),
        (YAML.replace(b"cpu: 1", b"cpu: [1]"), "quantity"),
        (YAML.replace(b"name: web", b"deletionTimestamp: 2026-01-01T00:00:00Z, name: web"), "deletionTimestamp"),
        (YAML.replace(b"metadata: {name: web, labels: {app: web}}", b"metadata: {}"), "name"),
        (YAML + b"  serviceAccountName: default\n", "may not reference serviceaccounts"),
        (YAML + b"  volumes: [{name: v, secret: {secretName: s}}]\n", "may not reference secrets"),
        (
            YAML + b"  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n",
            "may not reference persistentvolumecl",
        ),
    ],
)
def test_what_is_no_manifest_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(BadManifest, match=why):
        pod(content)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_file_does_harm(content: bytes) -> None:
    with pytest.raises(BadManifest):
        pod(content)


def test_a_pod_of_the_api_cannot_claim_to_come_from_a_file() -> None:
    assert not is_critical(from_api(pod()))
    assert not is_static(from_api(pod()))
