"""A node under load: many pods resized at once, pods started, and what a pod costs that does nothing.

    python bench/node.py [--pods 50] [--rounds 10]

Every pod of a burst gets its PATCH for more CPU at the same moment; times run from there to the kernel's value and to a
status without any condition: of the middle pod of a burst, and of the last. The floor is a burst of as many bare
`UpdateContainerResources` on the same containers in the same run, until the last has its answer. Goals for the last: in
the kernel within the CPU of as many PATCHes of the same run + 50 ms, complete within 1.5 times the floor. Each row is
printed when it is measured; a burst that does not come to its end within a minute says which pods it waits for, and
where.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from measure import data_directory, judge, machine, percentile, up
from resize import Target, start_pod

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

BURSTS = (1, 10, 50)
FIRST_LIMIT = 200  # millicores, with which pods start; every burst gives one more
PATCHES = 200  # of which the CPU is measured
GLANCE = 0.0005  # seconds between two looks at the kernel's files
PATIENCE = 60.0
PAUSE = 0.05  # between two bursts: the events of the last are being written
IDLE_SECONDS = 10.0
HEADER = ("at once", "bare CRI", "last", "kernel", "last", "goal", "", "status", "last", "goal", "")
WIDTHS = (7, 8, 6, 6, 6, 6, 16, 6, 6, 6, 16)
TICK = os.sysconf("SC_CLK_TCK")


class Kernel:
    """The quotas of containers, read from files that stay open: a look at fifty must not take the server's CPU."""

    def __init__(self, cgroups: Cgroups, targets: list[Target]) -> None:
        name = "cpu.cfs_quota_us" if cgroups.version == "v1" else "cpu.max"
        mount = next(path for path in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")) if path.is_dir())
        self._open = {
            target.container_id: os.open(mount / target.path.strip("/") / name, os.O_RDONLY) for target in targets
        }

    def quota(self, target: Target) -> int | None:
        first = os.pread(self._open[target.container_id], 64, 0).split()[0]
        return None if first == b"max" else int(first)


class Statuses:
    """When each pod's status last became complete."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wanted: dict[str, int] = {}
        self.at: dict[str, float] = {}
        self._all = asyncio.Event()

    async def run(self, version: str) -> None:
        async for event in self._client.watch(Pod, "default", resource_version=version):
            pod: Any = event.object
            name, now = pod.metadata.name, time.perf_counter()
            pending = any(condition.type.startswith("PodResize") for condition in pod.status.conditions)
            if pending or pod.status.observed_generation < self._wanted.get(name, 1 << 60) or name in self.at:
                continue
            self.at[name] = now
            if self.at.keys() == self._wanted.keys():
                self._all.set()

    def expect(self, generations: dict[str, int]) -> None:
        self._wanted, self.at = generations, {}
        self._all.clear()

    async def wait(self) -> None:
        try:
            await asyncio.wait_for(self._all.wait(), PATIENCE)
        except TimeoutError:
            late(self._wanted.keys() - self.at.keys(), "a status without any condition")


def late(names: Iterable[str], what: str) -> NoReturn:
    raise SystemExit(f"after {PATIENCE:.0f} s still without {what}: {', '.join(sorted(names))}")


@dataclass
class Bench:
    client: Client
    kernel: Kernel
    targets: list[Target]
    statuses: Statuses
    number: int = 0

    async def burst(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds of each pod to the kernel's value and to the complete status."""
        chosen = self.targets[:count]
        self.number += 1
        cpu = FIRST_LIMIT + self.number
        names = [chosen_pod.pod.metadata.name for chosen_pod in chosen]
        current = {pod.metadata.name: pod.metadata.generation for pod in (await self.client.list(Pod)).items}
        self.statuses.expect({name: current[name] + 1 for name in names})
        patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": f"{cpu}m"}}}]}}
        began = time.perf_counter()
        sending = asyncio.gather(
            *(self.client.patch(Pod, name, "default", patch, subresource="resize") for name in names)
        )
        kernel = await self._arrivals(chosen, cpu * 100, began)
        await sending
        await self.statuses.wait()
        return kernel, [1000 * (self.statuses.at[name] - began) for name in names]

    async def _arrivals(self, chosen: list[Target], quota: int, began: float) -> list[float]:
        left, found = {measured.pod.metadata.name: measured for measured in chosen}, list[float]()
        while left:
            now = time.perf_counter()
            if now - began > PATIENCE:
                late(left, f"a quota of {quota} in the kernel")
            arrived = [name for name, measured in left.items() if self.kernel.quota(measured) == quota]
            found += [1000 * (now - began)] * len(arrived)
            for name in arrived:
                del left[name]
            await asyncio.sleep(GLANCE)
        return found

    async def floor(self, runtime: CRIRuntime, count: int, number: int) -> list[float]:
        """Milliseconds of each of so many bare CRI updates at once. Afterwards the kernel holds what it did before, as
        growth of a container that holds another value is left to the runtime.
        """
        began = time.perf_counter()

        async def one(target: Target, quota: int) -> float:
            await runtime.update_container_resources(
                target.container_id, LinuxResources(cpu_quota=quota, cpu_period=100_000)
            )
            return 1000 * (time.perf_counter() - began)

        chosen = self.targets[:count]
        before = [self.kernel.quota(target) or 0 for target in chosen]
        taken = list(await asyncio.gather(*(one(target, 14_000 + 500 * (number % 2)) for target in chosen)))
        for target, quota in zip(chosen, before, strict=True):
            await one(target, quota)
        return taken

    async def patch_cpu(self, pid: int) -> float:
        """Milliseconds of the server's CPU for the PATCH of a pod that nobody runs."""
        container = {"name": "c", "image": "busybox:1.36", "resources": {"limits": {"cpu": "1m"}}}
        spec = {"schedulerName": "nobody", "containers": [container]}
        await self.client.create(convert({"metadata": {"name": "waits", "namespace": "default"}, "spec": spec}, Pod))
        before = cpu_seconds([pid])
        for number in range(PATCHES):
            limits = {"cpu": f"{2 + number}m"}
            patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
            await self.client.patch(Pod, "waits", "default", patch, subresource="resize")
        taken = 1000 * (cpu_seconds([pid]) - before) / PATCHES
        await self.client.delete(Pod, "waits", "default")
        return taken


def processes(tag: str) -> list[int]:
    """The cluster's process, its containerd and their shims."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if tag in command and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


def cpu_seconds(pids: list[int]) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICK


def memory_kib(pids: list[int]) -> int:
    """Proportional: what is shared counts once."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


async def idle(pids: list[int]) -> float:
    """Percent of one CPU."""
    before = cpu_seconds(pids)
    await asyncio.sleep(IDLE_SECONDS)
    return 100 * (cpu_seconds(pids) - before) / IDLE_SECONDS


async def costs(client: Client, cgroups: Cgroups, data: Path, state: Any, pods: int) -> list[Target]:
    """Start the pods, and say what one of them costs."""
    marks = str(data), str(Path(state["nodes"][0]["runtime_endpoint"]).parent)
    mine = [state["pid"]]

    def everything() -> list[int]:
        return sorted({pid for mark in marks for pid in processes(mark)} | set(mine))

    empty = memory_kib(mine), memory_kib(everything())
    targets, starts = list[Target](), list[float]()
    for number in range(pods):
        began = time.perf_counter()
        targets.append(await start_pod(client, cgroups, f"p{number}", cpu="10m"))
        starts.append(1000 * (time.perf_counter() - began))
    full = memory_kib(mine), memory_kib(everything())
    print(
        f"pod start, one after the other: p50 {percentile(starts, 50):.0f} ms, p99 {percentile(starts, 99):.0f} ms",
        flush=True,
    )
    print(
        f"idle with {pods} pods: podfit {await idle(mine):.1f} % of a CPU, with containerd and shims "
        f"{await idle(everything()):.1f} %"
    )
    print(
        f"memory a pod: podfit {(full[0] - empty[0]) / pods:.0f} KiB, with shim and containerd "
        f"{(full[1] - empty[1]) / pods:.0f} KiB",
        flush=True,
    )
    return targets


class Bursts:
    """Milliseconds of the pods of some bursts, and of the last of each."""

    def __init__(self) -> None:
        self._all, self._last = list[float](), list[float]()

    def add(self, times: list[float]) -> None:
        self._all += times
        self._last.append(max(times))

    @property
    def middle(self) -> float:
        return percentile(self._all, 50)

    @property
    def last(self) -> float:
        return percentile(self._last, 50)


async def resizes(bench: Bench, runtime: CRIRuntime, count: int, rounds: int, patch: float) -> tuple[str, ...]:
    """A row of the table. `patch` is the CPU of one PATCH in milliseconds."""
    bare, kernel, status = Bursts(), Bursts(), Bursts()
    for number in range(rounds if count > 1 else 5 * rounds):
        bare.add(await bench.floor(runtime, count, number))
        await asyncio.sleep(PAUSE)
        arrived, complete = await bench.burst(count)
        kernel.add(arrived)
        status.add(complete)
        await asyncio.sleep(PAUSE)
    goal, complete_goal = count * patch + 50, 1.5 * bare.last
    return (
        f"{count}",
        f"{bare.middle:.1f}",
        f"{bare.last:.1f}",
        f"{kernel.middle:.1f}",
        f"{kernel.last:.1f}",
        f"{goal:.1f}",
        judge(kernel.last, goal),
        f"{status.middle:.1f}",
        f"{status.last:.1f}",
        f"{complete_goal:.1f}",
        judge(status.last, complete_goal),
    )


async def run(data: Path, pods: int, rounds: int) -> None:
    cgroups = detect(cgroup_layout(DataDir(data))).cgroups
    client = load([data / "admin.kubeconfig"]).client()
    state = msgspec.json.decode((data / "up.json").read_bytes())
    targets = await costs(client, cgroups, data, state, pods)
    statuses = Statuses(client)
    watching = asyncio.create_task(statuses.run((await client.list(Pod)).resource_version))
    bench = Bench(client, Kernel(cgroups, targets), targets, statuses)
    runtime = CRIRuntime(Path(state["nodes"][0]["runtime_endpoint"]))
    patch = await bench.patch_cpu(state["pid"])
    print(f"CPU of a PATCH: {patch:.2f} ms")
    print_row(HEADER)
    for count in BURSTS:
        if count <= pods:
            print_row(await resizes(bench, runtime, count, rounds, patch))
    watching.cancel()
    await runtime.close()
    await client.close()


def print_row(cells: tuple[str, ...]) -> None:
    print("  ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True)), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pods", type=int, default=50)
    arguments.add_argument("--rounds", type=int, default=10)
    given = arguments.parse_args()
    print(f"node, milliseconds, {given.rounds} bursts of each size: {machine()}", flush=True)
    with data_directory() as data:
        up(data)
        asyncio.run(run(data, given.pods, given.rounds))


if __name__ == "__main__":
    main()
