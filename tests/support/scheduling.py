"""The scheduler beside a real API server, time moved by hand."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.core.features import FeatureGates
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring
from podfit.net.metrics import Metrics
from podfit.scheduler.scheduler import NAME, Profile, Scheduler
from support.background import beside
from support.clock import FakeClock
from support.server import Server, running_server
from support.untaint import untaint


class World:
    def __init__(self, server: Server, clock: FakeClock, metrics: Metrics, recorder: EventRecorder) -> None:
        self.server, self.clock, self.client = server, clock, server.client
        self.metrics, self.recorder = metrics, recorder

    async def node(
        self,
        name: str,
        cpu: str = "2",
        memory: str = "8Gi",
        *,
        labels: dict[str, str] | None = None,
        extra: dict[str, str] | None = None,
        features: tuple[str, ...] = (),
        **spec: Any,
    ) -> None:
        document = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
        await self.client.create(convert(document, Node))
        await untaint(self.client, name, taints=spec.get("taints", ()))
        await self.allocatable(name, cpu=cpu, memory=memory, pods="110", **(extra or {}), features=features)

    async def allocatable(self, name: str, *, features: tuple[str, ...] = (), **amounts: str) -> None:
        status: dict[str, Any] = {"allocatable": amounts, "capacity": amounts}
        if features:
            status["declaredFeatures"] = features
        await self.client.patch(Node, name, "", {"status": status}, subresource="status")

    async def pod(
        self,
        name: str,
        cpu: str = "1",
        *,
        memory: str = "",
        labels: dict[str, str] | None = None,
        owners: Sequence[Mapping[str, Any]] = (),
        **spec: Any,
    ) -> Pod:
        requests = {"cpu": cpu} | ({"memory": memory} if memory else {})
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        metadata = {"name": name, "namespace": "default", "labels": labels or {}, "ownerReferences": owners}
        document = {"metadata": metadata, "spec": {"containers": [container], **spec}}
        return await self.client.create(convert(document, Pod))

    async def resize(self, name: str, cpu: str, **others: str) -> None:
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, **others}}}]}}
        await self.client.patch(Pod, name, "default", patch, subresource="resize")

    async def status(self, name: str, status: dict[str, Any]) -> None:
        await self.client.patch(Pod, name, "default", {"status": status}, subresource="status")

    async def report(self, name: str, cpu: str, *conditions: dict[str, str], memory: str = "") -> None:
        """What the node says it has allocated and enforces."""
        held = {"cpu": cpu} | ({"memory": memory} if memory else {})
        status = {
            "name": "c",
            "image": "i",
            "imageID": "i",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {}},
            "allocatedResources": held,
            "resources": {"requests": held},
        }
        await self.status(name, {"phase": "Running", "containerStatuses": [status], "conditions": list(conditions)})

    async def placed(self, name: str) -> str:
        return (await self.client.get(Pod, name, "default")).spec.node_name

    async def until(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        """The pod, which is so when the cluster is at rest."""
        await self.clock.settle()
        pod = await self.client.get(Pod, name, "default")
        assert holds(pod), f"{name} never got there"
        return pod

    async def waits(self, name: str) -> str:
        """The reason on a pod that fits nowhere."""
        pod = await self.until(name, lambda pod: bool(pod.status.conditions))
        return pod.status.conditions[0].message

    async def rest(self) -> None:
        """Let everything happen that can without time passing."""
        await self.clock.settle()

    async def stays(self, name: str) -> None:
        """Nothing that happened let the pod in, and nothing that passes with time will."""
        await self.rest()
        await self.clock.advance(15)
        await self.rest()
        assert await self.placed(name) == ""

    async def events(self, namespace: str = "default") -> list[tuple[str, str]]:
        await self.rest()
        return [(event.reason, event.message) for event in (await self.client.list(Event, namespace)).items]

    def attempts(self, result: str) -> float:
        labels = {"result": result, "profile": NAME}
        return self.metrics.registry.get_sample_value("scheduler_schedule_attempts_total", labels) or 0.0


@asynccontextmanager
async def running_scheduler(
    directory: Path,
    profiles: Mapping[str, Mapping[str, int]] = MappingProxyType({NAME: MappingProxyType({})}),
    fit: Mapping[str, FitScoring] = MappingProxyType({}),
    spread: Mapping[str, SpreadDefaulting] = MappingProxyType({}),
) -> AsyncIterator[World]:
    """With the weights of each of its profiles, and how it scores resources and spreads by default where that is not
    as upstream's default; the world's recorder is the first one's."""
    clock, metrics = FakeClock(), Metrics()
    async with running_server(directory, clock=clock) as server:
        client = server.as_user("system:kube-scheduler")
        recorders = {name: EventRecorder(client, component=name, clock=clock) for name in profiles}
        given = [
            Profile(recorders[name], name, weights, fit.get(name, LEAST_ALLOCATED), spread.get(name, SYSTEM_DEFAULTING))
            for name, weights in profiles.items()
        ]
        informers = Informers(client, clock)
        scheduler = Scheduler(client, informers, profiles=given, clock=clock, gates=FeatureGates(), metrics=metrics)
        runs = [informers.run(), scheduler.run(), *(recorder.run() for recorder in recorders.values())]
        async with beside(*runs):
            yield World(server, clock, metrics, next(iter(recorders.values())))
