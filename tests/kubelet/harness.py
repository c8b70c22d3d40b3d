"""A kubelet between a fake API and a fake runtime, moved on by a clock that the test holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubelet.fake_reach import FakeReach
from kubelet.fake_runtime import FakeCgroups, FakeRuntime
from kubelet.node_api import Document, NodeApi
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.node.options import KubeletOptions
from podfit.decide.node.pressure import Observation
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import DirectoryMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.managers.config import ManagersConfig
from podfit.net.wire import Identity, Request
from support.clock import FakeClock

IDENTITY = Identity("system:node:n1", ("system:nodes", "system:authenticated"))
NO_MANAGERS = ManagersConfig()
MACHINE = Machine(memory=4 << 30)


class Node:
    """`kubelet` can be dropped and started again on the same runtime and directory, as after a crash."""

    def __init__(
        self, root: Path, *, cpu: str = "4", managers: ManagersConfig = NO_MANAGERS, machine: Machine = MACHINE
    ) -> None:
        self.clock = FakeClock()
        self.api = NodeApi()
        self.make_machine()
        self.reach = FakeReach()
        amounts = {"cpu": cpu, "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"}
        size = {name: Quantity.parse(amount) for name, amount in amounts.items()}
        self.config = KubeletConfig(
            name="n1",
            root=root,
            host_ip="10.0.0.1",
            capacity=size,
            allocatable=size,
            port=10250,
            managers=managers,
            options=KubeletOptions(pod_manifest_path=str(root.parent / "manifests")),
        )
        self.signals: dict[str, Observation] = {}
        self.machine = machine
        self.client = Client(Local(self.api, IDENTITY))
        self.kubelet = self._kubelet()

    def make_machine(self) -> None:
        """What the kubelet drives; another machine is another class."""
        self.cgroups = FakeCgroups()
        self.runtime = FakeRuntime(self.clock, self.cgroups)

    def restarted(self) -> None:
        """Of another configuration; before the start."""
        self.kubelet = self._kubelet()

    def use(self, client: Client) -> None:
        """Speak to another API server; before the start."""
        self.client = client
        self.kubelet = self._kubelet()

    def _kubelet(self) -> Kubelet:
        return Kubelet(
            client=self.client,
            runtime=self.runtime,
            cgroups=self.cgroups,
            config=self.config,
            machine=self.machine,
            mounter=DirectoryMounter(),
            clock=self.clock,
            reach=self.reach,
            runtime_name="fake",
            observe=lambda: self.signals,
        )

    async def start(self) -> None:
        await self.kubelet.start()

    async def crash(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The kubelet is gone without a word; the machine goes on. `meanwhile` happens before the next one reads."""
        await self.kubelet.stop(stop_pods=False)
        meanwhile()
        self.kubelet = self._kubelet()

    async def until(self, holds: Callable[[], Any], what: str = "") -> None:
        """The condition holds when all has happened that can happen without moving time."""
        await self.rest()
        assert holds(), what or "it never came true"

    async def rest(self) -> None:
        """Let everything happen that can happen now, in threads too."""
        await self.clock.settle()

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.rest()

    def request(self, path: str, **query: str) -> Request:
        return Request("GET", path, {name: (value,) for name, value in query.items()}, identity=IDENTITY)

    async def ask(self, path: str, **query: str) -> tuple[int, str]:
        """A request to the node's own server."""
        answer = await self.kubelet.handler(self.request(path, **query))
        return answer.status, (await answer.read()).decode()

    # ------------------------------------------------------------------ pods

    def add(
        self, name: str = "web", *, uid: str = "", phase: str = "Pending", qos: str = "Burstable", **spec: Any
    ) -> Document:
        spec = {"nodeName": "n1", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, **spec}
        spec.setdefault("containers", [container("c1")])
        meta = {"name": name, "namespace": "default", "uid": uid or name, "generation": 1}
        return self.api.put(
            "pods",
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": meta,
                "spec": spec,
                "status": {"phase": phase, "qosClass": qos},
            },
        )

    def phase(self, name: str = "web") -> str:
        return str(self.api.status(name).get("phase", ""))

    def state(self, name: str = "web", which: str = "c1") -> Document:
        """The status of one container."""
        status = self.api.status(name)
        known = (*status.get("containerStatuses", []), *status.get("initContainerStatuses", []))
        return next((status for status in known if status["name"] == which), {})

    def condition(self, kind: str, name: str = "web") -> Document | None:
        return next(
            (condition for condition in self.api.status(name).get("conditions", []) if condition["type"] == kind), None
        )

    async def runs(self, name: str = "web") -> None:
        await self.until(lambda: self.phase(name) == "Running", f"{name} never ran: {self.api.status(name)}")
        await self.rest()


def container(name: str, **more: Any) -> Document:
    plain = {"image": "app:1", "imagePullPolicy": "IfNotPresent", "resources": {"requests": {"cpu": "100m"}}}
    return {"name": name, **plain, **more}
