"""`podfit kubelet` in a process of its own, on a simulated runtime, joined to a cluster with a bootstrap token."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.eventually import PATIENCE, logged
from support.up import PODFIT, run

START_SECONDS = 60.0


@dataclass
class KubeletProcess:
    """A node of the cluster whose administrator's kubeconfig is given."""

    data: Path
    admin: Path
    name: str = "n1"
    options: tuple[str, ...] = ("--runtime", "simulated", "--port", "0")
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubelet.kubeconfig"

    def said(self) -> str:
        log = self.data / "kubelet.log"
        return log.read_text() if log.exists() else ""

    def start(self, *options: str) -> None:
        """Returns when it is ready."""
        self.data.mkdir(exist_ok=True, parents=True)
        bootstrap = self.data / "bootstrap.kubeconfig"
        if not self.kubeconfig.exists() and not bootstrap.exists():
            made = run(PODFIT, "token", "create", "--kubeconfig", str(self.admin), "--out", str(bootstrap))
            assert made.code == 0, made.err
        command = [
            PODFIT,
            "kubelet",
            "--data",
            str(self.data),
            "--node-name",
            self.name,
            "--bootstrap-kubeconfig",
            str(bootstrap),
            *self.options,
            *options,
        ]
        path, before = self.data / "kubelet.log", len(self.said())
        with path.open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
        logged(path, self.process, "  ready ", within=START_SECONDS, after=before)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(number)
        code = self.process.wait(60 * PATIENCE)
        self.process = None
        return code


@contextmanager
def joined(data: Path, admin: Path, name: str = "n1", *options: str) -> Iterator[KubeletProcess]:
    kubelet = KubeletProcess(data, admin, name)
    try:
        kubelet.start(*options)
        yield kubelet
    finally:
        kubelet.end()
