"""`podfit apiserver` in processes of its own, several of them on one data directory."""

import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from support.etcd import free_ports
from support.eventually import PATIENCE, eventually
from support.up import PODFIT

START_SECONDS = 60.0


@dataclass
class ApiProcess:
    """One server; it keeps its port, also when it is killed and started again."""

    data: Path
    name: str
    options: tuple[str, ...] = ()
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    begun: int = 0
    """Where its log was when it was started last."""

    @property
    def kubeconfig(self) -> Path:
        return self.data / f"{self.name}.kubeconfig"

    @property
    def log(self) -> Path:
        return self.data / f"{self.name}.log"

    def start(self) -> None:
        """Begin; `await_ready` waits until it serves."""
        self.data.mkdir(exist_ok=True)
        command = [
            PODFIT,
            "apiserver",
            "--data",
            str(self.data),
            "--port",
            str(self.port),
            "--kubeconfig",
            str(self.kubeconfig),
            *self.options,
        ]
        with self.log.open("a") as log:
            self.begun = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, text=True)

    def await_ready(self) -> None:
        process = self.process
        assert process is not None

        def serves() -> bool:
            """It says where its kubeconfig is once that is written; an earlier one stays, for others may read it."""
            said = self.log.read_bytes()[self.begun :].decode()
            assert process.poll() is None, said
            return "  kubectl   " in said

        eventually(serves, within=START_SECONDS, what=f"{self.name} serves", told=self.log.read_text, every=0.02)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(number)
        code = self.process.wait(30 * PATIENCE)
        self.process = None
        return code

    def client(self) -> Client:
        return load([self.kubeconfig]).client()
