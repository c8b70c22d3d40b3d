"""The cluster of a test: started in well under a second, gone with the test, driven by a clock that only a test moves.

It is the cluster of `podfit up` with a store in memory and simulated nodes. The API server listens on loopback as well,
so that any client can be tested against it; the test's own calls wait until the cluster has come to rest.
"""

import asyncio
import gc
import json
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, load
from podfit.client.rest import Client
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.node.options import KubeletOptions
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.net.event_loop import COLLECT
from podfit.net.files import write_atomic
from podfit.net.system import SeededRandom, SystemRandom
from podfit.process.control.apiserver import OpenStore
from podfit.process.control.stores import passing_store
from podfit.process.controllers_options import ControllersOptions
from podfit.process.data.data_dir import DataDir
from podfit.process.node.cluster_node import ClusterNode
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.up import Cluster as Composed
from podfit.testing import containers
from podfit.testing.clock import VirtualClock
from podfit.testing.load import Curve, Loads
from podfit.testing.loop import TestLoop
from podfit.testing.objects import Manifest, Objects, documents
from podfit.testing.views import EventView, PodView

T = TypeVar("T")


class Runner:
    """Runs coroutines for a thread that waits for them."""

    def __init__(self) -> None:
        self._loop = TestLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="podfit-cluster", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], *, seconds: float = 60.0) -> T:
        """Its result or exception. Raises TimeoutError when it takes longer in real time."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


STEP, LONGEST = 1.0, 300.0
NODE_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")


class NeverHappened(AssertionError):
    """What a test waited for did not come true; the message shows the pod as it was last seen."""


class Clock:
    """The cluster's time. It stands still except while `advance` runs."""

    def __init__(self, runner: Runner, virtual: VirtualClock) -> None:
        self._runner, self._virtual = runner, virtual

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> None:
        """Let this much time pass, and everything happen that happens in it. Raises ValueError for a time that does
        not pass: below zero, or without an end."""
        passing = seconds + 60 * minutes + 3600 * hours
        if not 0 <= passing < math.inf:
            raise ValueError(f"time cannot move by {passing:g} s; clock.jump sets the time of day, also back")
        before = gc.get_threshold()
        gc.set_threshold(*COLLECT)  # looking for garbage every 700 objects would be a fifth of the work
        try:
            self._runner.run(self._virtual.advance(passing), seconds=600)
        finally:
            gc.set_threshold(*before)

    def jump(self, seconds: float) -> None:
        """Set the time of day, forward or back. No time passes: what is due in a minute stays due in a minute. Raises
        ValueError for what is out of the years 1 to 9999."""
        try:
            self._virtual.jump(seconds)
        except OverflowError:
            raise ValueError(f"a jump of {seconds:g} s leaves the years 1 to 9999") from None

    @property
    def elapsed(self) -> float:
        """Seconds that passed since the cluster began, whatever the time of day was set to."""
        return self._virtual.monotonic()


class Cluster:
    """`url` and `kubeconfig` (a file) are for foreign clients; `client` is podfit's own, for `run`."""

    def __init__(
        self,
        directory: Path,
        *,
        nodes: int | Sequence[Mapping[str, str]] = 1,
        vpa: bool = False,
        play_kwok_nodes: bool = False,
        controllers: tuple[str, ...] = ("*",),
        lend_spare: bool = False,
        node_groups: Path | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        seed: int | None = None,
        store: OpenStore = passing_store,
    ) -> None:
        sizes = {f"simulated-{number}": size for number, size in enumerate(_sizes(nodes), 1)}
        self._runner = Runner()
        self._virtual = VirtualClock()
        self._random = SystemRandom() if seed is None else SeededRandom(seed)
        self.clock = Clock(self._runner, self._virtual)
        options = UpOptions(
            api=ApiServerOptions(
                data=DataDir.at(directory),
                port=0,
                kubeconfig=directory / "kubeconfig",
                gates=FeatureGates(feature_gates or {}),
            ),
            node=NodeKind.SIMULATED if sizes else NodeKind.NONE,
            nodes=len(sizes) or 1,
            sizes=sizes,
            vpa=vpa,
            play_kwok_nodes=play_kwok_nodes,
            controllers=ControllersOptions(controllers=controllers),
            kubelet=KubeletOptions(lend_spare=lend_spare),
            node_groups=node_groups,
            history=False,  # its time is a test's, and segments are made by a process
        )
        try:
            self._composed = self._runner.run(self._start(options, store))
        except BaseException:
            self._runner.close()
            raise
        self.url, self.kubeconfig = self._composed.server, directory / "kubeconfig"
        self.client: Client = self._composed.admin_local()
        self._objects = Objects(self.client, self._virtual.settle)
        self._loads: Loads | None = None
        self.settle()

    async def _start(self, options: UpOptions, store: OpenStore) -> Composed:
        return await Composed.start(
            options, announce=lambda _: None, clock=self._virtual, store=store, random=self._random
        )

    def close(self) -> None:
        self._runner.run(self._composed.stop(pods=False))
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of `client` on the cluster's event loop: its result or exception."""
        return self._runner.run(work)

    # ------------------------------------------------------------------ what a test does

    def apply(self, *manifests: Manifest, namespace: str = "default") -> None:
        """Create or change objects: mappings, YAML texts (of several documents), or files with such texts. Of any kind
        that the cluster serves, kinds too that a definition before them declares.

        Comes to rest after each. Raises ApiError as the server answers it, LookupError for a kind that is not served.
        """
        for manifest in manifests:
            for document in documents(manifest):
                self._runner.run(self._objects.apply(document, namespace))
                self.settle()  # what controllers make of it, such as a namespace's service account, the next may need

    def resize(self, name: str, *, namespace: str = "default", **resources: Mapping[str, Any]) -> None:
        """`resize("web", app={"requests": {"cpu": "1"}})`: containers by name with their new resources.

        Raises ApiError as the server answers it, ValueError where `requests` and `limits` are missing.
        """
        if not resources or any(not to or not to.keys() <= {"requests", "limits"} for to in resources.values()):
            raise ValueError('a resize names containers and their sizes: resize("web", app={"requests": {"cpu": "1"}})')
        patch = {"spec": {"containers": [{"name": container, "resources": to} for container, to in resources.items()]}}
        self._runner.run(self.client.patch(Pod, name, namespace, patch, subresource="resize"))
        self.settle()

    def delete(self, name: str, *, kind: str = "Pod", api_version: str = "v1", namespace: str = "default") -> None:
        """An object of any kind; a pod with its grace period."""
        self._runner.run(self._objects.delete(api_version, kind, name, namespace))
        self.settle()

    def end(self, pod: str, *, code: int = 0, container: str = "", namespace: str = "default") -> None:
        """A container ends by itself with this exit code; an init container too. Without a name it is the one that
        runs. Raises LookupError when it does not run, ValueError when several could be meant, and for a code that is
        not one of 0 to 255."""
        if code not in range(256):
            raise ValueError(f"an exit code is a number from 0 to 255, not {code!r}")
        self._on_container(partial(containers.end, code=code, reason=""), pod, container, namespace)

    def crash(self, pod: str, *, oom: bool = False, container: str = "", namespace: str = "default") -> None:
        """A container ends with exit code 1, or with `oom` is killed as one that took too much memory. Raises as
        `end`."""
        code, reason = (137, "OOMKilled") if oom else (1, "")
        self._on_container(partial(containers.end, code=code, reason=reason), pod, container, namespace)

    def unready(self, pod: str, *, container: str = "", namespace: str = "default") -> None:
        """The container's readiness probe fails from now on, until `ready` or a restart: time has to pass for as many
        periods as the probe says. Raises as `end`, and ValueError for one that has no readiness probe."""
        self._on_container(partial(containers.answer_readiness, ready=False), pod, container, namespace)

    def ready(self, pod: str, *, container: str = "", namespace: str = "default") -> None:
        """Its readiness probe succeeds again. Raises as `unready`."""
        self._on_container(partial(containers.answer_readiness, ready=True), pod, container, namespace)

    def _on_container(self, move: Callable[..., None], pod: str, container: str, namespace: str) -> None:
        async def moved() -> None:
            move(self.runtimes(), await self.client.get(Pod, pod, namespace), container)

        self._runner.run(moved())
        self.settle()

    def load(
        self, pod: str, *, cpu: Curve = 0.0, memory: Curve = 0.0, container: str = "", namespace: str = "default"
    ) -> None:
        """What the containers of the pod, or of pods whose names begin with it and a dash, use from now on, each of
        them; with `container`, those of this name."""
        self._runner.run(self._load(namespace, pod, container, cpu, memory))
        self.settle()

    def lose_node(self, name: str) -> None:
        """Nothing is heard of the node from now on: its kubelet has ended, as when the machine lost its network. Its
        containers go on. After 50 seconds without a sign it is NotReady; pods leave it five minutes later."""
        self._runner.run(self._node(name).lose())
        self.settle()

    def restore_node(self, name: str) -> None:
        """It is there again, with the containers that it had."""
        self._runner.run(self._node(name).restore())
        self.settle()

    def _node(self, name: str) -> ClusterNode:
        found = next((node for node in self._composed.all_nodes if node.name == name), None)
        if found is None:
            raise LookupError(f"no node {name}; there are: {', '.join(node.name for node in self._composed.all_nodes)}")
        return found

    def runtimes(self) -> tuple[SimulatedRuntime, ...]:
        """What runs the containers of each node: calls can be made to fail or to take longer."""
        found = (node.backend.runtime for node in self._composed.all_nodes)
        return tuple(runtime for runtime in found if isinstance(runtime, SimulatedRuntime))

    async def _load(self, namespace: str, pod: str, container: str, cpu: Curve, memory: Curve) -> None:
        if self._loads is None:
            self._loads = Loads(self.runtimes, self._virtual)
        self._loads.add(namespace, pod, container, cpu, memory)

    # ------------------------------------------------------------------ what a test sees

    def pod(self, name: str, namespace: str = "default") -> PodView:
        """Raises ApiError 404 when there is none."""
        return PodView(self._runner.run(self.client.get(Pod, name, namespace)))

    def get(self, api_version: str, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """An object of any kind, as JSON has it. Raises ApiError 404 when there is none."""
        return self._runner.run(self._objects.get(api_version, kind, name, namespace))

    def pods(self, namespace: str = "default") -> list[PodView]:
        return [PodView(item) for item in self._runner.run(self.client.list(Pod, namespace)).items]

    def events(self, name: str = "", *, namespace: str = "default") -> list[EventView]:
        """Events about objects of this name, or all of the namespace, oldest first."""
        found = [EventView(event) for event in self._runner.run(self.client.list(Event, namespace)).items]
        return sorted((event for event in found if name in ("", event.about)), key=lambda event: event.revision)

    def kubeconfig_of(self, account: str, *, namespace: str = "default") -> Path:
        """A kubeconfig file of a service account, for a client that may do what RBAC lets the account do."""
        token = self._runner.run(self._objects.token(account, namespace))
        admin = load([self.kubeconfig])
        access = Access(admin.server, admin.authorities, token=token, namespace=namespace)
        path = self.kubeconfig.with_name(f"kubeconfig-{namespace}-{account}")
        write_atomic(path, kubeconfig_edit.standalone(f"{namespace}-{account}", access))
        return path

    def nodes(self) -> list[Node]:
        return list(self._runner.run(self.client.list(Node)).items)

    def settle(self) -> None:
        """Come to rest: nothing is left to do until time moves. What clients do from outside is not waited for.

        At rest means that no task can run and nothing has arrived from a client; what waits for a timer, such as a
        retry or a container that takes its time, is at rest.
        """
        self._runner.run(self._virtual.settle())

    def wait_for(
        self,
        name: str,
        holds: Callable[[PodView], bool] | None = None,
        *,
        phase: str = "",
        namespace: str = "default",
        within: float = LONGEST,
    ) -> PodView:
        """Move time, a second at a time, until the pod is as wanted; NeverHappened after `within` seconds of it."""

        def wanted(pod: PodView) -> bool:
            return phase in ("", pod.phase) and (holds is None or holds(pod))

        self.settle()
        end, pod = self.clock.elapsed + within, self.pod(name, namespace)
        while not wanted(pod) and self.clock.elapsed < end:
            self.clock.advance(STEP)
            pod = self.pod(name, namespace)
        if wanted(pod):
            return pod
        shown = json.dumps(pod.document["status"], indent=1)
        raise NeverHappened(f"pod {name} is not as it was waited for after {within:g} s: {shown}")


def _sizes(nodes: int | Sequence[Mapping[str, str]]) -> list[ResourceList]:
    """The sizes of each node. Raises ValueError for what is neither a number of nodes nor their sizes."""
    sizes = [{}] * nodes if isinstance(nodes, int) and nodes >= 0 else nodes
    if isinstance(sizes, int | str) or not all(isinstance(size, Mapping) for size in sizes):
        raise ValueError(f'nodes is a number, or the size of each such as [{{"cpu": "16"}}, {{}}], not {nodes!r}')
    return [{_sized(name): Quantity.parse(amount) for name, amount in size.items()} for size in sizes]


def _sized(name: str) -> str:
    """Raises ValueError for a name that no node counts."""
    if name not in NODE_RESOURCES and "/" not in name and not name.startswith("hugepages-"):
        known = ", ".join(NODE_RESOURCES)
        raise ValueError(f'a node has no "{name}": it has {known}, hugepages-SIZE, and others as DOMAIN/NAME')
    return name
