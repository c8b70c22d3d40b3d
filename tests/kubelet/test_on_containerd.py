"""The whole node on a private containerd, real cgroups and podfit's API server: what no fake can promise."""

import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import IDENTITY
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import QOS, Cgroups, Layout
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.managers import machine as numa
from podfit.kubelet.managers.config import ManagersConfig
from podfit.kubelet.node.machine import capacity, limits_swap, memory_bytes
from podfit.kubelet.pods import runtime_watch
from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.cri.health import check_health
from podfit.net.system import SystemClock
from podfit.net.wire import Request
from support.eventually import eventually_async
from support.server import Server, running_server

pytestmark = pytest.mark.node
SECONDS = 30


class RealNode:
    def __init__(self, root: Path, server: Server, runtime: CRIRuntime, cgroups: Cgroups) -> None:
        self.root, self.server, self.runtime, self.cgroups = root, server, runtime, cgroups
        self.managers = ManagersConfig()
        self.kubelet = self.new_kubelet()

    def new_kubelet(self) -> Kubelet:
        size = capacity(self.root)
        config = KubeletConfig(
            name="n1",
            root=self.root / "kubelet",
            host_ip="127.0.0.1",
            capacity=size,
            allocatable=size,
            managers=self.managers,
        )
        machine = Machine(
            memory=memory_bytes(),
            cgroup=self.cgroups.version,
            static_cpus=self.managers.cpu_policy == "static",
            swap_controller=limits_swap(self.cgroups.version),
        )
        return Kubelet(
            client=Client(Local(self.server.api.handler, IDENTITY)),
            runtime=self.runtime,
            cgroups=self.cgroups,
            config=config,
            machine=machine,
            mounter=TmpfsMounter(),
            clock=SystemClock(),
            reach=NodeReach(check_health),
        )

    async def add(self, script: str, *, name: str = "web", cpu: str = "100m", **spec: Any) -> None:
        container = {
            "name": "c1",
            "image": images.BUSYBOX,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "resources": sized(cpu),
            "volumeMounts": [{"name": "m", "mountPath": "/m"}],
        }
        plain = {
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}],
        }
        pod = {"metadata": {"name": name, "namespace": "default"}, "spec": {**plain, **spec}}
        await self.server.client.create(convert(pod, Pod))

    async def resize(self, cpu: str, name: str = "web", memory: str = "64Mi") -> None:
        patch = {"spec": {"containers": [{"name": "c1", "resources": sized(cpu, memory)}]}}
        await self.server.client.patch(Pod, name, "default", patch, subresource="resize")

    async def pod(self, name: str = "web") -> Pod | None:
        try:
            return await self.server.client.get(Pod, name, "default")
        except ApiError:
            return None

    async def restart(self) -> None:
        await self.kubelet.stop(stop_pods=False)
        self.kubelet = self.new_kubelet()
        await self.kubelet.start()

    def affinity(self, pod: Pod, qos: QOS) -> set[int]:
        """The CPUs that the kernel lets the pod's first container run on."""
        container_id = pod.status.container_statuses[0].container_id.partition("://")[2]
        path = self.cgroups.layout.container(pod.metadata.uid, qos, container_id)
        return set().union(*(os.sched_getaffinity(pid) for pid in self.cgroups.read_container(path).processes))

    async def until(self, holds: Callable[[Pod], Any], name: str = "web") -> Pod:
        what = f"{name} is as it should be"
        return await eventually_async(partial(self.pod, name), holds, within=SECONDS, what=what, every=0.01)


def sized(cpu: str, memory: str = "64Mi") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"requests": amounts, "limits": amounts}


def mounted_below(path: Path) -> bool:
    return str(path) in Path("/proc/mounts").read_text()


def settled(pod: Pod) -> bool:
    resizing = [condition for condition in pod.status.conditions if condition.type.startswith("PodResize")]
    return pod.status.observed_generation == pod.metadata.generation and not resizing


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[RealNode]:
    clock = SystemClock()
    containerd = Containerd(tmp_path / "containerd", sandbox_image=images.PAUSE, clock=clock)
    await containerd.start()
    runtime = CRIRuntime(containerd.places.socket, containerd.importer)
    for recipe in (images.pause_recipe(), images.busybox_recipe()):
        await runtime.import_archive(images.archive(recipe, tmp_path))
    cgroups = detect(Layout(f"/podfit-test-{containerd.places.tag}")).cgroups
    async with running_server(tmp_path, clock=clock, certificate=True) as server:
        node = RealNode(tmp_path, server, runtime, cgroups)
        await node.kubelet.start()
        yield node
        await node.kubelet.stop(stop_pods=True)
    await runtime.close()
    await containerd.stop()


FOREVER = "trap 'exit 0' TERM; echo hello; while :; do sleep 0.1; done"


async def test_a_life_with_resizes_and_a_crash(real: RealNode) -> None:
    await real.add(FOREVER)
    pod = await real.until(lambda pod: pod.status.phase == "Running")
    before = pod.status.container_statuses[0].container_id
    await real.resize("200m", memory="96Mi")
    await real.until(settled)
    await real.resize("200m", memory="48Mi")
    await real.until(settled)
    path = real.cgroups.layout.container(pod.metadata.uid, "Guaranteed", before.partition("://")[2])
    held = real.cgroups.read_container(path)
    assert (held.cpu.quota, held.memory_limit) == (20_000, 48 << 20)
    await real.kubelet.stop(stop_pods=False)
    real.kubelet = real.new_kubelet()
    await real.resize("300m")
    await real.kubelet.start()
    pod = await real.until(settled)
    status = pod.status.container_statuses[0]
    assert (status.container_id, status.restart_count) == (before, 0)
    assert real.cgroups.read_container(path).cpu.quota == 30_000
    answer = await real.kubelet.handler(Request("GET", "/containerLogs/default/web/c1", identity=IDENTITY))
    assert await answer.read() == b"hello\n"
    await real.kubelet.stop(stop_pods=True)
    assert await real.runtime.list_sandboxes() == ()
    assert not real.cgroups.exists(real.cgroups.layout.root)
    assert not mounted_below(real.root / "kubelet")


async def test_room_comes_free_with_the_last_exit(real: RealNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container ends by itself: the runtime's event gives its room away, and neither a deletion nor the safety net
    of looking every ten seconds."""
    monkeypatch.setattr(runtime_watch, "LOOK_WITH_EVENTS_SECONDS", 3600.0)
    await real.restart()
    cpus = capacity(real.root)["cpu"].milli()
    stamp = real.root / "stamp"
    await real.add(FOREVER)
    await real.add(
        "sleep 1; touch /m/stamp",
        name="big",
        cpu=f"{cpus - 200}m",
        restartPolicy="Never",
        volumes=[{"name": "m", "hostPath": {"path": str(stamp), "type": "DirectoryOrCreate"}}],
    )
    for name in ("web", "big"):
        await real.until(lambda pod: pod.status.phase == "Running", name)
    await real.resize("500m")
    await real.until(
        lambda pod: [condition for condition in pod.status.conditions if condition.type == "PodResizePending"]
    )
    await real.until(settled)
    assert (stamp / "stamp").exists(), "not before it ended"
    big = await real.pod("big")
    assert big is not None
    assert big.metadata.deletion_timestamp is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="CPUs can be given away where there are two")
@pytest.mark.row("R-113")
async def test_the_kernel_keeps_cpus_for_one_container(real: RealNode) -> None:
    """The pool moves off them while it runs, a CPU resize is infeasible, and the CPUs come back at the end."""
    everything = os.sched_getaffinity(0)
    reserved = min(everything)
    real.managers = ManagersConfig(
        cpu_policy="static",
        topology=numa.topology(frozenset(everything)),
        reserved_cpus=frozenset({reserved}),
        memory_policy="Static",
        banks=numa.banks(memory_bytes(), {0: 1 << 28}),
    )
    await real.restart()
    await real.add(FOREVER, name="small", cpu="100m")
    small = await real.until(lambda pod: pod.status.phase == "Running", "small")
    assert real.affinity(small, "Guaranteed") == everything
    await real.add(FOREVER, cpu="1")
    web = await real.until(lambda pod: pod.status.phase == "Running")
    (own,) = real.affinity(web, "Guaranteed")
    assert own != reserved
    assert real.affinity(small, "Guaranteed") == everything - {own}
    assert real.cgroups.read_cpu(real.cgroups.layout.pod(web.metadata.uid, "Guaranteed")).quota is None
    await real.resize("500m")
    refused = await real.until(lambda pod: any(condition.reason == "Infeasible" for condition in pod.status.conditions))
    message = next(condition.message for condition in refused.status.conditions if condition.type == "PodResizePending")
    assert message == 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    await real.server.client.delete(Pod, "web", "default", grace=1)

    async def cpus() -> set[int]:
        return real.affinity(small, "Guaranteed")

    await eventually_async(cpus, everything.__eq__, within=SECONDS, what=f"it may run on {everything} again")


@pytest.mark.row("R-177")
async def test_a_guest_sees_the_processes_of_its_target(real: RealNode) -> None:
    """And goes on through a resize, its own cgroup without limits."""
    await real.add(FOREVER)
    await real.until(lambda pod: pod.status.phase == "Running")
    guest = {
        "name": "dbg",
        "image": images.BUSYBOX,
        "imagePullPolicy": "Never",
        "targetContainerName": "c1",
        "command": ["sleep", "1000"],
    }
    patch = {"spec": {"ephemeralContainers": [guest]}}
    await real.server.client.patch(Pod, "web", "default", patch, subresource="ephemeralcontainers")
    pod = await real.until(lambda pod: any(status.state.running for status in pod.status.ephemeral_container_statuses))
    before = pod.status.ephemeral_container_statuses[0]
    await real.resize("200m")
    pod = await real.until(settled)
    assert pod.status.ephemeral_container_statuses[0].container_id == before.container_id
    path = real.cgroups.layout.container(pod.metadata.uid, "Guaranteed", before.container_id.partition("://")[2])
    held = real.cgroups.read_container(path)
    assert (held.cpu.shares, held.cpu.quota, held.memory_limit) == (2, None, None)
    theirs = real.cgroups.layout.container(
        pod.metadata.uid, "Guaranteed", pod.status.container_statuses[0].container_id.partition("://")[2]
    )
    spaces = {
        os.readlink(f"/proc/{pid}/ns/pid") for pid in (*held.processes, *real.cgroups.read_container(theirs).processes)
    }
    assert len(spaces) == 1


STUBBORN = "trap '' TERM; while :; do sleep 0.1; done"


@pytest.mark.row("R-117")
async def test_a_critical_pod_grows_when_the_container_in_its_way_is_dead(real: RealNode) -> None:
    """The victim takes its whole grace period; the room is promised when the kernel has it back and not before."""
    cpus = capacity(real.root)["cpu"].milli()
    await real.add(FOREVER, name="vital", priorityClassName="system-node-critical")
    await real.add(STUBBORN, cpu=f"{cpus - 200}m", terminationGracePeriodSeconds=2)
    for name in ("vital", "web"):
        await real.until(lambda pod: pod.status.phase == "Running", name)
    before = await real.until(settled, "vital")
    await real.resize("500m", "vital")
    victim = await real.until(
        lambda pod: any(condition.type == "DisruptionTarget" for condition in pod.status.conditions)
    )
    assert victim.status.phase == "Running"
    waiting = await real.until(
        lambda pod: "PodResizePending" in [condition.type for condition in pod.status.conditions], "vital"
    )
    assert str(waiting.status.container_statuses[0].allocated_resources["cpu"]) == "100m"
    after = await real.until(settled, "vital")
    old, new = (pod.status.container_statuses[0] for pod in (before, after))
    assert (new.container_id, new.restart_count) == (old.container_id, 0)
    path = real.cgroups.layout.container(after.metadata.uid, "Guaranteed", new.container_id.partition("://")[2])
    assert real.cgroups.read_container(path).cpu.quota == 50_000
    gone = await real.until(lambda pod: pod.status.phase == "Failed")
    assert (gone.status.reason, gone.status.message) == ("Preempting", "Preempted in order to admit critical pod")
    ended = gone.status.container_statuses[0].state.terminated
    assert ended is not None
    assert ended.exit_code == 137
