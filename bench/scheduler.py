"""The scheduler: pods a second with one queue, and how long others wait for the API server meanwhile.

    .venv/bin/python bench/scheduler.py [--nodes 100,1000,5000] [--pods 2000] [--kinds 1] [--workload service]

API server (SQLite) and scheduler share a process, as in `podfit up`. The pods are there before the scheduler begins;
time ends with the last binding, and CPU is that of scheduling, bindings and their events. `--kinds` is how many
different pods take turns: each kind asks for another amount of CPU, and every second one has a node selector. With
`--workload` the pods of each kind have a Service or a ReplicaSet, so they are spread over hosts and zones by default.
Meanwhile a client writes a ConfigMap every 10 ms. `turn ms` is the longest time for which the loop's thread worked at
one go.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import Turns, machine, percentile, table

from podfit.api.apps.v1.deployments import ReplicaSet, ReplicaSetSpec
from podfit.api.core.v1.config.types import ConfigMap, ServiceAccount
from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.core.v1.services.types import Service, ServicePort, ServiceSpec
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta, OwnerReference
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.transport import Local
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.net.event_loop import run
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.net.wire import Identity
from podfit.process.control.apiserver import ApiServerComponent
from podfit.process.control.scheduler import scheduler_loops
from podfit.process.data.data_dir import DataDir
from podfit.process.identities import ADMIN
from podfit.process.options import ApiServerOptions, SchedulerOptions

ROOM = {name: Quantity.parse(text) for name, text in {"cpu": "32", "memory": "256Gi", "pods": "110"}.items()}
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES = 3
PROBE = 0.01
GOAL, P99 = 400, 20.0


def nodes(count: int) -> Iterator[Node]:
    for number in range(count):
        labels = {HOSTNAME: f"n{number}", ZONE: f"z{number % ZONES}", "disk": "fast" if number % 2 else "slow"}
        status = NodeStatus(capacity=ROOM, allocatable=ROOM)
        yield Node(metadata=ObjectMeta(name=f"n{number}", labels=labels), status=status)


def workloads(workload: str, kinds: int) -> Iterator[Service | ReplicaSet]:
    """What selects the pods of each kind; nothing, unless asked."""
    for kind in range(kinds):
        meta, labels = ObjectMeta(name=f"k{kind}", namespace="default"), {"app": f"k{kind}"}
        if workload == "service":
            yield Service(metadata=meta, spec=ServiceSpec(selector=labels, ports=(ServicePort(port=80),)))
        elif workload == "replicaset":
            container = Container(name="c", image="i")
            template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=(container,)))
            spec = ReplicaSetSpec(replicas=0, selector=LabelSelector(match_labels=labels), template=template)
            yield ReplicaSet(metadata=meta, spec=spec)


def pods(count: int, kinds: int, owners: Sequence[Service | ReplicaSet]) -> Iterator[Pod]:
    owned = {
        owner.metadata.name: OwnerReference(
            api_version="apps/v1", kind="ReplicaSet", name=owner.metadata.name, uid=owner.metadata.uid, controller=True
        )
        for owner in owners
        if isinstance(owner, ReplicaSet)
    }
    for number in range(count):
        kind = number % kinds
        requests = {"cpu": Quantity.of_milli(100 + kind), "memory": Quantity.parse("100Mi")}
        container = Container(name="c", image="i", resources=ResourceRequirements(requests=requests))
        selector = {"disk": "fast"} if kind % 2 else {}
        yield Pod(
            metadata=ObjectMeta(
                name=f"p{number}",
                namespace="default",
                labels={"app": f"k{kind}"},
                owner_references=(owned[f"k{kind}"],) if owned else (),
            ),
            spec=PodSpec(containers=(container,), node_selector=selector),
        )


async def in_batches(work: list[object], client: Client) -> None:
    for start in range(0, len(work), 200):
        await asyncio.gather(*(client.create(pod) for pod in work[start : start + 200]))


async def probe(client: Client, waits: list[float]) -> None:
    """How long a write takes, as seen by somebody else."""
    number = 0
    while True:
        number += 1
        began = time.perf_counter()
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"probe-{number}", namespace="default")))
        waits.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(PROBE)


async def one(
    size: int, count: int, kinds: int, workload: str, directory: Path
) -> tuple[float, list[float], float, float]:
    """Pods a second, waits of the client in ms, CPU in ms a pod, the longest turn of the loop in ms of CPU."""
    clock = SystemClock()
    api = ApiServerComponent(ApiServerOptions(data=DataDir.at(directory), port=0), clock, verb="apiserver")
    api.prepare()
    await api.start()

    def client_of(identity: Identity) -> Client:
        return Client(Local(api.handler, identity))

    admin = client_of(ADMIN)
    try:
        await admin.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        await in_batches([*nodes(size)], admin)
        for number in range(size):  # as the node lifecycle controller does when a node is ready
            await admin.patch(Node, f"n{number}", "", {"spec": {"taints": []}}, content_type=MERGE_PATCH)
        owners = [await admin.create(owner) for owner in workloads(workload, kinds)]
        await in_batches([*pods(count, kinds, owners)], admin)
        waits: list[float] = []
        page = await admin.list(Pod, "default", limit=1)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(probe(admin, waits))]
            await asyncio.sleep(0.3)
            waits.clear()
            began, used = time.perf_counter(), time.process_time()
            loops = scheduler_loops(client_of, SchedulerOptions(), FeatureGates(), clock, Metrics())
            turns = Turns()
            tasks += [group.create_task(loop) for loop in (turns.run(), *loops)]
            bound: set[str] = set()
            async for event in admin.watch(Pod, "default", resource_version=page.resource_version):
                if event.type != "BOOKMARK" and event.object.spec.node_name:
                    bound.add(event.object.metadata.name)
                    if len(bound) == count:
                        break
            seconds, spent = time.perf_counter() - began, time.process_time() - used
            for task in tasks:
                task.cancel()
        return count / seconds, waits, 1000 * spent / count, turns.longest
    finally:
        await api.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,1000,5000")
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--kinds", type=int, default=1)
    parser.add_argument("--workload", choices=("none", "service", "replicaset"), default="none")
    asked = parser.parse_args()
    print(machine())
    rows = [["nodes", "pods/s", f"goal {GOAL}", "CPU ms/pod", "turn ms", "API p50 ms", "p99 ms", f"goal {P99:.0f}"]]
    for size in map(int, asked.nodes.split(",")):
        with tempfile.TemporaryDirectory() as directory, contextlib.suppress(asyncio.CancelledError):
            rate, waits, cpu, turn = run(one(size, asked.pods, asked.kinds, asked.workload, Path(directory)))
            p99 = percentile(waits, 99)
            fast, quick = "reached" if rate >= GOAL else "missed", "reached" if p99 <= P99 else "missed"
            p50 = f"{percentile(waits, 50):.1f}"
            rows.append([str(size), f"{rate:.0f}", fast, f"{cpu:.2f}", f"{turn:.1f}", p50, f"{p99:.1f}", quick])
    table(rows)


if __name__ == "__main__":
    main()
