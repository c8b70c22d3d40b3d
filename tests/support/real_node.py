"""The whole node in this process: a private containerd, real cgroups, podfit's API server.

    async with real_node(directory) as node:
        await node.create("web", container("c1", ...))
        pod = await node.until(running, "web")
        await node.resize("web", c1=needs(...))

Each pod's name is a test's own. `node.calls` says, in order, what runtime and cgroups were asked to change.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kubelet.harness import IDENTITY
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.cgroup import conversion as decide
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.pod_cgroup import PodConfig, PodValues, tier
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.decide.node.pressure import Observation
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Cgroups, ContainerValues, Layout
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.node.machine import capacity, memory_bytes
from podfit.kubelet.node.pressure import MemoryShare, observe_nothing
from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.cri.health import check_health
from podfit.net.system import SystemClock
from support.cri_proxy import CriProxy
from support.eventually import eventually_async
from support.runtime_weights import weight_matches
from support.server import Server, running_server

SECONDS = 60
LOOK = 0.1  # seconds: to look more often costs the guest, which has one slow CPU, more than it saves
STAY = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
MI = 1 << 20


@dataclass
class Calls:
    """`update ID memory`, `pod memory N` and the like; each change that was asked for, in order."""

    said: list[str] = field(default_factory=list)

    def about(self, *names: str) -> list[str]:
        return [line for line in self.said if any(name in line for name in names)]


class Faults:
    """Of updates: `refusal` is what the runtime says; while `open` is not set it does nothing and gives no answer."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def meet(self) -> None:
        await self.open.wait()
        if self.refusal is not None:
            raise self.refusal


class _Runtime:
    def __init__(self, inner: CRIRuntime, calls: Calls, faults: Faults) -> None:
        self._inner, self._calls, self._faults = inner, calls, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        self._calls.said.append(
            f"update {container_id} memory={resources.memory_limit} quota={resources.cpu_quota} "
            f"shares={resources.cpu_shares}"
        )
        await self._faults.meet()
        await self._inner.update_container_resources(container_id, resources)


class _Cgroups:
    def __init__(self, inner: Cgroups, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def set_cpu_shares(self, path: str, shares: int) -> None:
        self._calls.said.append(f"{path} shares={shares}")
        self._inner.set_cpu_shares(path, shares)

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        self._calls.said.append(f"{path} quota={quota}")
        self._inner.set_cpu_limit(path, quota=quota, period=period)

    def set_memory_limit(self, path: str, limit: int) -> None:
        self._calls.said.append(f"{path} memory={limit}")
        self._inner.set_memory_limit(path, limit)


class RealNode:
    def __init__(
        self,
        root: Path,
        server: Server,
        runtime: CRIRuntime,
        cgroups: Cgroups,
        *,
        gates: FeatureGates,
        lends: int = 0,
        **machine: Any,
    ) -> None:
        """With `lends` it has so many bytes of memory, and lends what is requested and unused."""
        self.root, self.server, self.runtime, self.cgroups = root, server, runtime, cgroups
        self.calls, self.faults = Calls(), Faults()
        self._lends = lends
        self._machine = Machine(memory=memory_bytes(), cgroup=cgroups.version, gates=gates, **machine)
        self.kubelet = self.new_kubelet()

    def new_kubelet(self) -> Kubelet:
        size = capacity(self.root)
        if self._lends:
            size |= {"memory": Quantity.of_bytes(self._lends)}
        config = KubeletConfig(
            name="n1",
            root=self.root / "kubelet",
            host_ip="127.0.0.1",
            capacity=size,
            allocatable=size,
            lends=bool(self._lends),
            bursts=True,
        )
        runtime: Any = _Runtime(self.runtime, self.calls, self.faults)
        cgroups: Any = _Cgroups(self.cgroups, self.calls)
        return Kubelet(
            client=Client(Local(self.server.api.handler, IDENTITY)),
            runtime=runtime,
            cgroups=cgroups,
            config=config,
            machine=self._machine,
            mounter=TmpfsMounter(),
            clock=SystemClock(),
            reach=NodeReach(check_health),
            observe=self._observe if self._lends else observe_nothing,
        )

    def _observe(self) -> dict[str, Observation]:
        return {"memory.available": self.memory_left()}

    def memory_left(self) -> Observation:
        """Of what it has where it lends."""
        left = MemoryShare(self.cgroups, self.cgroups.layout.root, self._lends).left()
        tier = self.cgroups.layout.spare
        borrowed = (self.cgroups.working_set(tier) or 0) if self.cgroups.exists(tier) else 0
        return Observation(max(0, left.available - borrowed), left.capacity)

    # ------------------------------------------------------------------ the API

    async def create(
        self, name: str, *containers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any
    ) -> None:
        plain = {"nodeName": "n1", "hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": containers}
        metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
        await self.server.client.create(convert({"metadata": metadata, "spec": {**plain, **spec}}, Pod))

    async def runs(self, name: str, *containers: dict[str, Any], **spec: Any) -> Pod:
        """The pod, once all its containers do."""
        await self.create(name, *containers, **spec)
        return await self.until(running, name)

    async def resize(self, name: str, pod: dict[str, Any] | None = None, /, **containers: dict[str, Any]) -> None:
        """`pod` are pod-level resources, the others those of containers."""
        changes = [
            {"name": container.replace("_", "-"), "resources": needed} for container, needed in containers.items()
        ]
        spec = {"containers": changes} if changes else {}
        await self.server.client.patch(
            Pod, name, "default", {"spec": {**spec, **({"resources": pod} if pod else {})}}, subresource="resize"
        )

    async def pod(self, name: str) -> Pod | None:
        try:
            return await self.server.client.get(Pod, name, "default")
        except ApiError:
            return None

    async def until(self, holds: Callable[[Pod], Any], name: str) -> Pod:
        return await eventually_async(
            partial(self.pod, name), holds, within=SECONDS, what=f"{name} is as it should be", every=LOOK
        )

    async def delete(self, name: str) -> None:
        """Until the pod and its cgroup are gone."""
        pod = await self.server.client.get(Pod, name, "default")
        path = self.cgroups.layout.pod(pod.metadata.uid, qos(pod))
        await self.server.client.delete(Pod, name, "default", grace=0)

        async def gone() -> bool:
            return not self.cgroups.exists(path)

        await eventually_async(gone, within=SECONDS, what=f"{path} is gone", every=LOOK)

    # ------------------------------------------------------------------ the kernel

    def pod_path(self, pod: Pod) -> str:
        return self.cgroups.layout.pod(pod.metadata.uid, qos(pod))

    def container_path(self, pod: Pod, name: str) -> str:
        return f"{self.pod_path(pod)}/{short_id(status(pod, name))}"

    def holds(self, pod: Pod, name: str) -> ContainerValues:
        """What the kernel enforces on a container."""
        return self.cgroups.read_container(self.container_path(pod, name))

    def pod_holds(self, pod: Pod) -> PodValues:
        path = self.pod_path(pod)
        cpu = self.cgroups.read_cpu(path)
        return PodValues(
            shares=cpu.shares,
            quota=cpu.quota,
            period=cpu.period,
            memory=self.cgroups.read_memory(path),
            weight=cpu.weight,
        )

    def requests(self, pod: Pod, name: str, milli: int) -> bool:
        """Whether the container's share is that of these millicores; on v2 by either conversion (R-184)."""
        cpu, shares = self.holds(pod, name).cpu, decide.shares_from_milli(milli)
        return cpu.shares == shares if cpu.weight is None else weight_matches(cpu.weight, shares)

    def pod_requests(self, pod: Pod, milli: int) -> bool:
        return self.pod_holds(pod).shares_change(PodConfig(shares=decide.shares_from_milli(milli))) == 0

    async def uses(self, pod: Pod, name: str, least: int) -> int:
        """Bytes that the container uses, once it is at least so much."""

        async def used() -> int:
            return self.holds(pod, name).memory_usage or 0

        what = f"{name} uses {least} bytes"
        return await eventually_async(used, lambda used: used >= least, within=SECONDS, what=what, every=LOOK)


@asynccontextmanager
async def real_node(
    root: Path, *, gates: FeatureGates | None = None, proxy: CriProxy | None = None, **machine: Any
) -> AsyncIterator[RealNode]:
    """With a `proxy` the kubelet speaks to containerd through it."""
    clock = SystemClock()
    containerd = Containerd(root / "containerd", sandbox_image=images.PAUSE, clock=clock)
    await containerd.start()
    stack, socket = AsyncExitStack(), containerd.places.socket
    if proxy is not None:
        socket = socket.with_name("proxy.sock")
        await stack.enter_async_context(proxy.before(containerd.places.socket, socket))
    runtime = CRIRuntime(socket, containerd.importer)
    try:
        for recipe in (images.pause_recipe(), images.busybox_recipe()):
            await runtime.import_archive(images.archive(recipe, root))
        cgroups = detect(Layout(f"/podfit-test-{containerd.places.tag}")).cgroups
        async with running_server(root, clock=clock, certificate=True) as server:
            node = RealNode(root, server, runtime, cgroups, gates=gates or FeatureGates(), **machine)
            try:
                await node.kubelet.start()
                yield node
            finally:
                await node.kubelet.stop(stop_pods=True)
        left = await runtime.list_sandboxes()
    finally:
        await runtime.close()
        await stack.aclose()
        await containerd.stop()
    assert left == ()
    for tree in cgroups.layout.trees:
        assert not cgroups.exists(tree), "the node's cgroups are gone with its pods"


# ---------------------------------------------------------------------- manifests and what pods say


def needs(cpu: str = "", memory: str = "", *, limit_cpu: str = "", limit_memory: str = "") -> dict[str, Any]:
    """Requests, and limits where they are given."""
    requests = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    limits = {name: amount for name, amount in (("cpu", limit_cpu), ("memory", limit_memory)) if amount}
    return {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}


def container(
    name: str,
    resources: dict[str, Any] | None = None,
    *,
    script: str = STAY,
    restart_for: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    policies = [{"resourceName": resource, "restartPolicy": "RestartContainer"} for resource in restart_for]
    return {
        "name": name,
        "image": images.BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "resources": resources or {},
        **({"resizePolicy": policies} if policies else {}),
        **more,
    }


def qos(pod: Pod) -> Any:
    """The tier of its cgroup."""
    return tier(pod)


def status(pod: Pod, name: str) -> ContainerStatus:
    both = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return next(status for status in both if status.name == name)


def short_id(container: ContainerStatus) -> str:
    return container.container_id.partition("://")[2]


def identity(pod: Pod, name: str) -> tuple[str, int]:
    """What a restart would change."""
    return status(pod, name).container_id, status(pod, name).restart_count


def condition(pod: Pod, kind: str) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


def running(pod: Pod) -> bool:
    wanted = [container.name for container in pod.spec.containers]
    there = {status.name: status for status in pod.status.container_statuses}
    return pod.status.phase == "Running" and all(name in there and there[name].state.running for name in wanted)


def settled(pod: Pod) -> bool:
    resizing = [condition for condition in pod.status.conditions if condition.type.startswith("PodResize")]
    return running(pod) and pod.status.observed_generation == pod.metadata.generation and not resizing


def failed(pod: Pod) -> bool:
    found = condition(pod, "PodResizeInProgress")
    return found is not None and found.reason == "Error"
