"""A cluster as users start it: `podfit up --detach` in a process of its own, kubectl in front of it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPSConnection
from pathlib import Path
from ssl import SSLContext
from typing import IO, Any
from urllib.parse import urlsplit

from podfit.client.kubeconfig import Access, load
from podfit.net.tls import client_context
from support.eventually import PATIENCE, eventually

PODFIT = str(Path(sys.executable).with_name("podfit"))
IMAGE = "busybox:1.36"
_MAKERS = ("deployment", "replicaset", "replicationcontroller", "statefulset", "daemonset", "job", "cronjob")
KEPT_AS_WRITTEN = ("--controllers", ",".join(["*", *(f"-{maker}-controller" for maker in _MAKERS)]))
"""Options with which nobody acts on workloads."""
STAY = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def run(*command: str, stdin: str | None = None, timeout: float = 60, env: dict[str, str] | None = None) -> Answer:
    """A command that is under way when tests are interrupted ends first: `podfit up` half done would leave things."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (env or {}),
        process_group=0,
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout * PATIENCE)
        except KeyboardInterrupt:
            process.wait(timeout)
            raise
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Answer(process.returncode, out, err)


@dataclass(frozen=True)
class Up:
    """A running cluster; `root` is its data directory, `program` the podfit that runs it."""

    root: Path
    program: str = PODFIT

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.root / "up.json").read_text())
        return state

    def start(self, *options: str, node: str = "real", port: int = 0, timeout: float = 60) -> Answer:
        kubeconfig = ("--kubeconfig", str(self.root / "user.kubeconfig"))
        command = (
            self.program,
            "up",
            "--detach",
            "--data",
            str(self.root),
            "--port",
            str(port),
            "--node",
            node,
            *kubeconfig,
        )
        if "--eviction-hard" not in options:  # whatever the disk here looks like
            options = (*options, "--eviction-hard", "")
        try:
            answer = run(*command, *options, timeout=timeout)
        except KeyboardInterrupt:
            self.down()
            raise
        assert answer.code == 0, answer.err + answer.out + self.log()
        return answer

    def down(self) -> Answer:
        return run(self.program, "down", "--data", str(self.root), timeout=90)

    def log(self) -> str:
        path = self.root / "up.log"
        return path.read_text()[-5000:] if path.exists() else ""

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> Answer:
        return run(*self.kubectl_command(*arguments), stdin=stdin, timeout=timeout)

    def kubectl_command(self, *arguments: str) -> tuple[str, ...]:
        kubectl = shutil.which("kubectl")
        assert kubectl
        return (
            kubectl,
            "--kubeconfig",
            str(self.kubeconfig),
            "--cache-dir",
            str(self.root / "kubectl-cache"),
            *arguments,
        )

    def ok(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """kubectl that has to succeed; its output. Its own `--timeout=`, in seconds, is as patient as a test."""
        answer = self.kubectl(*map(patient, arguments), stdin=stdin, timeout=timeout)
        assert answer.code == 0, answer.err or answer.out
        return answer.out

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.ok("apply", "-f", "-", stdin="\n".join(map(json.dumps, manifests)))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ok("get", kind, name, "-o", "json"))
        return found

    @contextmanager
    def follows(self, pod: str, container: str) -> Iterator[IO[str]]:
        """What the container writes, from its beginning until its end."""
        command = self.kubectl_command("logs", "-f", pod, "-c", container)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.stdout
            finally:
                process.kill()

    def pod_when(self, name: str, holds: "Any", what: str, *, seconds: float = 30) -> dict[str, Any]:
        """The pod once it is there and looks like this. A test beside a running cluster has no clock to move, so it
        looks again."""

        def seen(pod: dict[str, Any]) -> bool:
            return pod["kind"] == "Pod" and bool(holds(pod))

        path = f"/api/v1/namespaces/default/pods/{name}"
        return eventually(lambda: self._answer(path)[1], seen, within=seconds, what=f"{name} {what}", told=self.log)

    def asked(self, path: str) -> dict[str, Any]:
        """What the API server answers to a GET, as kubectl shows it: for what is asked many times, where a kubectl each
        time would take most of a core."""
        status, document = self._answer(path)
        assert status == 200, document
        return document

    def _answer(self, path: str) -> tuple[int, dict[str, Any]]:
        access, tls = _access(self.kubeconfig, self.kubeconfig.stat().st_mtime_ns)
        server, token = urlsplit(access.server), access.read_token()
        assert server.hostname
        with closing(HTTPSConnection(server.hostname, server.port, context=tls, timeout=60 * PATIENCE)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            document: dict[str, Any] = json.loads(answer.read())
        document["metadata"].pop("managedFields", None)
        return answer.status, document


def patient(argument: str) -> str:
    """An argument for kubectl: a `--timeout=` in seconds times PATIENCE."""
    name, _, seconds = argument.partition("=")
    if name != "--timeout" or not seconds.removesuffix("s").isdigit():
        return argument
    return f"{name}={int(seconds.removesuffix('s')) * PATIENCE:g}s"


@lru_cache
def _access(kubeconfig: Path, _written: int) -> tuple[Access, SSLContext]:
    access = load([kubeconfig])
    return access, client_context(
        authorities=access.authorities, certificate=access.certificate, key=access.key, verify=access.verify
    )


def manifest(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod whose containers wait until they are told to end."""
    full = [{"image": IMAGE, "command": STAY, **container} for container in containers or ({"name": "app"},)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": full, **spec},
    }


def resources(cpu: str, memory: str) -> dict[str, Any]:
    """Requests and limits the same: Guaranteed."""
    amounts = {"cpu": cpu, "memory": memory}
    return {"requests": amounts, "limits": amounts}


def running(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return pod["status"]["phase"] == "Running" and bool(statuses) and all(status["ready"] for status in statuses)


def settled(pod: dict[str, Any]) -> bool:
    """The node has seen this generation and no resize is waiting or under way."""
    conditions = [condition["type"] for condition in pod["status"].get("conditions", [])]
    seen = pod["status"].get("observedGeneration", 0) >= pod["metadata"]["generation"]
    return seen and not any(condition.startswith("PodResize") for condition in conditions)
