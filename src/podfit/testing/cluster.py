"""The cluster of a test: started in well under a second, gone with the test, driven by a clock that only a test moves.

It is the cluster of `podfit up` with a store in memory and simulated nodes. The API server listens on loopback as well,
so that any client can be tested against it; the test's own calls wait until the cluster has come to rest.
"""

import gc
import json
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias, TypeVar

import yaml

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.registry import ResourceInfo, resources
from podfit.client.resource import dynamic
from podfit.client.rest import APPLY_PATCH, Client
from podfit.core.errors import ApiError
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.net.event_loop import COLLECT
from podfit.net.system import SeededRandom, SystemRandom
from podfit.process.apiserver import OpenStore
from podfit.process.data_dir import DataDir
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.stores import passing_store
from podfit.process.up import Cluster as Composed
from podfit.testing.clock import VirtualClock
from podfit.testing.load import Curve, Loads
from podfit.testing.runner import Runner
from podfit.testing.views import PodView

T = TypeVar("T")
Manifest: TypeAlias = Mapping[str, Any] | str | Path
STEP, LONGEST = 1.0, 300.0


class NeverHappened(AssertionError):
    """What a test waited for did not come true; the message shows the pod as it was last seen."""


class Clock:
    """The cluster's time. It stands still except while `advance` runs."""

    def __init__(self, runner: Runner, virtual: VirtualClock) -> None:
        self._runner, self._virtual = runner, virtual

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> None:
        """Let this much time pass, and everything happen that happens in it."""
        before = gc.get_threshold()
        gc.set_threshold(*COLLECT)  # looking for garbage every 700 objects would be a fifth of the work
        try:
            self._runner.run(self._virtual.advance(seconds + 60 * minutes + 3600 * hours), seconds=600)
        finally:
            gc.set_threshold(*before)

    def jump(self, seconds: float) -> None:
        """Set the time of day, forward or back. No time passes: what is due in a minute stays due in a minute."""
        self._virtual.jump(seconds)

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
        nodes: int = 1,
        vpa: bool = False,
        seed: int | None = None,
        store: OpenStore = passing_store,
    ) -> None:
        self._runner = Runner()
        self._virtual = VirtualClock()
        self._random = SystemRandom() if seed is None else SeededRandom(seed)
        self.clock = Clock(self._runner, self._virtual)
        options = UpOptions(
            api=ApiServerOptions(data=DataDir.at(directory), port=0, kubeconfig=directory / "kubeconfig"),
            node=NodeKind.SIMULATED,
            nodes=nodes,
            vpa=vpa,
        )
        try:
            self._composed = self._runner.run(self._start(options, store))
        except BaseException:
            self._runner.close()
            raise
        self.url, self.kubeconfig = self._composed.server, directory / "kubeconfig"
        self.client: Client = self._composed.admin_local()
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
            for document in _documents(manifest):
                self._runner.run(self._apply(document, namespace))
                self.settle()  # what controllers make of it, such as a namespace's service account, the next may need

    async def _apply(self, document: dict[str, Any], namespace: str) -> None:
        info = await self._resource(document)
        meta = document.get("metadata", {})
        path = info.path(meta.get("namespace", namespace) if info.namespaced else "", meta.get("name", ""))
        await self.client.request(
            "PATCH",
            path,
            json.dumps(document).encode(),
            query={"fieldManager": "podfit-testing", "force": "true"},
            content_type=APPLY_PATCH,
        )

    async def _resource(self, document: Mapping[str, Any]) -> ResourceInfo:
        """Of a built-in kind, or of one that this cluster declares, as its discovery tells."""
        if (built_in := _built_in(document)) is not None:
            return built_in
        await self._virtual.settle()  # a definition just applied may not be served yet
        group, _, version = str(document.get("apiVersion", "")).rpartition("/")
        try:
            told = json.loads(await self.client.request("GET", f"/apis/{group}/{version}"))["resources"]
        except ApiError as error:
            if error.code != 404:
                raise
            told = []
        for resource in told:
            if resource["kind"] == document.get("kind") and "/" not in resource["name"]:
                return dynamic(group, version, resource["name"], namespaced=resource["namespaced"]).info
        raise LookupError(f"this cluster does not serve {document.get('apiVersion')} {document.get('kind')}")

    def resize(self, name: str, *, namespace: str = "default", **containers: Mapping[str, Any]) -> None:
        """`resize("web", app={"requests": {"cpu": "1"}})`: containers by name with their new resources."""
        patch = {"spec": {"containers": [{"name": container, "resources": to} for container, to in containers.items()]}}
        self._runner.run(self.client.patch(Pod, name, namespace, patch, subresource="resize"))
        self.settle()

    def delete(self, name: str, *, namespace: str = "default") -> None:
        """A pod, with its grace period."""
        self._runner.run(self.client.delete(Pod, name, namespace))
        self.settle()

    def load(self, pod: str, *, cpu: Curve = 0.0, memory: Curve = 0.0, namespace: str = "default") -> None:
        """What the containers of the pod, or of pods whose names begin with it and a dash, use from now on."""
        self._runner.run(self._load(namespace, pod, cpu, memory))
        self.settle()

    def runtimes(self) -> tuple[SimulatedRuntime, ...]:
        """What runs the containers of each node: calls can be made to fail or to take longer."""
        found = (node.backend.runtime for node in self._composed.nodes)
        return tuple(runtime for runtime in found if isinstance(runtime, SimulatedRuntime))

    async def _load(self, namespace: str, pod: str, cpu: Curve, memory: Curve) -> None:
        if self._loads is None:
            self._loads = Loads(self.runtimes(), self._virtual)
        self._loads.add(namespace, pod, cpu, memory)

    # ------------------------------------------------------------------ what a test sees

    def pod(self, name: str, namespace: str = "default") -> PodView:
        """Raises ApiError 404 when there is none."""
        return PodView(self._runner.run(self.client.get(Pod, name, namespace)))

    def get(self, api_version: str, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """An object of any kind, as JSON has it. Raises ApiError 404 when there is none."""
        return self._runner.run(self._get({"apiVersion": api_version, "kind": kind}, name, namespace))

    async def _get(self, kind: Mapping[str, Any], name: str, namespace: str) -> dict[str, Any]:
        info = await self._resource(kind)
        found: dict[str, Any] = json.loads(
            await self.client.request("GET", info.path(namespace if info.namespaced else "", name))
        )
        return found

    def pods(self, namespace: str = "default") -> list[PodView]:
        return [PodView(item) for item in self._runner.run(self.client.list(Pod, namespace)).items]

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


def _documents(manifest: Manifest) -> list[dict[str, Any]]:
    if isinstance(manifest, Mapping):
        return [dict(manifest)]
    is_text = isinstance(manifest, str) and "\n" in manifest
    text = dedent(str(manifest)) if is_text else Path(manifest).read_text()
    return [document for document in yaml.safe_load_all(text) if document]


def _built_in(document: Mapping[str, Any]) -> ResourceInfo | None:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    wanted = group, version, document.get("kind")
    return next(
        (resource for resource in resources() if (resource.group, resource.version, resource.kind) == wanted), None
    )
