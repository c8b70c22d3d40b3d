"""Three machines join an API server: pods on each are resized and tell their logs, one is cut off and comes back.

API server, controllers and scheduler are processes of their own in the root network namespace; each machine has its own
network, containerd and directory.
"""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from support.apiserver_processes import ApiProcess
from support.eventually import PATIENCE, eventually, logged
from support.machine import Snapshot
from support.machines import HOST, Machine, machines
from support.up import PODFIT, STAY, Up, manifest, resources, run, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.timeout(300)]
SECONDS = 60.0
SAY = ["sh", "-c", f"echo I am $NODE; {STAY[2]}"]


@contextmanager
def process(log: Path, *command: str, until: str) -> Iterator[None]:
    """A process that has said `until` before the block begins; ended with SIGTERM."""
    with log.open("w") as file:
        started = subprocess.Popen(command, stdout=file, stderr=file, text=True)
    try:
        logged(log, started, until, within=SECONDS)
        yield
    finally:
        started.terminate()
        started.wait(60 * PATIENCE)


def _logs(up: Up, pod: str) -> str:
    look = partial(up.kubectl, "logs", pod)
    return eventually(look, lambda answer: answer.code == 0, within=SECONDS, what=f"{pod} tells its log").out


def _resize(up: Up, pod: str, cpu: str) -> None:
    patch = {"spec": {"containers": [{"name": "app", "resources": resources(cpu, "32Mi")}]}}
    up.ok("patch", "pod", pod, "--subresource", "resize", "-p", json.dumps(patch))


def _resized(up: Up, pod: str, cpu: str) -> None:
    found = up.pod_when(
        pod,
        lambda pod: settled(pod) and pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == cpu,
        f"was resized to {cpu}",
        seconds=SECONDS,
    )
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0


def _status(url: str, data: Path, user: str) -> tuple[int, str]:
    authority = Authority.load(data / "pki", clock=SystemClock())
    pair = authority.client(user, user=user)
    tls = client_context(authorities=authority.certificate, certificate=pair.certificate, key=pair.key)
    try:
        with urllib.request.urlopen(url, context=tls, timeout=10 * PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def joined(machine: Machine, data: Path, bootstrap: Path) -> Iterator[None]:
    try:
        with process(
            data.with_suffix(".log"),
            *machine.inside(
                PODFIT,
                "kubelet",
                "--data",
                str(data),
                "--bootstrap-kubeconfig",
                str(bootstrap),
                "--node-name",
                machine.name,
                "--eviction-hard",
                "",
                "-v",
            ),
            until="  ready ",
        ):
            yield
    finally:
        down = run(PODFIT, "down", "--data", str(data), timeout=90)
    assert down.code == 0, down.err


@contextmanager
def cluster(root: Path, made: list[Machine]) -> Iterator[Up]:
    """Everything runs, and every machine is a node that is Ready."""
    with ExitStack() as stack:
        api = ApiProcess(root / "api", "api", ("--bind-address", HOST))
        stack.callback(api.stop)
        api.start()
        api.await_ready()
        data = ("--data", str(api.data), "--secure-port", "0")
        for part in ("controllers", "scheduler"):
            stack.enter_context(process(root / f"{part}.log", PODFIT, part, *data, until="  leads "))
        bootstrap = root / "bootstrap.kubeconfig"
        token = run(PODFIT, "token", "create", "--kubeconfig", str(api.kubeconfig), "--out", str(bootstrap))
        assert token.code == 0, token.err
        for machine in made:
            stack.enter_context(joined(machine, root / machine.name, bootstrap))
        up = Up(api.data)
        api.kubeconfig.rename(up.kubeconfig)
        up.ok("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s", timeout=90)
        yield up


def test_three_machines_join_and_one_is_cut_off(tmp_path: Path) -> None:
    before = Snapshot.take()
    with machines(3) as made, cluster(tmp_path, made) as up:
        addresses = up.ok("get", "nodes", "-o", "jsonpath={.items[*].status.addresses[0].address}").split()
        assert addresses == [machine.address for machine in made]
        for machine in made:
            env = [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
            up.apply(
                manifest(
                    machine.name,
                    {"name": "app", "command": SAY, "env": env, "resources": resources("50m", "32Mi")},
                    nodeSelector={"kubernetes.io/hostname": machine.name},
                )
            )
        for machine in made:
            pod = up.pod_when(machine.name, running, "ran", seconds=SECONDS)
            assert (pod["spec"]["nodeName"], pod["status"]["podIP"]) == (machine.name, machine.address)
            assert _logs(up, machine.name) == f"I am {machine.name}\n"
            _resize(up, machine.name, "80m")
        for machine in made:
            _resized(up, machine.name, "80m")
            url = f"https://{machine.address}:10250/containerLogs/default/{machine.name}/app"
            assert _status(url, up.root, "jane") == (
                403,
                "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[proxy])\n",
            )

        away, others = made[0], made[1:]
        away.cut_off()
        cut = up.kubectl("logs", away.name)
        assert cut.code == 1
        assert f'node "{away.name}" cannot be reached at https://{away.address}:10250' in cut.err
        for machine in made:
            _resize(up, machine.name, "60m")
        for machine in others:
            _resized(up, machine.name, "60m")
        assert not settled(up.get("pod", away.name))
        away.connect()
        _resized(up, away.name, "60m")
        assert _logs(up, away.name) == f"I am {away.name}\n"
        up.ok("delete", "pods", "--all", "--timeout=60s", timeout=90)
    assert Snapshot.take().since(before) == {}
