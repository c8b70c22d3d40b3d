"""How long until a cluster serves, has a node, and runs a container; and what it weighs when idle.

    python bench/startup.py [--rounds 5]

The peer (Kubernetes 1.36 with etcd and containerd on a machine of this kind): 2.6 s to /readyz, 4.1 s to a Ready node,
8.8 s to the first running container, 577 MB idle.
"""

import argparse
import asyncio
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from measure import PODFIT, data_directory, judge, machine, percentile, table

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import KubeconfigError, load
from podfit.client.rest import Client
from podfit.core.errors import ApiError

IDLE_SECONDS = 5
STEP = 0.002
GOALS = {"readyz": 700.0, "node Ready": 800.0, "container running": 1300.0}
FIRST_RUN_GOALS = GOALS | {"readyz": 1000.0}
PEER = {"readyz": "2600 ms", "node Ready": "4100 ms", "container running": "8800 ms"}
IDLE_GOAL = 90.0  # MB
POD = {
    "metadata": {"name": "first", "namespace": "default"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "1000"]}],
    },
}


@dataclass
class Times:
    """Milliseconds since the command was started, and MB when idle."""

    reached: dict[str, float]
    idle: float


async def one(data: Path) -> Times:
    began = time.monotonic()
    kubeconfig = data / "admin.kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    command = [PODFIT, "up", "--data", str(data), "--port", "0", "--kubeconfig", str(data / "bench.kubeconfig")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    reached: dict[str, float] = {}
    client = await _connect(kubeconfig)
    for name, look in (("readyz", _ready), ("node Ready", _node), ("container running", _running)):
        if name == "container running":
            await _create(client)
        while not await look(client):
            await asyncio.sleep(STEP)
        reached[name] = 1000 * (time.monotonic() - began)
    await client.delete(Pod, "first", "default", grace=0)
    await asyncio.sleep(IDLE_SECONDS)
    idle = _resident(process.pid)
    await client.close()
    process.send_signal(2)
    process.wait(30)
    return Times(reached, idle)


async def _connect(kubeconfig: Path) -> Client:
    while True:
        with suppress(KubeconfigError, OSError):
            return load([kubeconfig]).client()
        await asyncio.sleep(STEP)


async def _create(client: Client) -> None:
    """As soon as the namespace has what a pod needs."""
    while True:
        try:
            await client.create(convert(POD, Pod))
            return
        except ApiError as error:
            if error.code != 403:
                raise
        await asyncio.sleep(STEP)


async def _ready(client: Client) -> bool:
    with suppress(ApiError, ConnectionError):
        await client.request("GET", "/readyz")
        return True
    return False


async def _node(client: Client) -> bool:
    nodes = (await client.list(Node)).items
    return any(
        condition.type == "Ready" and condition.status == "True"
        for node in nodes
        for condition in node.status.conditions
    )


async def _running(client: Client) -> bool:
    pod = await client.get(Pod, "first", "default")
    return any(status.state.running for status in pod.status.container_statuses)


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    rounds = arguments.parse_args().rounds
    print(f"startup: {machine()}")
    with data_directory() as data:
        first, *warm = [asyncio.run(one(data)) for _ in range(rounds + 1)]
    rows = [("what", "first run", "goal", "warm p50", "goal", "", "peer")]
    for name in GOALS:
        median = percentile([run.reached[name] for run in warm], 50)
        rows.append(
            (
                name,
                f"{first.reached[name]:.0f} ms",
                f"{FIRST_RUN_GOALS[name]:.0f}",
                f"{median:.0f} ms",
                f"{GOALS[name]:.0f}",
                judge(median, GOALS[name]),
                PEER[name],
            )
        )
    idle = percentile([run.idle for run in warm], 50)
    rows.append(("idle memory", f"{first.idle:.0f} MB", "90", f"{idle:.0f} MB", "90", judge(idle, IDLE_GOAL), "577 MB"))
    table(rows)


if __name__ == "__main__":
    main()
