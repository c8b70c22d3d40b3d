"""`podfit up`, `status` and `down` of simulated clusters, as a user sees them: one that runs, one that was killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from podfit.cli import status
from podfit.cli.app import run
from podfit.client.kubeconfig import load
from podfit.kubelet.runtime.containerd import Places
from podfit.process.data.data_dir import DataDir
from podfit.process.inspect import NodeReport, Report
from support.eventually import PATIENCE, eventually
from support.terminal import podfit


class Home:
    """A user's home; its clusters are stopped at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_DATA_HOME")}
        self._environment = kept | {"HOME": str(root)}
        self._used: set[str] = set()

    def __call__(self, *arguments: str, code: int = 0, told: Literal["out", "err"] = "out") -> str:
        done = subprocess.run(
            podfit(*arguments),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=90 * PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if told == "out" else done.stderr

    def up(self, name: str, *more: str) -> tuple[str, str]:
        """What it says, and the data directory."""
        data = str(self.root / name)
        self._used.add(data)
        return self("up", "--detach", "--node", "simulated", "--port", "0", "--data", data, *more), data

    def close(self) -> None:
        for data in self._used:
            subprocess.run(podfit("down", "--data", data), env=self._environment, capture_output=True, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()


def kill(data: str) -> None:
    pid = json.loads(Path(data, "up.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)


def test_a_fresh_home_gets_a_current_context_and_nodes_are_told_once(home: Home) -> None:
    said, data = home.up("one", "--nodes", "3")
    assert said.count("simulated (as asked)") == 1
    assert "simulated-1 to simulated-3" in said
    assert "(the current context)" in said
    assert home("why", "-A") == "no resize waits\n"
    assert home("why") == "no resize waits in namespace default\n"
    assert home("down", "--data", data).endswith(" and its simulated nodes\n")
    assert yaml.safe_load((home.root / ".kube/config").read_text())["current-context"] == ""


def test_another_current_context_stays(home: Home) -> None:
    config = home.root / ".kube/config"
    config.parent.mkdir()
    config.write_text("{apiVersion: v1, kind: Config, current-context: production}")
    said, _ = home.up("one")
    assert "(current context unchanged)" in said
    assert "next: kubectl --context podfit get nodes" in said
    assert yaml.safe_load(config.read_text())["current-context"] == "production"


def test_a_crash_is_told_and_so_are_other_clusters(home: Home) -> None:
    _, first = home.up("one")
    _, second = home.up("two", "--kubeconfig", str(home.root / "two.yaml"))
    also = [line for line in home("status", "--data", first).splitlines() if line.startswith("  also ")]
    assert len(also) == 1
    assert second in also[0]
    kill(first)
    told = home("status", "--data", first, code=1)
    assert "crashed   podfit (pid " in told
    assert f"clean up:  podfit down --data {first}" in told
    found = json.loads(home("status", "--data", first, "-o", "json", code=1))
    assert ("ended without being stopped" in found["crashed"], second in found["others"]) == (True, True)
    home("down", "--data", first)
    assert "crashed" not in home("status", "--data", first, code=1)


FAKE = """
apiVersion: v1
kind: Node
metadata: {name: made, annotations: {kwok.x-k8s.io/node: fake}}
status: {capacity: {cpu: "7"}}
"""
ON_IT = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {nodeName: made, containers: [{name: app, image: "app:1"}]}
"""


async def _made(data: str) -> None:
    client = load([Path(data, "admin.kubeconfig")]).client()
    try:
        await client.request("POST", "/api/v1/nodes", json.dumps(yaml.safe_load(FAKE)).encode())
        await client.request("POST", "/api/v1/namespaces/default/pods", json.dumps(yaml.safe_load(ON_IT)).encode())
    finally:
        await client.close()


def test_a_played_node_is_told_as_such_and_outlives_a_kill(home: Home) -> None:
    said, data = home.up("one", "--play-kwok-nodes")
    assert "Nodes annotated kwok.x-k8s.io/node: fake are simulated; their containers do not run" in said
    assert "  played " not in home("status", "--data", data)
    asyncio.run(_made(data))

    def found() -> Any:
        report = json.loads(home("status", "--data", data, "-o", "json"))
        return report["played"], report["pods"]

    runs = ({"Ready": 1}, {"Running": 1})
    eventually(found, lambda report: report == runs, within=20, what="the pod on the played node runs")
    kill(data)
    home.up("one", "--play-kwok-nodes")
    eventually(found, lambda report: report == runs, within=20, what="it does again")
    told = home("status", "--data", data)
    assert "played    1 Ready: Nodes that others made, simulated; their containers do not run" in told
    assert "played by podfit (kwok.x-k8s.io/node: fake): its containers do not run" in home(
        "why", "node/made", "--kubeconfig", str(Path(data, "admin.kubeconfig"))
    )


def test_a_port_that_another_cluster_has_is_told_with_its_directory(home: Home) -> None:
    _, first = home.up("one")
    state = json.loads(Path(first, "up.json").read_text())
    port = state["server"].rpartition(":")[2]
    second = home("up", "--node", "simulated", "--port", port, "--data", f"{home.root}/two", code=3, told="err")
    holder = f"podfit (pid {state['pid']}, started {state['started']}, data directory {first})"
    assert f"error: port {port} on 127.0.0.1 is in use by {holder}\n" in second
    assert f"see it:  podfit status --data {first}\n" in second


def test_what_a_crash_left_is_listed(home: Home) -> None:
    """A containerd of this directory, as its command line says."""
    _, data = home.up("one")
    kill(data)
    config = str(Places(DataDir(Path(data)).containerd).config)
    wait = "import sys; print(flush=True); sys.stdin.read()"
    command = ["bash", "-c", 'exec -a containerd "$@"', "bash", sys.executable, "-c", wait, config]
    left = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert left.stdout is not None
        left.stdout.readline()
        told = home("status", "--data", data, code=1)
        assert f"left      processes: {left.pid} containerd" in told
        assert f"start it again and take over what still runs:  podfit up --data {data}" in told
    finally:
        left.communicate()
    assert "  left " not in home("status", "--data", data, code=1)


@pytest.mark.parametrize(("ready", "node", "code"), [(True, True, 0), (False, True, 1), (True, False, 1)])
def test_a_cluster_that_is_not_ready_fails_a_health_check(
    ready: bool, node: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inspected(data: DataDir) -> Report:
        nodes = (NodeReport("n1", "simulated", "no containers", node),)
        return Report(running=True, data=str(data.root), ready=ready, nodes=nodes)

    monkeypatch.setattr(status, "inspect", inspected)
    assert run(["status", "--data", str(tmp_path)]) == code
    assert run(["status", "--data", str(tmp_path), "-o", "json"]) == code
