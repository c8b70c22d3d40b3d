"""What a plan promises against what then happens: random situations on a node that decides for itself."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from answers.situations import Situation, busy, compared
from kubelet.fake_runtime import FakeCgroups, FakeRuntime
from kubelet.harness import IDENTITY, Node
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.result import CRASH, DEFERRED, ENDED, ERROR, FITS, REFUSED, UNCHANGED, UNSCHEDULABLE
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.controllers.make_room import ACCOUNT, COMPONENT, EVICTING_ACCOUNT, RoomController
from podfit.controllers.room_notice import keep_notice
from podfit.decide.lifecycle.facts import ContainerState
from podfit.decide.node.pending_resizes import RETRY_PERIOD
from podfit.kubelet.runtime.labels import POD_UID
from podfit.net.inline_executor import InlineExecutor
from podfit.process.identities import controller
from podfit.scheduler.scheduler import NAME, Profile, Scheduler
from podfit.store.memory import memory_store
from podfit.testing.loop import TestLoop
from support.background import beside
from support.server import Server, running_server
from support.untaint import untaint

ROOM_MADE = f"room made, {FITS}"
KINDS = {FITS, DEFERRED, REFUSED, UNCHANGED, UNSCHEDULABLE, ENDED, ERROR, CRASH, ROOM_MADE, f"repeated {DEFERRED}"}
RETRIES = 4  # steps in which the time passes until then
QUIET, LONGEST = 3, 300  # seconds without a write; leases and node heartbeats come every ten


class Cgroups(FakeCgroups):
    """A pod uses what its running containers use, so that one that was killed gives its memory back."""

    runtime: FakeRuntime

    def memory_usage(self, path: str) -> int:
        running = [status for status in self.runtime.containers() if status.state is ContainerState.RUNNING]
        if path.rpartition("/")[2] in {status.id for status in running}:
            return self.used
        return self.used * sum(status.labels[POD_UID] in path for status in running)


class Machine(Node):
    def make_machine(self) -> None:
        self.cgroups = cgroups = Cgroups()
        self.runtime = cgroups.runtime = FakeRuntime(self.clock, cgroups)


class Fake:
    """A kubelet on a fake runtime, on time that is moved on until it is at rest."""

    node, steady = "n1", True

    def __init__(self, node: Node, server: Server) -> None:
        self.client = server.client
        self.container: dict[str, Any] = {"image": "app:1"}
        self.brief: dict[str, Any] = {}
        self.heavy: dict[str, Any] = {}
        self._node, self._server = node, server

    async def added(self, namespace: str) -> None:
        await self._node.advance(1)

    async def look(self, namespace: str, name: str) -> Snapshot:
        """With the usage that the fake machine has: of every container alike."""
        found = await Reader(self.client, namespace, self._node.clock).read(Target(POD, name), usage=True)
        used = self._node.cgroups.used
        return replace(
            found,
            usage={
                (pod.metadata.namespace, pod.metadata.name): {container.name: used for container in pod.spec.containers}
                for pod in found.pods
            },
        )

    async def use(self, memory: int) -> None:
        self._node.cgroups.used = self._node.runtime.needs = memory

    async def tried_again(self) -> bool:
        for _ in range(RETRIES):
            await self._node.advance(RETRY_PERIOD / RETRIES)
        return True

    async def end(self, name: str) -> None:
        pods = (await self.client.list(Pod)).items
        pod = next(pod for pod in pods if pod.metadata.name == name)
        for status in pod.status.container_statuses:
            self._node.runtime.end(status.container_id.rpartition("//")[2], 0)

    async def rest(self, namespace: str) -> None:
        quiet, seen = 0, -1
        for _ in range(LONGEST):
            await self._node.advance(1)
            revision = self._server.context.store.revision
            pods = (await self.client.list(Pod, namespace)).items
            quiet, seen = (quiet + 1, seen) if revision == seen and not any(map(busy, pods)) else (0, revision)
            if quiet == QUIET:
                return
        raise AssertionError(f"{namespace} never came to rest")


async def fulfilled(seed: int, directory: Path) -> str:
    """Play one situation; what was seen, for the count of kinds."""
    random.seed(seed)  # the jitter of retries
    node = Machine(directory / f"node{seed}")
    store = memory_store(InlineExecutor)
    async with running_server(directory, clock=node.clock, certificate=True, store=store) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        for name, value in (("low", 10), ("high", 1000)):
            await server.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        await node.start()
        await untaint(server.client)
        try:
            async with beside(*controllers(seed, node, server)):
                situation = Situation(seed, Fake(node, server))
                await situation.prepare(server.account)
                return await compared(seed, situation)
        finally:
            await node.kubelet.stop(stop_pods=False)


def controllers(seed: int, node: Node, server: Server) -> Iterator[Coroutine[Any, Any, None]]:
    """A scheduler, and on half of the clusters one that makes room, some of them by evicting."""
    recorder = EventRecorder(server.client, component=NAME, clock=node.clock)
    informers, gates = Informers(server.client, node.clock), server.context.gates
    yield informers.run()
    yield Scheduler(server.client, informers, profiles=[Profile(recorder)], clock=node.clock, gates=gates).run()
    mode = ("", "shrink", "", "preempt")[seed % 4]
    if mode:
        client = server.as_identity(controller(EVICTING_ACCOUNT if mode == "preempt" else ACCOUNT))
        told = EventRecorder(client, component=COMPONENT, clock=node.clock)
        yield told.run()
        yield keep_notice(client, node.clock, "preempt" if mode == "preempt" else "shrink")
        informers = Informers(client, node.clock)
        yield informers.run()
        yield RoomController(
            client,
            informers=informers,
            recorder=told,
            clock=node.clock,
            gates=server.context.gates,
            evict=mode == "preempt",
        ).run()


def played(seeds: Iterable[int], directory: Path) -> list[str]:
    """Without threads and in virtual time, so that a seed is the same situation every time."""

    async def play() -> list[str]:
        return [await fulfilled(seed, directory) for seed in seeds]

    with asyncio.Runner(loop_factory=TestLoop) as runner:
        return runner.run(play())


def test_what_is_promised_happens(tmp_path: Path) -> None:
    seen = played(range(60), tmp_path)
    assert set(seen) >= KINDS, Counter(seen)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_what_is_promised_happens_five_hundred_times(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """500 random situations on a simulated runtime: a plan's verdict, text, restarts and order are what a resize then
    does.
    """
    seen = played(range(1000, 1500), tmp_path)
    assert set(seen) >= KINDS, Counter(seen)
    for verdict in sorted(set(seen)):
        figure(verdict, seen.count(verdict))
