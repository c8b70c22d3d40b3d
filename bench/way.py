"""Where the time of a growth goes, from sending the PATCH to the kernel and to the complete status.

    python bench/way.py [--rounds 50] [--at-once 1] [--resource cpu]

The cluster's process notes when it passes each point of the way, on the clock that all processes share; the PATCH comes
from another process over HTTPS, as in `bench/resize.py`. Of several at once the points are those of each pod, from
the moment in which all PATCHes were sent. The middle of all growths, in milliseconds, from the beginning and since the
point before.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
from measure import PODFIT, data_directory, machine, percentile, table
from node import Kernel, Statuses
from resize import Target, start_pod

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.server import ApiServer
from podfit.cli.app import main as podfit
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.kubelet.actuation.pod_cgroups import PodCgroups
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.checkpoints.checkpoint import Checkpoint
from podfit.kubelet.checkpoints.file import Disk
from podfit.kubelet.pods.manager import PodManager
from podfit.kubelet.pods.world import PodWorld
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.status.writer import StatusWriter
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from podfit.store.logged import LoggedStore

SMALL, LARGE = {"cpu": "200m", "memory": "64Mi"}, {"cpu": "300m", "memory": "96Mi"}


class Point(msgspec.Struct, frozen=True, array_like=True):
    """`about` is a pod's name or UID, or a container's id; empty for what is about all."""

    name: str
    at: float
    about: str


# -------------------------------------------------------------------------- in the cluster's process


def serve(points: Path, arguments: list[str]) -> None:
    """`podfit` with a note of each point, in a file of lines."""
    file = os.open(points, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(name: str, about: str = "") -> None:
        os.write(file, msgspec.json.encode(Point(name, time.perf_counter(), about)) + b"\n")

    def notes(of: type, method: str, before: str, after: str, about: Callable[..., Iterable[str]]) -> None:
        real = getattr(of, method)

        def told(name: str, *given: Any) -> None:
            if name:
                for subject in about(*given):
                    note(name, subject)

        @wraps(real)
        def plain(*given: Any, **named: Any) -> Any:
            told(before, *given)
            result = real(*given, **named)
            told(after, *given)
            return result

        @wraps(real)
        async def waiting(*given: Any, **named: Any) -> Any:
            told(before, *given)
            result = await real(*given, **named)
            told(after, *given)
            return result

        setattr(of, method, waiting if asyncio.iscoroutinefunction(real) else plain)

    def resized(_server: Any, request: Any) -> list[str]:
        return [request.path.split("/")[-2]] if request.path.endswith("/resize") else []

    def keys(_store: Any, batch: Any, _error: Any = None) -> list[str]:
        return [change.record.key.rpartition("/")[2] for change in batch.changes if "/pods/" in change.record.key]

    notes(ApiServer, "handler", "request read", "PATCH answered", resized)
    notes(LoggedStore, "_write", "write queued", "", lambda _s, key, *_a: [key.rpartition("/")[2]])
    notes(LoggedStore, "_append", "log begins", "log durable", keys)
    notes(LoggedStore, "_committed", "", "watchers told", keys)
    notes(PodManager, "_hear", "kubelet has heard", "", lambda _m, change: [change.pod.metadata.name])
    allocated = "allocated_pods_state"
    notes(
        Disk,
        "save",
        "checkpoint begins",
        "checkpoint durable",
        lambda disk, _t, put, _d: [*put] * (disk.path.name == allocated),
    )
    notes(Checkpoint, "_wrote", "allocated", "", lambda one, write: [*write.changes] * (one.path.name == allocated))
    notes(PodCgroups, "grow", "", "kernel", lambda _c, pod, *_a: [pod.metadata.name])
    notes(PodWorld, "_look", "look awaited", "looked", lambda world, *_: [world._uid])
    notes(CRIRuntime, "container_status", "status asked", "status told", lambda _c, key: [key])
    notes(PodWorld, "_gather", "gather", "gathered", lambda world, *_: [world._uid])
    notes(PodWorld, "_resize", "actuation", "actuated", lambda world, *_: [world._uid])
    notes(CRIRuntime, "update_container_resources", "runtime asked", "runtime agreed", lambda _r, key, _l: [key])
    notes(StatusWriter, "_write", "status sent", "status answered", lambda writer: [writer._meta.name])
    sys.argv = ["podfit", *arguments]
    podfit()


# -------------------------------------------------------------------------- outside


class Way:
    def __init__(self, client: Client, kernel: Kernel, targets: list[Target], points: Path) -> None:
        self._client, self._kernel, self._targets, self._points = client, kernel, targets, points
        self._statuses = Statuses(client)
        self.found: dict[str, list[float]] = {}

    async def run(self, resource: str, rounds: int) -> None:
        version = (await self._client.list(Pod)).resource_version
        watching = asyncio.create_task(self._statuses.run(version))
        for _ in range(rounds):
            size = os.stat(self._points).st_size
            began, seen = await self._resize({resource: LARGE[resource]}, wait_for_kernel=resource == "cpu")
            await asyncio.sleep(0.05)
            self._take(began, seen, size)
            await self._resize({resource: SMALL[resource]}, wait_for_kernel=False)
            await asyncio.sleep(0.3)
        watching.cancel()

    async def _resize(self, limits: dict[str, str], *, wait_for_kernel: bool) -> tuple[float, list[float]]:
        names = [target.pod.metadata.name for target in self._targets]
        known = {pod.metadata.name: pod.metadata.generation for pod in (await self._client.list(Pod)).items}
        self._statuses.expect({name: known[name] + 1 for name in names})
        patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
        began = time.perf_counter()
        sending = asyncio.gather(
            *(self._client.patch(Pod, name, "default", patch, subresource="resize") for name in names)
        )
        left, seen = list(self._targets) if wait_for_kernel else [], list[float]()
        while left:
            before = len(left)
            left = [target for target in left if self._kernel.quota(target) != 30_000]
            seen += [time.perf_counter()] * (before - len(left))
            await asyncio.sleep(0.0003)
        await sending
        await self._statuses.wait()
        return began, seen

    def _take(self, began: float, seen: list[float], size: int) -> None:
        """The first passing of each point by each pod."""
        names = {target.pod.metadata.name: target.pod.metadata.name for target in self._targets}
        names |= {target.pod.metadata.uid: target.pod.metadata.name for target in self._targets}
        names |= {target.container_id: target.pod.metadata.name for target in self._targets}
        with self._points.open("rb") as file:
            file.seek(size)
            lines = file.read().splitlines()
        times: dict[tuple[str, str], float] = {}
        for point in (msgspec.json.decode(line, type=Point) for line in lines):
            if point.about in names and point.at >= began:
                key = (point.name, names[point.about])
                while key in times:
                    key = (key[0] + " again", key[1])
                times[key] = point.at
        for (name, _), at in times.items():
            self.found.setdefault(name, []).append(1000 * (at - began))
        for at in seen:
            self.found.setdefault("kernel, as seen outside", []).append(1000 * (at - began))
        for at in self._statuses.at.values():
            self.found.setdefault("complete, as seen outside", []).append(1000 * (at - began))


def show(found: dict[str, list[float]]) -> None:
    middle = sorted((percentile(times, 50), name) for name, times in found.items())
    rows = [("point", "ms", "since the last", "p90")]
    last = 0.0
    for at, name in middle:
        rows.append((name, f"{at:.2f}", f"{at - last:.2f}", f"{percentile(found[name], 90):.2f}"))
        last = at
    table(rows)


async def run(data: Path, points: Path, given: argparse.Namespace) -> None:
    cgroups = detect(cgroup_layout(DataDir(data))).cgroups
    client = load([data / "admin.kubeconfig"]).client()
    targets = [await start_pod(client, cgroups, f"way-{number}", cpu="20m") for number in range(given.at_once)]
    way = Way(client, Kernel(cgroups, targets), targets, points)
    await way.run(given.resource, given.rounds)
    await client.close()
    show(way.found)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--at-once", type=int, default=1)
    arguments.add_argument("--resource", choices=("cpu", "memory"), default="cpu")
    given = arguments.parse_args()
    print(f"the way of a growth, {given.rounds} of {given.at_once} at once: {machine()}", flush=True)
    with data_directory() as data:
        points = data.with_name(f"{data.name}.points")
        command = [sys.executable, __file__, "serve", str(points), "up", "--data", str(data), "--port", "0"]
        command += ["--kubeconfig", str(data / "bench.kubeconfig"), "--eviction-hard", ""]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait_until_ready(data, server)
            asyncio.run(run(data, points, given))
        finally:
            subprocess.run([PODFIT, "down", "--data", str(data)], check=False, stdout=subprocess.DEVNULL)
            server.wait()
            points.unlink(missing_ok=True)


def _wait_until_ready(data: Path, server: subprocess.Popen[bytes]) -> None:
    while not (data / "up.json").exists() or not msgspec.json.decode((data / "up.json").read_bytes()).get("nodes"):
        if server.poll() is not None:
            raise SystemExit(f"podfit up has ended with {server.returncode}")
        time.sleep(0.1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
