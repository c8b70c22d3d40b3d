"""A node that runs short of memory and of disk, for real: a cgroup of 512 MiB, and a file system of 200 MiB."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupConfig, Layout
from podfit.kubelet.runtime.images import ImageContents, archive
from support.eventually import eventually
from support.machine import Snapshot
from support.up import PODFIT, STAY, Up, manifest, run, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(240)]

MI = 1 << 20


def tainted(up: Up) -> list[str]:
    nodes = up.ok("get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].key}")
    return nodes.split()


def node_condition(up: Up, kind: str) -> str:
    path = f'jsonpath={{.items[0].status.conditions[?(@.type=="{kind}")].status}}'
    return up.ok("get", "nodes", "-o", path)


def writes(name: str, megabytes: int, *, resource: str, request: str, medium: str = "", **more: Any) -> dict[str, Any]:
    """A pod that fills a volume of its own."""
    empty_dir = {key: value for key, value in {"medium": medium, "sizeLimit": more.pop("limit", "")}.items() if value}
    fill = f"dd if=/dev/zero of=/v/file bs=1M count={megabytes} 2>/dev/null; {STAY[2]}"
    container = {
        "name": "app",
        "command": ["sh", "-c", fill],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "resources": {"requests": {resource: request}},
        "readinessProbe": {"exec": {"command": ["sh", "-c", f"test $(stat -c %s /v/file) = {megabytes * MI}"]}},
    }
    return manifest(name, container, volumes=[{"name": "v", "emptyDir": empty_dir}], **more)


def evicted(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("reason") == "Evicted" and pod["status"]["phase"] == "Failed")


# ---------------------------------------------------------------- memory


@pytest.fixture
def small_memory(tmp_path: Path) -> Iterator[Up]:
    """Whose pods have 512 MiB together, in a cgroup that the test makes."""
    before = Snapshot.take()
    parent = f"/podfit-upkeep-{tmp_path.name}"
    cgroups = detect(Layout(parent)).cgroups
    cgroups.create(parent, CgroupConfig(memory_limit=512 * MI))
    up = Up(tmp_path / "data")
    try:
        hard = ("--eviction-hard", "memory.available<100Mi", "--eviction-pressure-transition-period", "5s")
        up.start("--cgroup-root", parent, *hard)
        yield up
        assert up.down().code == 0
    finally:
        up.down()
        cgroups.remove(parent)
    assert Snapshot.take().since(before) == {}


def test_a_node_short_of_memory_evicts_in_upstreams_order(small_memory: Up) -> None:
    """Over its request and of low priority goes first; who is within its request stays, and so does who matters."""
    up = small_memory
    assert up.ok("get", "nodes", "-o", "jsonpath={.items[0].status.capacity.memory}") == "512Mi"
    assert up.ok("get", "nodes", "-o", "jsonpath={.items[0].status.allocatable.memory}") == "412Mi"
    important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"}}
    up.apply(important | {"value": 1000})
    up.apply(
        writes("within", 130, resource="memory", request="200Mi", medium="Memory"),
        writes("matters", 150, resource="memory", request="10Mi", medium="Memory", priorityClassName="important"),
    )
    for name in ("within", "matters"):
        up.pod_when(name, running, "was ready")
    up.apply(writes("greedy", 110, resource="memory", request="10Mi", medium="Memory"))
    up.apply(writes("greedier", 40, resource="memory", request="10Mi", medium="Memory"))
    pod = up.pod_when("greedy", evicted, "was evicted", seconds=60)
    assert pod["status"]["message"].startswith("The node was low on resource: memory. Threshold quantity: 100Mi, avail")
    assert "Container app was using 11" in pod["status"]["message"]
    assert node_condition(up, "MemoryPressure") == "True"
    assert "node.kubernetes.io/memory-pressure" in tainted(up)
    up.ok("wait", "nodes", "--all", "--for=condition=MemoryPressure=false", "--timeout=60s", timeout=70)
    for name in ("within", "matters", "greedier"):
        assert running(up.get("pod", name)), name
    assert "Attempting to reclaim memory" in up.ok("get", "events", "-A")


# ---------------------------------------------------------------- disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Up]:
    """Whose data directory is a file of 200 MiB."""
    before = Snapshot.take()
    image, root = tmp_path / "disk", tmp_path / "data"
    root.mkdir()
    with image.open("wb") as file:
        file.truncate(200 * MI)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, root], check=True)
    up = Up(root)
    try:
        yield up
        assert up.down().code == 0
    finally:
        up.down()
        subprocess.run(["umount", root], check=True)
    assert Snapshot.take().since(before) == {}


def test_a_full_disk_evicts_in_upstreams_order(small_disk: Up) -> None:
    """Who has more on it than they requested, and most of it, goes first; a limit of one's own counts at once."""
    up = small_disk
    hard = "nodefs.available<60Mi,imagefs.available<60Mi"
    up.start("--eviction-hard", hard, "--eviction-pressure-transition-period", "5s")
    disk = "ephemeral-storage"
    up.apply(
        writes("asked", 40, resource=disk, request="50Mi"),
        writes("little", 10, resource=disk, request="0"),
        writes("limited", 12, resource=disk, request="0", limit="5Mi"),
    )
    pod = up.pod_when("limited", evicted, "was evicted")
    assert pod["status"]["message"] == 'Usage of EmptyDir volume "v" exceeds the limit "5Mi". '
    for name in ("asked", "little"):
        up.pod_when(name, running, "was ready")
    up.apply(writes("large", 60, resource=disk, request="0"))
    pod = up.pod_when("large", evicted, "was evicted", seconds=60)
    assert pod["status"]["message"].startswith(
        "The node was low on resource: ephemeral-storage. Threshold quantity: 60Mi, available: "
    )
    assert node_condition(up, "DiskPressure") == "True"
    assert "node.kubernetes.io/disk-pressure" in tainted(up)
    up.ok("wait", "nodes", "--all", "--for=condition=DiskPressure=false", "--timeout=60s", timeout=70)
    for name in ("asked", "little"):
        assert running(up.get("pod", name)), name
    assert "Attempting to reclaim ephemeral-storage" in up.ok("get", "events", "-A")


# ---------------------------------------------------------------- images


def images(up: Up) -> str:
    return up.ok("get", "nodes", "-o", "jsonpath={.items[*].status.images[*].names}")


def test_images_that_nobody_uses_go_when_the_disk_is_full(cluster_dir: Up, tmp_path: Path) -> None:
    """Full is what the thresholds say; podfit's own images stay."""
    up = cluster_dir
    up.start()
    recipe = ImageContents(name="localhost/test/unused:1", command=("/file",), files={"file": Path("/bin/true")})
    answer = run(PODFIT, "image", "load", str(archive(recipe, tmp_path)), "--data", str(up.root))
    assert answer.code == 0, answer.err
    assert up.down().code == 0
    up.start("--image-gc-high-threshold", "2", "--image-gc-low-threshold", "1")
    eventually(
        lambda: images(up),
        lambda kept: "unused" not in kept and "busybox" in kept,
        within=30,
        what="the unused image goes",
    )
    assert "pause" in images(up)
    assert "Insufficient free disk space on the node's image filesystem" in up.ok("get", "events", "-A")
