"""`podfit up --make-room=preempt` on a real node: the story of the 1.27 announcement (docs/room.md)."""

from typing import Any

import pytest

from support.up import Up, manifest, run, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


def _klass(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _pod(name: str, klass: str, milli: int, minimum: str = "") -> dict[str, Any]:
    made = manifest(name, {"name": "app", "resources": {"requests": {"cpu": f"{milli}m"}}}, priorityClassName=klass)
    return made | {"metadata": {"name": name, "annotations": {"podfit.dev/minimum": minimum} if minimum else {}}}


def _shares(up: Up, pod: dict[str, Any]) -> int:
    """What the kernel holds for the container."""
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    root = up.state()["nodes"][0]["cgroup_root"].strip("/")
    found = run("find", "/sys/fs/cgroup", "-path", f"*/{root}/*/{container}/cpu.shares").out.split()
    if found:
        return int(run("cat", found[0]).out)
    weight = run("find", "/sys/fs/cgroup", "-path", f"*/{root}/*/{container}/cpu.weight").out.split()
    return 2 + (int(run("cat", weight[0]).out) - 1) * 262142 // 9999


def test_low_priority_pods_shrink_in_place_and_only_then_go(cluster_dir: Up) -> None:
    up = cluster_dir
    up.start("--make-room=preempt")
    milli = (
        int(
            up.get("node", up.ok("get", "nodes", "-o", "name").strip().removeprefix("node/"))["status"]["allocatable"][
                "cpu"
            ]
        )
        * 1000
    )
    tenth = milli // 10
    up.apply(_klass("vip", 1000), _klass("low", -10))
    up.apply(
        _pod("web", "vip", 2 * tenth), _pod("batch", "low", 6 * tenth, f"cpu={3 * tenth}m"), _pod("plain", "", tenth)
    )
    before = {name: up.pod_when(name, running, "ran") for name in ("web", "batch", "plain")}

    def resize(to: int) -> None:
        patch = f'{{"spec":{{"containers":[{{"name":"app","resources":{{"requests":{{"cpu":"{to}m"}}}}}}]}}}}'
        up.ok("patch", "pod", "web", "--subresource", "resize", "--patch", patch)

    def has(name: str, tenths: int) -> dict[str, Any]:
        def holds(pod: dict[str, Any]) -> bool:
            allocated = pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]
            return settled(pod) and allocated == up_to(tenths)

        return up.pod_when(name, holds, f"had {tenths}/10")

    def up_to(tenths: int) -> str:
        return f"{tenths * tenth}m" if tenths * tenth % 1000 else str(tenths * tenth // 1000)

    resize(5 * tenth)
    after = {name: has(name, tenths) for name, tenths in (("web", 5), ("batch", 4), ("plain", 1))}
    for name, pod in after.items():
        old, new = (version["status"]["containerStatuses"][0] for version in (before[name], pod))
        assert (new["containerID"], new["restartCount"]) == (old["containerID"], old["restartCount"])
    assert _shares(up, after["batch"]) == pytest.approx(4 * tenth * 1024 // 1000, rel=0.02)
    assert _shares(up, after["web"]) == pytest.approx(5 * tenth * 1024 // 1000, rel=0.02)
    assert "GaveRoom" in up.ok("get", "events", "--field-selector", "involvedObject.name=batch")
    assert "MakingRoom" in up.ok("get", "events", "--field-selector", "involvedObject.name=web")

    resize(8 * tenth)  # more than batch can give above its minimum
    has("web", 8)
    up.ok("wait", "--for=delete", "pod/batch", "--timeout=30s")
    has("plain", 1)
    assert "EvictedToMakeRoom" in up.ok("get", "events", "--field-selector", "involvedObject.name=batch")
