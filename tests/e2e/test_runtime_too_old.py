"""What a pod asks for and the node's runtime is too old to do: the pod waits and says why. containerd 1.6 is."""

import json
from typing import Any

import pytest

from podfit.kubelet.images.image_volumes import lacking
from podfit.kubelet.runtime.types import Version
from support.up import IMAGE, Up, manifest

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


def node_status(up: Up) -> dict[str, Any]:
    (node,) = json.loads(up.ok("get", "nodes", "-o", "json"))["items"]
    found: dict[str, Any] = node["status"]
    return found


def told(pod: dict[str, Any]) -> bool:
    """Whether the only container runs, or says why not."""
    (status,) = pod["status"].get("containerStatuses") or [{"state": {}}]
    return "message" in status["state"].get("waiting", {}) or "running" in status["state"]


def test_recursive_read_only_mounts_are_made_or_refused(cluster: Up) -> None:
    mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}
    cluster.apply(
        manifest("recursive", {"name": "c", "volumeMounts": [mount]}, volumes=[{"name": "v", "emptyDir": {}}])
    )

    (status,) = cluster.pod_when("recursive", told, "said how it is")["status"]["containerStatuses"]
    if node_status(cluster)["runtimeHandlers"][0]["features"]["recursiveReadOnlyMounts"]:
        assert status["volumeMounts"][0]["recursiveReadOnly"] == "Enabled"
    else:
        waiting = status["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"].endswith("but it is not supported by the runtime")
    cluster.ok("delete", "pod", "recursive", "--now")


def test_image_volumes_are_mounted_or_refused(cluster: Up) -> None:
    volume = {"name": "v", "image": {"reference": IMAGE, "pullPolicy": "Never"}}
    mount = {"name": "v", "mountPath": "/v"}
    cluster.apply(manifest("mounts", {"name": "c", "volumeMounts": [mount]}, volumes=[volume]))
    (status,) = cluster.pod_when("mounts", told, "said how it is")["status"]["containerStatuses"]
    runtime = node_status(cluster)["nodeInfo"]["containerRuntimeVersion"].removeprefix("containerd://")
    if lacking(Version(runtime_name="containerd", runtime_version=runtime, api_version="v1")):
        text = f'volume "v": image volumes need containerd 2.1 or later, this node has {runtime}'
        assert status["state"]["waiting"] == {"reason": "CreateContainerConfigError", "message": text}
    else:
        assert "busybox" in cluster.ok("exec", "mounts", "--", "ls", "/v/bin")
    cluster.ok("delete", "pod", "mounts", "--now")
