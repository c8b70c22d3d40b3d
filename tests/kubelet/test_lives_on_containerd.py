"""What a real Kubernetes 1.36 node did with pods of many kinds, replayed on a private containerd (`make campaign`)."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import Layout
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import TmpfsMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.node.machine import memory_bytes
from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.cri.health import check_health
from podfit.net.system import SystemClock
from podfit.net.wire import Identity
from podfit.scheduler.scheduler import Profile, Scheduler
from support import behaviour
from support.golden import Case, needs
from support.lives import FILE, Life, duration, lives
from support.server import Server, running_server
from support.untaint import untaint

pytestmark = [pytest.mark.node, pytest.mark.campaign, needs(FILE), needs(behaviour.FILE)]
AT_ONCE = 10
NODE = Identity("system:node:node1", ("system:nodes", "system:authenticated"))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """With a scheduler and a node of the recorded size."""
    clock = SystemClock()
    containerd = Containerd(tmp_path / "containerd", sandbox_image=images.PAUSE, clock=clock)
    await containerd.start()
    runtime = CRIRuntime(containerd.places.socket, containerd.importer)
    for recipe in (images.pause_recipe(), images.busybox_recipe()):
        await runtime.import_archive(images.archive(recipe, tmp_path))
    cgroups = detect(Layout(f"/podfit-test-{containerd.places.tag}")).cgroups
    amounts = {**behaviour.allocatable(), "ephemeral-storage": "100Gi"}
    size = {name: Quantity.parse(amount) for name, amount in amounts.items()}
    config = KubeletConfig(
        name="node1", root=tmp_path / "kubelet", host_ip="127.0.0.1", capacity=size, allocatable=size
    )
    async with running_server(tmp_path, clock=clock, certificate=True) as served:
        recorder = EventRecorder(served.client, component="default-scheduler", clock=clock)
        informers = Informers(served.client, clock)
        scheduler = Scheduler(served.client, informers, profiles=[Profile(recorder)], clock=clock, gates=FeatureGates())
        parts = [asyncio.create_task(work) for work in (recorder.run(), informers.run(), scheduler.run())]
        kubelet = Kubelet(
            client=Client(Local(served.api.handler, NODE)),
            runtime=runtime,
            cgroups=cgroups,
            config=config,
            machine=Machine(memory=memory_bytes(), cgroup=cgroups.version),
            mounter=TmpfsMounter(),
            clock=clock,
            reach=NodeReach(check_health),
        )
        await kubelet.start()
        await untaint(served.client)
        yield served
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await kubelet.stop(stop_pods=True)
    await runtime.close()
    await containerd.stop()


BEYOND = {
    "service-env-hosts-resolv": "there are no services",
    "restart-all-containers": "the node does not declare the feature",
    "command-not-executable": "the image has no /etc/passwd",
    "image-change-restarts": "there is no image busybox:latest without a registry",
    "ephemeral-container-bad-image": "the recording ends before the pull has failed",
}


def on_its_own_port(case: Case, port: int) -> Case:
    """Recorded pods had addresses of their own; ours share the network of the host."""
    moved: Case = json.loads(re.sub(r"\b8080\b", str(port), json.dumps(case)))
    return moved


def at_a_surer_pace(case: Case) -> Case:
    """Two lives depend on when upstream happened to look. Its look at a back-off that was over came 2.5 s late, so the
    recorder deleted the pod before the container ended again: here it looks away as much sooner. And the first probe
    came before the server listened: here the server surely takes longer to begin.
    """
    match case["id"]:
        case "sidecar-restarts":
            return {**case, "cleanupDelete_t_ms": 17_000}
        case "two-liveness-http-ok-redirect":
            slower: Case = json.loads(json.dumps(case).replace("mkdir -p /w/d;", "sleep 0.5; mkdir -p /w/d;"))
            return slower
    return case


async def lived(server: Server, case: Case, gate: asyncio.Semaphore) -> str:
    """How this life differs from the recorded one; empty when it does not."""
    async with gate:
        namespace = f"of-{case['id']}"
        await server.namespace(namespace)
        life = Life(server.client, SystemClock(), case, namespace)
        try:
            await life.live()
        except (ApiError, KeyError) as error:
            return repr(error)
        return "\n  ".join(life.differences())


@pytest.mark.timeout(400)
async def test_recorded_lives(server: Server) -> None:
    wanted = os.environ.get("PODFIT_LIVES", "").split()
    cases = [case for case in lives() if (case["id"] in wanted if wanted else case["id"] not in BEYOND)]
    cases = [at_a_surer_pace(on_its_own_port(case, 18080 + number)) for number, case in enumerate(cases)]
    cases.sort(key=duration, reverse=True)
    # What these say depends on who else is on the node.
    alone = [case for case in cases if case["pod"]["spec"].get("nodeName")]
    crowd = [case for case in cases if case not in alone]
    answers = []
    for group, gate in ((crowd, asyncio.Semaphore(AT_ONCE)), (alone, asyncio.Semaphore(1))):
        answers += await asyncio.gather(*(lived(server, case, gate) for case in group))
    cases = [*crowd, *alone]
    differing = [f"{case['id']}\n  {text}" for case, text in zip(cases, answers, strict=True) if text]
    assert not differing, f"{len(differing)} of {len(cases)} differ:\n" + "\n".join(differing)
