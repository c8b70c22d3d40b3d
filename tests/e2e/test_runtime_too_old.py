"""What a pod asks for and the node's runtime is too old to do: the pod waits and says why. containerd 1.6 is."""

import json
from typing import Any

import pytest

from support.up import Up, manifest

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


def handler(up: Up) -> dict[str, Any]:
    """Features of the default handler, as the node tells them."""
    (node,) = json.loads(up.ok("get", "nodes", "-o", "json"))["items"]
    found: dict[str, Any] = node["status"]["runtimeHandlers"][0]["features"]
    return found


def test_recursive_read_only_mounts_are_made_or_refused(cluster: Up) -> None:
    mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}
    cluster.apply(
        manifest("recursive", {"name": "c", "volumeMounts": [mount]}, volumes=[{"name": "v", "emptyDir": {}}])
    )

    def told(pod: dict[str, Any]) -> bool:
        (status,) = pod["status"].get("containerStatuses") or [{"state": {}}]
        return "message" in status["state"].get("waiting", {}) or "running" in status["state"]

    (status,) = cluster.pod_when("recursive", told, "said how it is")["status"]["containerStatuses"]
    if handler(cluster)["recursiveReadOnlyMounts"]:
        assert status["volumeMounts"][0]["recursiveReadOnly"] == "Enabled"
    else:
        waiting = status["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"].endswith("but it is not supported by the runtime")
    cluster.ok("delete", "pod", "recursive", "--now")
