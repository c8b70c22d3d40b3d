"""A storm of resizes over real pods, to be disturbed in the middle, and what has to hold once it is over.

storm = Storm(up, seed=36)
storm.begin()                          pods run
storm.disturb(lambda: storm.kill("podfit", "containerd"))
up.start()
storm.check("after the kill")          desired = allocated = actual, same containers, nothing acknowledged is lost
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.kubelet.cgroup.detect import detect
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from support.eventually import eventually_async
from support.parts import containerd_pid
from support.up import Up, manifest, resources, running, settled

RESIZES = 4  # of each pod by each of two writers, so 20 and more are in flight
PATIENCE = 90.0  # seconds for one resize while the API server is away
LATEST = 60  # of the 80 resizes: the disturbance comes when so many or fewer were acknowledged


class Storm:
    """`node` is the kubelet's directory where that is not the cluster's. `stubborn` writers try each resize until the
    API server, which may be away, has acknowledged it.
    """

    def __init__(
        self,
        up: Up,
        *,
        seed: int,
        pods: int = 10,
        resizes: int = RESIZES,
        node: Path | None = None,
        stubborn: bool = False,
    ) -> None:
        self.up = up
        self._node, self._per_pod, self._stubborn = node or up.root, resizes, stubborn
        self.names = [f"p{number}" for number in range(pods)]
        self.resizes = 0
        self._random = random.Random(seed)
        self._enough = 0
        self._reached = asyncio.Event()
        self._settled: list[float] = []
        self._first: dict[str, tuple[str, str, int]] = {}
        self._acknowledged: dict[str, int] = {}

    def begin(self) -> None:
        sizes = {"name": "app", "resources": resources("20m", "16Mi")}
        self.up.apply(*(manifest(name, sizes) for name in self.names))
        self._first = {name: identity(self.up.pod_when(name, running, "ran")) for name in self.names}

    def disturb(self, disturbance: Callable[[], object]) -> None:
        """Resize everything at once, and call `disturbance` in the middle. Returns when every PATCH has its answer."""
        asyncio.run(self._storm(disturbance))

    def kill(self, *parts: str) -> None:
        """SIGKILL of `podfit`, `containerd` or both."""
        pids = {"podfit": self._podfit_pid, "containerd": self._containerd_pid}
        for pid in [pids[part]() for part in parts]:
            os.kill(pid, signal.SIGKILL)

    def _podfit_pid(self) -> int:
        return int(self.up.state()["pid"])

    def _containerd_pid(self) -> int:
        return containerd_pid(self._node)

    def check(self, when: str, *, seconds: float = 60) -> None:
        began = time.monotonic()
        for name in self.names:
            pod = self.up.pod_when(name, settled, f"settled {when}", seconds=seconds)
            desired = pod["spec"]["containers"][0]["resources"]
            status = pod["status"]["containerStatuses"][0]
            assert identity(pod) == self._first[name], "same pod, same container, no restart"
            assert status["resources"] == desired
            assert status["allocatedResources"] == desired["requests"]
            assert pod["metadata"]["generation"] >= self._acknowledged.get(name, 0), "an acknowledged resize is gone"
            assert self._kernel(pod) == wanted(desired), f"{name} {when}: the kernel has something else"
        self._settled.append(time.monotonic() - began)

    def tell(self, figure: Callable[[str, object], None]) -> None:
        figure("rounds", len(self._settled))
        figure("acknowledged resizes", self.resizes)
        figure("settled after", f"{median(self._settled):.1f} s (median), {max(self._settled):.1f} s (slowest)")

    def _kernel(self, pod: dict[str, Any]) -> tuple[int, int]:
        """Quota in microseconds and memory limit in bytes of the container's own cgroup and no other."""
        layout = cgroup_layout(DataDir(self._node))
        container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        path = layout.container(pod["metadata"]["uid"], "Guaranteed", container)
        values = detect(layout).cgroups.read_container(path)
        return values.cpu.quota or 0, values.memory_limit or 0

    async def _storm(self, disturbance: Callable[[], object]) -> None:
        client = load([self.up.kubeconfig]).client()
        writers = [self._writer(client, name) for name in self.names for _ in range(2)]
        storm = asyncio.gather(*writers, return_exceptions=True)
        self._enough, self._reached = self.resizes + self._random.randrange(LATEST), asyncio.Event()
        reached = asyncio.create_task(self._reached.wait())
        both: tuple[asyncio.Future[Any], ...] = storm, reached
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        await asyncio.to_thread(disturbance)
        for result in await storm:
            assert result is None or isinstance(result, ConnectionError | ApiError), result
        await client.close()

    async def _writer(self, client: Client, name: str) -> None:
        for _ in range(self._per_pod):
            size = resources(f"{self._random.randrange(20, 60)}m", f"{self._random.randrange(16, 48)}Mi")
            pod = await self._patch(client, name, {"spec": {"containers": [{"name": "app", "resources": size}]}})
            self.resizes += 1
            if self.resizes > self._enough:
                self._reached.set()
            self._acknowledged[name] = max(self._acknowledged.get(name, 0), pod.metadata.generation)

    async def _patch(self, client: Client, name: str, patch: dict[str, Any]) -> Pod:
        async def accepted() -> Pod | None:
            try:
                return await client.patch(Pod, name, "default", patch, subresource="resize")
            except (ConnectionError, ApiError) as error:
                if not self._stubborn:
                    raise
                refusals.append(error)
                return None

        refusals: list[Exception] = []
        told = partial(str, refusals)
        return await eventually_async(accepted, within=PATIENCE, what=f"{name} may be resized", told=told)


def wanted(desired: dict[str, Any]) -> tuple[int, int]:
    limits = desired["limits"]
    return Quantity.parse(limits["cpu"]).milli() * 100, Quantity.parse(limits["memory"]).value()


def identity(pod: dict[str, Any]) -> tuple[str, str, int]:
    status = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], status["containerID"], status["restartCount"]
