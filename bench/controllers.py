"""Controllers, scheduler and simulated kubelets under many Deployments: time, requests, CPU and memory for each pod.

    .venv/bin/python bench/controllers.py [--deployments 100] [--replicas 30] [--nodes 100]

`podfit up` with simulated nodes is one process; the load comes from another over HTTPS. `ready` is the time from the
first create until every Deployment says that all its replicas are ready, `rolled out` that from the first change of a
template until every Deployment says that all its replicas are of the new one. Requests are counted by the API server,
the components' own among them; CPU is that of the server's process, and memory what it has more than without the pods.
"""

import argparse
import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from measure import data_directory, machine, table, up

from podfit.api.apps.v1.deployments import Deployment
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.process.data.data_dir import DataDir

NAMESPACE = "default"
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SETTLE_SECONDS = 10.0  # after which what trails behind, as events do, is counted too
FREQUENT = 12  # kinds of requests that are shown


def deployment(number: int, replicas: int) -> Deployment:
    labels = {"app": f"web-{number}"}
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "app", "image": "registry.example/app:1.2.3", "resources": {"requests": requests}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return convert({"metadata": {"name": f"web-{number}", "namespace": NAMESPACE}, "spec": spec}, Deployment)


class _Up(msgspec.Struct):
    pid: int


@dataclass
class Spent:
    """What the server has used up to now: seconds, seconds of CPU, requests by verb and resource, resident bytes."""

    at: float
    cpu: float
    requests: Counter[str]
    resident: int

    def since(self, before: "Spent") -> "Spent":
        requests = self.requests - before.requests
        return Spent(self.at - before.at, self.cpu - before.cpu, requests, self.resident - before.resident)


class Server:
    def __init__(self, data: Path) -> None:
        self._pid = msgspec.json.decode(DataDir.at(data).state.read_bytes(), type=_Up).pid
        self.client = load([data / "bench.kubeconfig"]).client()

    async def spent(self) -> Spent:
        requests = Counter[str]()
        for line in (await self.client.request("GET", "/metrics")).decode().splitlines():
            if line.startswith("apiserver_request_total{"):
                labels = dict(pair.split("=", 1) for pair in line[line.index("{") + 1 : line.index("}")].split(","))
                words = (labels[name].strip('"') for name in ("verb", "resource", "subresource"))
                requests[" ".join(word for word in words if word)] += int(float(line.rpartition(" ")[2]))
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        resident = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * PAGE
        return Spent(time.perf_counter(), (int(fields[11]) + int(fields[12])) / TICK, requests, resident)


def is_ready(found: Deployment) -> bool:
    wanted, status = found.spec.replicas, found.status
    seen = status.observed_generation == found.metadata.generation
    return seen and wanted == status.replicas == status.updated_replicas == status.ready_replicas


async def until_all(client: Client, version: str, names: set[str], holds: Callable[[Deployment], bool]) -> None:
    left = set(names)
    async for event in client.watch(Deployment, NAMESPACE, resource_version=version):
        found = event.object
        if event.type != "BOOKMARK":
            (left.discard if holds(found) else left.add)(found.metadata.name)
            if not left:
                return


async def measured(server: Server, pods: int, work: Callable[[], object]) -> tuple[list[str], Spent]:
    """The row of a phase, and what was spent in it. CPU and requests are those of a while longer."""
    before = await server.spent()
    await work()  # type: ignore[misc]  # a coroutine function of any kind
    seconds = time.perf_counter() - before.at
    await asyncio.sleep(SETTLE_SECONDS)
    spent = (await server.spent()).since(before)
    asked = sum(spent.requests.values()) / pods
    row = [f"{seconds:.1f} s", f"{pods / seconds:.0f}", f"{1000 * spent.cpu / pods:.2f}", f"{asked:.1f}"]
    return [*row, f"{spent.resident / pods / 1024:.1f}", f"{(before.resident + spent.resident) / 2**20:.0f}"], spent


async def run(data: Path, deployments: int, replicas: int) -> None:
    server, pods = Server(data), deployments * replicas
    client, names = server.client, {f"web-{number}" for number in range(deployments)}
    rows = [["", "time", "pods/s", "CPU ms/pod", "requests/pod", "KiB/pod", "MiB in all"]]

    async def together(change: Callable[[int], object]) -> None:
        page = await client.list(Deployment, NAMESPACE, limit=1)
        async with asyncio.TaskGroup() as group:
            group.create_task(until_all(client, page.resource_version, names, is_ready))
            for number in range(deployments):
                await change(number)  # type: ignore[misc]  # a coroutine function of any kind

    async def create(number: int) -> None:
        await client.create(deployment(number, replicas))

    async def change(number: int) -> None:
        patch = {"spec": {"template": {"metadata": {"annotations": {"round": "2"}}}}}
        await client.patch(Deployment, f"web-{number}", NAMESPACE, patch)

    for name, what in (("ready", create), ("rolled out", change)):
        row, spent = await measured(server, pods, lambda what=what: together(what))  # type: ignore[misc]  # bound in the loop
        rows.append([name, *row])
        print(f"{name}: requests for each pod")
        for request, count in spent.requests.most_common(FREQUENT):
            print(f"  {count / pods:6.2f}  {request}")
    found = len((await client.list(Pod, NAMESPACE)).items)
    print(f"{found} pods of {deployments} Deployments")
    table(rows)
    await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=30)
    parser.add_argument("--nodes", type=int, default=100)
    asked = parser.parse_args()
    print(machine())
    with data_directory() as data:
        up(data, "--node", "simulated", "--nodes", str(asked.nodes))
        asyncio.run(run(data, asked.deployments, asked.replicas))


if __name__ == "__main__":
    main()
