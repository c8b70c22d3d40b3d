"""A data directory that takes nothing: full, or with its checkpoints on a read-only mount.

Resizes wait with the reason, are never half done, the process lives on, and all of it completes once there is room.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.kubelet.disk.mounter import TmpfsMounter
from support.machine import Snapshot
from support.up import Up, manifest, resources, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]

SIZE = 96 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Up]:
    """A cluster whose data directory is a small file system of its own."""
    before = Snapshot.take()
    root = tmp_path / "data"
    root.mkdir()
    mounter = TmpfsMounter()
    mounter.tmpfs(root, size=SIZE)
    up = Up(root)
    try:
        yield up
        assert up.down().code == 0
    finally:
        mounter.unmount_below(root)
    assert Snapshot.take().since(before) == {}


def _resize(up: Up, cpu: str) -> Any:
    patch = {"spec": {"containers": [{"name": "app", "resources": resources(cpu, "32Mi")}]}}
    return up.kubectl("patch", "pod", "web", "--subresource", "resize", "--patch", json.dumps(patch))


def _identity(pod: dict[str, Any]) -> tuple[str, int]:
    status = pod["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def _fill(root: Path) -> Path:
    """A file that takes all there is."""
    ballast = root / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return ballast


def test_a_full_disk_loses_nothing_and_ends_nothing(small_disk: Up) -> None:
    small_disk.start()
    small_disk.apply(manifest("web", {"name": "app", "resources": resources("50m", "32Mi")}))
    first = _identity(small_disk.pod_when("web", running, "ran"))
    pid = small_disk.state()["pid"]
    ballast = _fill(small_disk.root)
    _resize(small_disk, "60m")  # taken or refused: what counts is that nothing ends and what comes later is done
    assert small_disk.get("pod", "web")["status"]["phase"] == "Running"
    ballast.unlink()
    assert _resize(small_disk, "70m").code == 0
    pod = small_disk.pod_when("web", settled, "completed its resize", seconds=60)
    assert pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "70m"
    assert (_identity(pod), small_disk.state()["pid"]) == (first, pid)


def test_checkpoints_on_a_read_only_mount_defer_resizes(cluster_dir: Up) -> None:
    cluster_dir.start()
    cluster_dir.apply(manifest("web", {"name": "app", "resources": resources("50m", "32Mi")}))
    first = _identity(cluster_dir.pod_when("web", running, "ran"))
    folder = cluster_dir.root / "kubelet" / cluster_dir.state()["nodes"][0]["name"]
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        assert _resize(cluster_dir, "60m").code == 0
        pod = cluster_dir.pod_when("web", _deferred, "was deferred")
        (pending,) = [condition for condition in pod["status"]["conditions"] if condition["type"] == "PodResizePending"]
        assert pending["message"] == f"could not write {folder}/allocated_pods_state: Read-only file system"
        status = pod["status"]["containerStatuses"][0]
        assert (status["allocatedResources"]["cpu"], status["resources"]["limits"]["cpu"]) == ("50m", "50m")
    finally:
        subprocess.run(["umount", folder], check=True)
    pod = cluster_dir.pod_when("web", settled, "completed its resize", seconds=60)
    assert pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "60m"
    assert _identity(pod) == first


def _deferred(pod: dict[str, Any]) -> bool:
    return any(condition["type"] == "PodResizePending" for condition in pod["status"].get("conditions", []))
