"""`podfit controllers` is killed (SIGKILL) in the middle of rollouts and drains, and another one goes on."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.eventually import PATIENCE, eventually
from support.up import KEPT_AS_WRITTEN, PODFIT, Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("controllers-sigkilled"), pytest.mark.campaign]
MAKERS = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller"
NODES = ("simulated-1", "simulated-2", "simulated-3")
SECONDS = 120.0
SIZES = {"web": 6, "db": 3}


class Controllers:
    """The process; another one may go on when the Lease of the killed one is over, after 15 seconds."""

    def __init__(self, up: Up, log: Path) -> None:
        self._up, self._log = up, log
        self._process = self._started()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30 * PATIENCE)
        self._process = self._started()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30 * PATIENCE)

    def _started(self) -> "subprocess.Popen[bytes]":
        where = ("--data", str(self._up.root), "--kubeconfig", str(self._up.kubeconfig))
        command = (PODFIT, "controllers", *where, "--secure-port", "0", "--controllers", MAKERS)
        with self._log.open("a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)


def manifest(kind: str, name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": SIZES[name], "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def after_events(up: Up, count: int) -> None:
    """So many changes of pods later."""
    command = up.kubectl_command("get", "pods", "-w", "--output-watch-events", "--no-headers")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        for _ in range(sum(SIZES.values()) + count):
            watch.stdout.readline()
        watch.kill()


def converged(up: Up, *, gone: str = "") -> None:
    """Each pod is there once, on another node than `gone`. A status may be one of before the kill, so pods are counted
    until they are right; a cluster beside the test has no clock to move."""
    eventually(partial(pods_of, up, gone), SIZES.__eq__, within=SECONDS, what=f"{SIZES}")
    for name in ("deployment/web", "statefulset/db"):
        up.ok("rollout", "status", name, "--timeout=90s", timeout=100)
    assert pods_of(up, gone) == SIZES


def pods_of(up: Up, gone: str) -> dict[str, int]:
    """How many there are of each workload; and what is not as it should be."""
    pods = json.loads(up.ok("get", "pods", "-o", "json"))["items"]
    counts: Counter[str] = Counter(pod["metadata"]["labels"]["app"] for pod in pods)
    unready = [pod for pod in pods if not is_well(pod) or pod["spec"].get("nodeName") == gone]
    owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods}
    return {
        **counts,
        **({"unready": len(unready)} if unready else {}),
        **({"old": 1} if len(owners) > len(SIZES) else {}),
    }


def is_well(pod: dict[str, Any]) -> bool:
    ready = ("Ready", "True") in {(told["type"], told["status"]) for told in pod["status"].get("conditions", ())}
    return ready and "deletionTimestamp" not in pod["metadata"]


@pytest.mark.timeout(1200)
def test_the_process_is_killed_in_rollouts_and_drains(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """12 rounds: a rollout of a Deployment and a StatefulSet, or a drain of one of three nodes; after a random number
    of changes of pods `podfit controllers` is killed with SIGKILL and another one is started. All pods are there
    again, each once."""
    chance, up = Random(160), Up(tmp_path / "data")
    up.start(*KEPT_AS_WRITTEN, "--nodes", "3", node="simulated")
    controllers = Controllers(up, tmp_path / "controllers.log")
    try:
        up.apply(manifest("Deployment", "web"), manifest("StatefulSet", "db"))
        converged(up)
        for number in range(12):
            node = chance.choice(NODES)
            drain = number % 2 == 1
            if drain:
                command = up.kubectl_command("drain", node, "--force", "--timeout=90s")
            else:
                command = up.kubectl_command("rollout", "restart", "deployment/web", "statefulset/db")
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as doing:
                after_events(up, chance.randint(1, 12))
                controllers.kill()
                assert doing.wait(120 * PATIENCE) == 0
            converged(up, gone=node if drain else "")
            if drain:
                up.ok("uncordon", node)
        figure("kills", 12)
    finally:
        controllers.stop()
        assert up.down().code == 0, (tmp_path / "controllers.log").read_text()[-3000:]
