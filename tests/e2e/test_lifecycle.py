"""Starting, stopping and killing a cluster: what goes on, what ends, what the machine looks like afterwards."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from support.eventually import PATIENCE, process_ended
from support.machine import Snapshot
from support.up import PODFIT, Up, manifest, resources, run, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


def _first(pod: dict) -> tuple[str, int]:  # type: ignore[type-arg]  # of any kind
    status = pod["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_containers_outlive_the_process_and_are_taken_over(cluster_dir: Up, number: signal.Signals) -> None:
    cluster_dir.start()
    cluster_dir.apply(manifest("web", {"name": "app", "resources": resources("50m", "32Mi")}))
    before = _first(cluster_dir.pod_when("web", running, "ran"))
    pid = cluster_dir.state()["pid"]
    os.kill(pid, number)
    process_ended(pid, within=20)
    cluster_dir.start()
    assert _first(cluster_dir.pod_when("web", running, "ran")) == before
    patch = '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"60m"},"limits":{"cpu":"60m"}}}]}}'
    cluster_dir.ok("patch", "pod", "web", "--subresource", "resize", "--patch", patch)
    resized = cluster_dir.pod_when("web", settled, "completed its resize")
    assert resized["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "60m"
    assert _first(resized) == before


def test_down_takes_down_what_a_killed_cluster_left(cluster_dir: Up) -> None:
    before = Snapshot.take()
    cluster_dir.start()
    cluster_dir.apply(manifest("web"))
    cluster_dir.pod_when("web", running, "ran")
    pid = cluster_dir.state()["pid"]
    os.kill(pid, signal.SIGKILL)
    process_ended(pid, within=20)
    assert Snapshot.take().since(before), "the containers have to be running still"
    answer = cluster_dir.down()
    assert answer.code == 0, answer.err
    assert "took down" in answer.out
    assert Snapshot.take().since(before) == {}


def test_down_ends_what_the_runtime_has_forgotten(cluster_dir: Up) -> None:
    """As a containerd leaves it that was killed while it made a sandbox: it knows of none, and something runs."""
    before = Snapshot.take()
    cluster_dir.start()
    pid = cluster_dir.state()["pid"]
    lost = Path(f"/sys/fs/cgroup/cpu{cgroup_layout(DataDir(cluster_dir.root)).root}/podlost")
    lost.mkdir()
    with subprocess.Popen(["sleep", "1000"]) as forgotten:
        try:
            (lost / "cgroup.procs").write_text(str(forgotten.pid))
            os.kill(pid, signal.SIGKILL)
            process_ended(pid, within=20)
            answer = cluster_dir.down()
            assert answer.code == 0, answer.err
            assert forgotten.wait(5 * PATIENCE) == -signal.SIGKILL
        finally:
            forgotten.kill()
    assert Snapshot.take().since(before) == {}


def test_down_says_what_it_could_not_remove(cluster_dir: Up) -> None:
    cluster_dir.start()
    strange = cluster_dir.root / "kubelet" / "somebody's"
    strange.mkdir()
    mounter = TmpfsMounter()
    mounter.tmpfs(strange, size=None)
    try:
        answer = cluster_dir.down()
        assert (answer.code, answer.out) == (1, "")
        assert f"mounts: {strange}" in answer.err
        assert f"mounts: {strange}" in cluster_dir.log(), "the cluster itself has looked, too"
    finally:
        mounter.unmount_below(strange)
    assert cluster_dir.down().code == 0


def test_down_finds_a_cluster_whose_state_file_was_lost(cluster_dir: Up) -> None:
    before = Snapshot.take()
    cluster_dir.start()
    cluster_dir.apply(manifest("web"))
    cluster_dir.pod_when("web", running, "ran")
    pid = cluster_dir.state()["pid"]
    os.kill(pid, signal.SIGKILL)
    process_ended(pid, within=20)
    (cluster_dir.root / "up.json").unlink()
    answer = cluster_dir.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(before) == {}


def test_pods_come_back_after_everything_was_stopped(cluster_dir: Up) -> None:
    cluster_dir.start()
    cluster_dir.apply(manifest("web"))
    before = _first(cluster_dir.pod_when("web", running, "ran"))
    cluster_dir.down()
    cluster_dir.start()
    after = _first(cluster_dir.pod_when("web", lambda pod: running(pod) and _first(pod) != before, "ran again"))
    assert after[0] != before[0]


def test_a_killed_containerd_is_started_again_under_its_containers(cluster_dir: Up) -> None:
    cluster_dir.start()
    cluster_dir.apply(manifest("web", {"name": "app", "resources": resources("50m", "32Mi")}))
    before = _first(cluster_dir.pod_when("web", running, "ran"))
    killed, began = cluster_dir.state()["nodes"][0]["containerd_pid"], cluster_dir.state()["started"]
    os.kill(killed, signal.SIGKILL)
    patch = '{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"60m"},"limits":{"cpu":"60m"}}}]}}'
    cluster_dir.ok("patch", "pod", "web", "--subresource", "resize", "--patch", patch)
    resized = cluster_dir.pod_when("web", settled, "completed its resize", seconds=60)
    assert resized["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "60m"
    assert _first(resized) == before
    now = cluster_dir.state()
    assert (now["started"], now["ready"]) == (began, True)
    assert now["nodes"][0]["containerd_pid"] != killed
    command = Path(f"/proc/{now['nodes'][0]['containerd_pid']}/cmdline").read_text()
    assert str(cluster_dir.root) in command


def test_a_directory_and_a_port_are_used_once(cluster_dir: Up) -> None:
    cluster_dir.start(node="none")
    again = run(PODFIT, "up", "--data", str(cluster_dir.root), "--port", "0", "--node", "none")
    assert again.code == 3
    assert f"{cluster_dir.root} is in use by podfit (pid {cluster_dir.state()['pid']}" in again.err
    port = cluster_dir.state()["server"].rpartition(":")[2]
    other = cluster_dir.root.with_name("other")
    clash = run(PODFIT, "up", "--data", str(other), "--port", port, "--node", "none")
    assert clash.code == 3
    assert f"port {port} on 127.0.0.1 is in use" in clash.err


def test_a_start_that_fails_leaves_no_runtime_behind(cluster_dir: Up, tmp_path: Path) -> None:
    cluster_dir.start(node="none")
    port = cluster_dir.state()["server"].rpartition(":")[2]
    before = Snapshot.take()
    clash = run(PODFIT, "up", "--data", str(tmp_path / "other"), "--port", port, "--node", "real")
    assert clash.code == 3
    assert Snapshot.take().since(before) == {}


@pytest.mark.parametrize("moment", [0.2, 0.35, 0.5])
def test_ctrl_c_during_the_start_leaves_nothing(tmp_path: Path, moment: float) -> None:
    before = Snapshot.take()
    command = [PODFIT, "up", "--data", str(tmp_path / "data"), "--port", "0", "--kubeconfig", str(tmp_path / "kc")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as starting:
        try:
            starting.wait(moment)
        except subprocess.TimeoutExpired:
            starting.send_signal(signal.SIGINT)
        _, err = starting.communicate(timeout=30 * PATIENCE)
    assert "Traceback" not in err
    assert Snapshot.take().since(before) == {}


def test_the_context_is_added_to_the_users_kubeconfig_and_taken_out(tmp_path: Path) -> None:
    kubeconfig, data = tmp_path / "config", tmp_path / "data"
    mine = (
        "apiVersion: v1\nkind: Config\ncurrent-context: mine\nclusters: [{name: c, cluster: {server: 'https://x'}}]\n"
        "users: [{name: u, user: {token: t}}]\ncontexts: [{name: mine, context: {cluster: c, user: u}}]\n"
    )
    kubeconfig.write_text(mine)
    environment = {"KUBECONFIG": str(kubeconfig)}
    up = run(PODFIT, "up", "--detach", "--data", str(data), "--port", "0", "--node", "simulated", env=environment)
    try:
        assert up.code == 0, up.err
        assert up.out.splitlines()[-1] == "next: kubectl --context podfit get nodes"
        assert "simulated-1: simulated" in up.out
        assert run("kubectl", "config", "current-context", env=environment).out == "mine\n"
        assert "simulated-1" in run("kubectl", "--context", "podfit", "get", "nodes", env=environment).out
    finally:
        down = run(PODFIT, "down", "--data", str(data), env=environment)
    assert down.code == 0, down.err
    assert run("kubectl", "config", "get-contexts", "-o", "name", env=environment).out == "mine\n"


@pytest.mark.timeout(180)
def test_the_demo_tells_the_truth_and_leaves_nothing(tmp_path: Path) -> None:
    before = Snapshot.take()
    told = run(PODFIT, "demo", "--data", str(tmp_path / "demo"), timeout=150)
    assert told.code == 0, told.err + told.out
    assert told.out.count("  ok  ") >= 12
    assert Snapshot.take().since(before) == {}


@pytest.mark.parametrize("after", ["1. A CPU limit", "2. Pod-level", "still Deferred"])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, after: str) -> None:
    before = Snapshot.take()
    command = [PODFIT, "demo", "--data", str(tmp_path / "demo")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if after in line:
                break
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
    assert demo.returncode == 130
    assert Snapshot.take().since(before) == {}
