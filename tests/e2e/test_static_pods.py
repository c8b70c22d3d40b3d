"""A static pod on a real node, as kubectl sees it (R-026)."""

import json
from pathlib import Path

import pytest

from support.up import Up, manifest, resources, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl]


@pytest.mark.row("R-026")
def test_a_manifest_runs_and_its_mirror_cannot_be_resized(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    asked = manifest("web", {"name": "app", "resources": resources("50m", "16Mi")})
    (manifests / "web.json").write_text(json.dumps(asked))
    up = Up(tmp_path / "data")
    up.start("--pod-manifest-path", str(manifests))
    try:
        (node,) = (item["metadata"]["name"] for item in json.loads(up.ok("get", "nodes", "-o", "json"))["items"])
        name = f"web-{node}"
        pod = up.pod_when(name, running, "ran")
        patch = json.dumps({"spec": {"containers": [{"name": "app", "resources": resources("60m", "16Mi")}]}})
        refused = up.kubectl("patch", "pod", name, "--subresource", "resize", "-p", patch)
        assert refused.code == 1
        assert "Forbidden: static pods cannot be resized" in refused.err
        up.ok("delete", "pod", name, "--wait=false")
        again = up.pod_when(
            name, lambda now: now["metadata"]["uid"] != pod["metadata"]["uid"] and running(now), "came back"
        )
        assert again["status"]["containerStatuses"] == pod["status"]["containerStatuses"]
    finally:
        up.down()
