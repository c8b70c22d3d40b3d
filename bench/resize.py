"""How long a resize takes, from sending the PATCH to the kernel's value and to a status without any condition.

    python bench/resize.py [--rounds 50]

The floors are a bare `UpdateContainerResources` on the same containerd and an fdatasync in the same directory, in the
same run; the peer is Kubernetes 1.36 with etcd, containerd 2.4 and runc on a machine of this kind. Goals: growth is in
the kernel within twice the fdatasync + 5 ms and within 0.6 times the bare update, and complete within the bare update +
8 ms; less is in the kernel within 1.5 times the bare update + 3 ms and complete 10 ms later.
"""

import argparse
import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from measure import data_directory, judge, machine, percentile, table, up

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Cgroups
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout

MI = 2**20
GLANCE = 0.0002  # seconds between two looks at the kernel's file
PEER = {"kernel": "22 to 29", "status": "35 to 45"}


@dataclass(frozen=True)
class Target:
    """A pod whose one container is resized; `path` is its cgroup."""

    pod: Pod
    container_id: str
    path: str


@dataclass(frozen=True)
class Step:
    """One kind of resize: what is patched, back and forth, and how the kernel shows it."""

    name: str
    resource: str
    values: tuple[str, str]
    kernel: tuple[int, int]


STEPS = (
    Step("cpu", "cpu", ("300m", "200m"), (30_000, 20_000)),
    Step("memory", "memory", ("96Mi", "64Mi"), (96 * MI, 64 * MI)),
)


async def start_pod(client: Client, cgroups: Cgroups, name: str, *, cpu: str = "100m") -> Target:
    amounts = {"cpu": "200m", "memory": "64Mi"}
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "c",
                "image": "busybox:1.36",
                "command": ["sleep", "100000"],
                "resources": {"requests": {"cpu": cpu, "memory": "32Mi"}, "limits": amounts},
            }
        ],
    }
    await client.create(convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod))
    while True:
        pod = await client.get(Pod, name, "default")
        if pod.status.phase == "Running" and pod.status.container_statuses[0].resources:
            container_id = pod.status.container_statuses[0].container_id.rpartition("/")[2]
            return Target(pod, container_id, cgroups.layout.container(pod.metadata.uid, "Burstable", container_id))
        await asyncio.sleep(0.01)


class StatusWatch:
    """Knows when the pod's status last became complete."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self._done = asyncio.Event()
        self._generation = 0
        self.at = 0.0

    async def run(self, version: str) -> None:
        fields = f"metadata.name={self._name}"
        async for event in self._client.watch(Pod, "default", resource_version=version, fields=fields):
            pod: Any = event.object
            pending = any(condition.type.startswith("PodResize") for condition in pod.status.conditions)
            if event.type == "MODIFIED" and not pending and pod.status.observed_generation >= self._generation:
                self.at = time.perf_counter()
                self._done.set()

    def expect(self, generation: int) -> None:
        self._generation = generation
        self._done.clear()

    async def wait(self) -> None:
        await asyncio.wait_for(self._done.wait(), 10)


Times = dict[str, list[tuple[float, float]]]


async def measure(client: Client, cgroups: Cgroups, target: Target, rounds: int) -> Times:
    """For each kind, milliseconds to the kernel's value and to the complete status."""
    status = StatusWatch(client, target.pod.metadata.name)
    watching = asyncio.create_task(status.run(target.pod.metadata.resource_version))
    found: Times = {}
    generation = target.pod.metadata.generation
    for step in STEPS:
        for number in range(2 * rounds):
            direction = number % 2
            generation += 1
            status.expect(generation)
            limits = {step.resource: step.values[direction]}
            patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
            began = time.perf_counter()
            name = target.pod.metadata.name
            sending = asyncio.create_task(client.patch(Pod, name, "default", patch, subresource="resize"))
            while _kernel(cgroups, target, step) != step.kernel[direction]:
                await asyncio.sleep(GLANCE)
            kernel = time.perf_counter() - began
            await status.wait()
            await sending
            name = f"{step.name} {'down' if direction else 'up'}"
            found.setdefault(name, []).append((1000 * kernel, 1000 * (status.at - began)))
            await asyncio.sleep(0.01)
    watching.cancel()
    return found


def _kernel(cgroups: Cgroups, target: Target, step: Step) -> int | None:
    if step.resource == "cpu":
        return cgroups.read_cpu(target.path).quota
    return cgroups.read_memory(target.path)


async def floor(socket: Path, container_id: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of the bare CRI call."""
    runtime = CRIRuntime(socket)
    found: dict[str, list[float]] = {"cpu": [], "memory": []}
    for number in range(rounds):
        for name, resources in (
            ("cpu", LinuxResources(cpu_quota=18_000 + 1000 * (number % 2), cpu_period=100_000)),
            ("memory", LinuxResources(memory_limit=(62 + number % 2) * MI)),
        ):
            began = time.perf_counter()
            await runtime.update_container_resources(container_id, resources)
            found[name].append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(0.01)
    await runtime.close()
    return found


def synced(directory: Path, rounds: int) -> list[float]:
    """Milliseconds of a write of 500 bytes into a file that has its blocks, and its fdatasync."""
    path, found = directory / "fdatasync", list[float]()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(handle, bytes(64 * 1024))
    os.fsync(handle)
    for number in range(rounds):
        time.sleep(0.01)
        began = time.perf_counter()
        os.pwrite(handle, b"x" * 500, 500 * (number % 100))
        os.fdatasync(handle)
        found.append(1000 * (time.perf_counter() - began))
    os.close(handle)
    path.unlink()
    return found


def goals(name: str, bare: float, disk: float, kernel: float) -> tuple[float, float]:
    """Of the kernel's value and of the complete status."""
    if name.endswith("up"):
        return min(2 * disk + 5, 0.6 * bare), bare + 8
    return 1.5 * bare + 3, kernel + 10


async def run(data: Path, rounds: int) -> None:
    cgroups = detect(cgroup_layout(DataDir(data))).cgroups
    client = load([data / "admin.kubeconfig"]).client()
    state = msgspec.json.decode((data / "up.json").read_bytes())
    resized = await start_pod(client, cgroups, "resized")
    other = await start_pod(client, cgroups, "bare")
    socket = Path(state["nodes"][0]["runtime_endpoint"])
    bare, disk = await floor(socket, other.container_id, rounds), synced(data, rounds)
    found = await measure(client, cgroups, resized, rounds)
    again, disk = await floor(socket, other.container_id, rounds), disk + synced(data, rounds)
    await client.close()
    written = percentile(disk, 50)
    print(f"fdatasync: p50 {written:.1f}, p99 {percentile(disk, 99):.1f}")
    rows = [("resize", "bare CRI p50", "kernel p50", "p99", "goal", "", "status p50", "p99", "goal", "", "peer")]
    for name, times in found.items():
        low = percentile(bare[name.split()[0]] + again[name.split()[0]], 50)
        kernel, status = [time[0] for time in times], [time[1] for time in times]
        reached, settled = percentile(kernel, 50), percentile(status, 50)
        goal, complete = goals(name, low, written, reached)
        rows.append(
            (
                name,
                f"{low:.1f}",
                f"{reached:.1f}",
                f"{percentile(kernel, 99):.1f}",
                f"{goal:.1f}",
                judge(reached, goal),
                f"{settled:.1f}",
                f"{percentile(status, 99):.1f}",
                f"{complete:.1f}",
                judge(settled, complete),
                f"{PEER['kernel']} / {PEER['status']}",
            )
        )
    table(rows)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=50)
    rounds = arguments.parse_args().rounds
    print(f"resize, milliseconds, {rounds} of each: {machine()}")
    with data_directory() as data:
        up(data)
        asyncio.run(run(data, rounds))


if __name__ == "__main__":
    main()
