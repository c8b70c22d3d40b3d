"""The kubelet on a container runtime that somebody else runs: used, adopted, cleared, never stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.net.processes import start_ticks
from support.eventually import PATIENCE
from support.machine import Snapshot
from support.up import PODFIT, Up, manifest, resources, run, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A containerd with the built-in images: its process and its socket."""
    before = Snapshot.take()
    command = [sys.executable, "-m", "support.containerd", "--empty", str(tmp_path / "theirs")]
    tests = str(Path(__file__).parent.parent)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": tests}) as holder:
        assert holder.stdout is not None
        pid, socket = holder.stdout.readline().split()
        yield int(pid), Path(socket)
        holder.send_signal(signal.SIGINT)
        assert holder.wait(30 * PATIENCE) == 0
    assert Snapshot.take().since(before) == {}


def test_pods_run_on_the_runtime_that_was_named(runtime: tuple[int, Path], cluster_dir: Up) -> None:
    pid, socket = runtime
    born = start_ticks(pid)
    theirs = Snapshot.take()
    endpoint = ("--container-runtime-endpoint", f"unix://{socket}")
    cluster_dir.start(*endpoint)
    cluster_dir.apply(manifest("web", {"name": "app", "resources": resources("50m", "32Mi")}))
    first = cluster_dir.pod_when("web", running, "ran")["status"]["containerStatuses"][0]["containerID"]
    patch = '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"60m"},"limits":{"cpu":"60m"}}}]}}'
    cluster_dir.ok("patch", "pod", "web", "--subresource", "resize", "--patch", patch)
    status = cluster_dir.pod_when("web", settled, "was resized")["status"]["containerStatuses"][0]
    assert (status["resources"]["limits"]["cpu"], status["containerID"], status["restartCount"]) == ("60m", first, 0)

    listed = run(PODFIT, "image", "list", "--data", str(cluster_dir.root))
    assert listed.code == 3
    assert "its own tools" in listed.err

    os.kill(cluster_dir.state()["pid"], signal.SIGKILL)
    cluster_dir.start(*endpoint)
    assert cluster_dir.pod_when("web", running, "ran on")["status"]["containerStatuses"][0]["containerID"] == first

    os.kill(cluster_dir.state()["pid"], signal.SIGKILL)
    answer = cluster_dir.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(theirs) == {}
    assert start_ticks(pid) == born, "the runtime is not podfit's to stop"


def test_a_runtime_that_is_not_there_is_named(cluster_dir: Up, tmp_path: Path) -> None:
    missing = tmp_path / "none.sock"
    named = ("--container-runtime-endpoint", str(missing))
    answer = run(PODFIT, "up", "--data", str(cluster_dir.root), "--port", "0", *named)
    assert answer.code == 3
    assert str(missing) in answer.err
    assert "Traceback" not in answer.err
