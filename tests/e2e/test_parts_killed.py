"""Each part of a cluster is a process of its own, and any of them is killed in the middle of a hundred resizes.

`podfit apiserver` on its SQLite store, `podfit controllers`, `podfit scheduler` and `podfit kubelet` are started again
by the test, the kubelet's containerd by the kubelet. Afterwards every pod has the size it was asked for in spec, status
and kernel, in the container that it began with, and every acknowledged write is there.
"""

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.storm import Storm, containerd_pid
from support.apiserver_processes import ApiProcess
from support.kubelet import KubeletProcess
from support.machine import Snapshot
from support.up import PODFIT, Up, manifest, run, running

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.row("R-170", "R-171", "R-172", "R-174"),
]
PARTS = ("apiserver", "controllers", "scheduler", "kubelet", "containerd")
SECONDS = 120.0


class Parts:
    """The processes of one cluster with one node, below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._api = ApiProcess(root / "api", "admin")
        self.up = Up(self._api.data)
        options = ("--port", "0", "--eviction-hard", "")
        self._kubelet = KubeletProcess(root / "node", self.up.kubeconfig, "n1", options)
        self._others: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for part in PARTS[:-1]:
            self._start(part)

    def kill(self, part: str) -> None:
        """With SIGKILL; it is started again, by the kubelet in the case of containerd."""
        if part == "containerd":
            os.kill(containerd_pid(self.node), signal.SIGKILL)
        elif part == "apiserver":
            self._api.kill()
        elif part == "kubelet":
            self._kubelet.end(signal.SIGKILL)
        else:
            self._others[part].kill()
            self._others.pop(part).wait(60)
        if part != "containerd":
            self._start(part)

    def keep(self) -> None:
        """Controllers and scheduler end when they could not renew their Lease, and are started again, as by systemd."""
        for part, other in list(self._others.items()):
            if other.poll() is not None:
                log = (self._root / f"{part}.log").read_text()
                assert "no longer the leader" in log.splitlines()[-2], log
                self._start(part)

    def stop(self) -> None:
        """Nothing is left on the machine."""
        for other in self._others.values():
            other.terminate()
            other.wait(60)
        self._kubelet.end()
        self._api.stop()
        down = run(PODFIT, "down", "--data", str(self.node), timeout=90)
        assert down.code == 0, down.err

    @property
    def node(self) -> Path:
        return self._kubelet.data

    def _start(self, part: str) -> None:
        if part == "apiserver":
            self._api.start()
            self._api.await_ready()
        elif part == "kubelet":
            self._kubelet.start()
        else:
            with (self._root / f"{part}.log").open("a") as log:
                command = (PODFIT, part, "--data", str(self._api.data), "--secure-port", "0")
                self._others[part] = subprocess.Popen(command, stdout=log, stderr=log)


@contextmanager
def parts(root: Path) -> Iterator[Parts]:
    before = Snapshot.take()
    made = Parts(root)
    try:
        made.start()
        yield made
    finally:
        made.stop()
    assert Snapshot.take().since(before) == {}


def killed(made: Parts, seed: int, victims: list[str]) -> Storm:
    """One after the other, each in a storm of a hundred resizes. In the end new pods are placed and run."""
    made.up.ok("wait", "--for=create", "serviceaccount/default", "--timeout=60s", timeout=90)
    storm = Storm(made.up, seed=seed, resizes=5, node=made.node, stubborn=True)
    storm.begin()
    for number, part in enumerate(victims):
        storm.disturb(partial(made.kill, part))
        storm.check(f"after kill {number}, of {part}", seconds=SECONDS)
        made.keep()
    assert storm.resizes == 100 * len(victims)
    made.up.apply(manifest("last"))

    def runs(pod: dict[str, Any]) -> bool:
        made.keep()
        return running(pod)

    made.up.pod_when("last", runs, "ran", seconds=SECONDS)
    return storm


@pytest.mark.timeout(600)
def test_the_parts_are_killed(tmp_path: Path) -> None:
    with parts(tmp_path) as made:
        killed(made, 13, ["kubelet", "apiserver", "containerd"])


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(1301, 1306))
def test_the_parts_are_killed_again_and_again(tmp_path: Path, seed: int, figure: Callable[[str, object], None]) -> None:
    """10 of 50 times: API server, controllers, scheduler, kubelet or containerd, as a seed says, is killed (SIGKILL) in
    the middle of 100 resizes of 10 pods and started again. All converges, no acknowledged write is lost, and no
    container restarts.
    """
    choose = random.Random(seed)
    victims = [choose.choice(PARTS) for _ in range(10)]
    with parts(tmp_path) as made:
        storm = killed(made, seed, victims)
    storm.tell(figure)
    figure("killed", ", ".join(f"{name} {count}" for name, count in sorted(Counter(victims).items())))
