"""The parts of a cluster on this machine, each of which can be killed (SIGKILL) and is started again.

    with separate(directory) as parts:      each part is a process of its own, as systemd would run it
    with together(directory) as parts:      `podfit up`
        parts.kill("kubelet")

Afterwards nothing of them is left on the machine: no process, mount or cgroup that has to do with their directory.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from podfit import __version__
from podfit.decide.lifecycle.facts import Sandbox
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.shims import shims
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from podfit.process.node.runtime import private_containerd as containerd_of
from support.apiserver_processes import ApiProcess
from support.etcd import free_ports
from support.eventually import PATIENCE, eventually
from support.kubelet import KubeletProcess
from support.machine import Snapshot
from support.up import PODFIT, Up, run
from support.vpa_processes import DEFINITIONS, RECOMMENDER

CORE = ("apiserver", "controllers", "scheduler", "kubelet")
UNREACHABLE, ANNOUNCED = "error: no answer from the API server", f"podfit {__version__}: "
BESIDE = ("metrics-server", "vpa recommender", "vpa updater", "vpa admission-controller")


class Parts(Protocol):
    """`node` is the data directory of the kubelet, `name` its node's."""

    up: Up
    node: Path
    name: str

    def kill(self, part: str) -> None:
        """With SIGKILL; returns once it is started again."""

    def keep(self) -> None:
        """What ended by itself is started again, as by systemd."""


class Separate:
    def __init__(self, root: Path, beside: tuple[str, ...] = ()) -> None:
        """Those of BESIDE that are to run as well."""
        self._root, self._beside, self.name = root, beside, "n1"
        self._api = ApiProcess(root / "api", "admin")
        self.up = Up(self._api.data)
        options = ("--port", "0", "--eviction-hard", "")
        self._kubelet = KubeletProcess(root / "node", self.up.kubeconfig, self.name, options)
        self.node = self._kubelet.data
        self._port = free_ports(1)[0]  # of the webhook, which is registered by its address
        self._others: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, int] = {}  # where their logs were when they were started

    def start(self) -> None:
        for part in CORE:
            self._start(part)
        if self._beside:
            self.up.ok("apply", "-f", str(DEFINITIONS))
            definition = "crd/verticalpodautoscalers.autoscaling.k8s.io"
            self.up.ok("wait", "--for=condition=Established", definition, "--timeout=30s")
        for part in self._beside:
            self._start(part)

    def kill(self, part: str) -> None:
        if part == "containerd":
            os.kill(containerd_pid(self.node), signal.SIGKILL)  # the kubelet starts it again
            return
        if part == "apiserver":
            self._api.kill()
        elif part == "kubelet":
            self._kubelet.end(signal.SIGKILL)
        else:
            self._others[part].kill()
            self._others.pop(part).wait(60 * PATIENCE)
        self._start(part)

    def keep(self) -> None:
        """Start again what has ended, as a supervisor of its machine does. A part ends where it could not renew its
        Lease, or where it began while the API server was killed."""
        for part, other in list(self._others.items()):
            if other.poll() is not None:
                said = self._log(part).read_bytes()[self._begun[part] :].decode()
                lost = "no longer the leader" in "".join(said.splitlines()[-3:])
                assert lost or (UNREACHABLE in said and ANNOUNCED not in said), said[-5000:]
                self._start(part)

    def stop(self) -> None:
        for other in self._others.values():
            other.terminate()
            other.wait(60 * PATIENCE)
        self._kubelet.end()
        self._api.stop()
        down = run(PODFIT, "down", "--data", str(self.node), timeout=90)
        assert down.code == 0, down.err

    def _log(self, part: str) -> Path:
        return self._root / f"{part.replace(' ', '-')}.log"

    def _start(self, part: str) -> None:
        if part == "apiserver":
            self._api.start()
            self._api.await_ready()
        elif part == "kubelet":
            self._kubelet.start()
        else:
            with self._log(part).open("a") as log:
                self._begun[part] = log.tell()
                self._others[part] = subprocess.Popen(self._command(part), stdout=log, stderr=log)

    def _command(self, part: str) -> tuple[str, ...]:
        free, admin = ("--secure-port", "0"), ("--kubeconfig", str(self.up.kubeconfig))
        webhook = ("--register-by-url", "--webhook-address", "127.0.0.1", "--port", str(self._port))
        own = {
            "metrics-server": (
                "--register",
                "--metric-resolution",
                "10s",
                "--kubelet-preferred-address-types",
                "InternalIP",
            ),
            "vpa recommender": RECOMMENDER,
            "vpa updater": ("--updater-interval", "5s"),
            "vpa admission-controller": webhook,
        }
        if part in own:
            return (PODFIT, *part.split(), *admin, *free, *own[part])
        return (PODFIT, part, "--data", str(self._api.data), *free)


class Together:
    """`podfit up`, its parts in one process but for containerd."""

    def __init__(self, root: Path) -> None:
        self.up, self.name, self._port = Up(root / "data"), "", 0
        self.node = self.up.root

    def start(self) -> None:
        self.up.start()
        self._port = urlsplit(self.up.state()["server"]).port or 0
        self.name = self.up.ok("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")

    def kill(self, part: str) -> None:
        if part == "containerd":
            os.kill(containerd_pid(self.node), signal.SIGKILL)
            return
        assert part == "up"
        os.kill(int(self.up.state()["pid"]), signal.SIGKILL)
        self.up.start(port=self._port)

    def keep(self) -> None:
        """It keeps its own."""

    def stop(self) -> None:
        down = self.up.down()
        assert down.code == 0, down.err


@contextmanager
def separate(root: Path, beside: tuple[str, ...] = ()) -> Iterator[Separate]:
    with _clean(root):
        parts = Separate(root, beside)
        try:
            parts.start()
            yield parts
        finally:
            parts.stop()


@contextmanager
def together(root: Path) -> Iterator[Together]:
    with _clean(root):
        parts = Together(root)
        try:
            parts.start()
            yield parts
        finally:
            parts.stop()


@contextmanager
def _clean(root: Path) -> Iterator[None]:
    before = Snapshot.take()
    yield
    assert (left := Snapshot.take().since(before)) == {}, f"left on this machine: {left}"
    assert (mounts := _mounts_below(root)) == [], f"left mounted: {mounts}"


def _mounts_below(root: Path) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if str(root) in line]


def containerd_pid(root: Path) -> int:
    """Of the containerd that runs on this data directory, as soon as there is one: it may just have been killed, and
    `up.json` may name one that was.
    """
    config = str(root / "containerd" / "config.toml").encode()

    def running() -> int | None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                program, *arguments = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if program.endswith(b"containerd") and config in arguments:
                return int(path.parent.name)
        return None

    return eventually(running, within=20, what=f"a containerd runs on {root}")


def sandboxes(node: Path) -> tuple[Sandbox, ...]:
    """All that the containerd of this data directory has."""

    async def listed() -> tuple[Sandbox, ...]:
        runtime = CRIRuntime(_socket(node))
        try:
            return await runtime.list_sandboxes()
        finally:
            await runtime.close()

    return asyncio.run(listed())


def kill_shim(node: Path, uid: str) -> None:
    """The process that holds the containers of a pod."""
    ids = {sandbox.id for sandbox in sandboxes(node) if sandbox.uid == uid}
    for shim in shims(_socket(node)):
        if shim.sandbox in ids:
            os.kill(shim.pid, signal.SIGKILL)
            return
    raise AssertionError(f"pod {uid} has no shim")


def _socket(node: Path) -> Path:
    return containerd_of(DataDir(node), SystemClock()).places.socket


def remains(node: Path, name: str) -> dict[str, set[str]]:
    """UIDs of pods by what there is of them on the machine."""
    pods = DataDir(node).kubelet(name) / "pods"
    mounts = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
    return {
        "sandboxes": {sandbox.uid for sandbox in sandboxes(node) if sandbox.labels.get(labels.NODE) == name},
        "cgroups": {pod.uid for pod in detect(cgroup_layout(DataDir(node))).cgroups.list_pods()},
        "directories": {path.name for path in pods.iterdir()} if pods.exists() else set(),
        "mounts": {Path(path).relative_to(pods).parts[0] for path in mounts if path.startswith(f"{pods}/")},
    }
