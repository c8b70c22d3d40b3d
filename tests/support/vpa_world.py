"""The recommender beside a real API server, with usage that a test says and time that a test moves."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.autoscaling_k8s.v1 import (
    RecommendedContainerResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
)
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.owners import reference_to
from podfit.client.rest import MERGE_PATCH
from podfit.client.vpa_kinds import CHECKPOINTS, VPAS
from podfit.core.times import format_time
from podfit.net.wire import Handler, Request, Response
from podfit.vpa.history.past_usage import ReadPast
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.recommender.starting import PastSource
from support.clock import FakeClock
from support.server import Server, running_server

GROUP = "metrics.k8s.io"
PODS = f"/apis/{GROUP}/v1beta1/pods"
DEFINITIONS = (files("podfit.api") / "manifests" / "verticalpodautoscalers.yaml").read_text()
NAMESPACE = "default"
Usage = dict[str, dict[str, tuple[str, str]]]
"""By pod and container: CPU and memory."""


@dataclass
class MetricsServer:
    """A metrics API whose samples are of the present, and which can be away."""

    clock: FakeClock
    there: bool = True
    used: Usage = field(default_factory=dict)
    beside: dict[str, Handler] = field(default_factory=dict)
    """Other services."""

    def find(self, service: ServiceReference) -> Handler | None:
        return self.answer if service.name == "metrics-server" else self.beside.get(service.name)

    async def answer(self, request: Request) -> Response:
        if not self.there:
            raise ConnectionRefusedError("connection refused")
        items = [self._item(name, containers) for name, containers in self.used.items()]
        body: dict[str, Any] = {"kind": "PodMetricsList", "metadata": {}, "items": items}
        if request.path not in (PODS, f"/apis/{GROUP}/v1beta1/namespaces/{NAMESPACE}/pods"):
            body = {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1beta1", "resources": []}
        return Response(200, {"content-type": "application/json"}, json.dumps(body).encode())

    def _item(self, name: str, containers: dict[str, tuple[str, str]]) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "timestamp": format_time(self.clock.now()),
            "window": "15s",
            "containers": [
                {"name": container, "usage": {"cpu": cpu, "memory": memory}}
                for container, (cpu, memory) in containers.items()
            ],
        }


class World:
    def __init__(self, server: Server, clock: FakeClock, usage: MetricsServer) -> None:
        self.server, self.client, self.clock, self.usage = server, server.client, clock, usage
        self.recommender: Recommender | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, history: ReadPast | None = None, **settings: Any) -> Recommender:
        self.recommender = Recommender(
            self.client,
            clock=self.clock,
            settings=RecommenderSettings(**settings),
            history=PastSource(read=history) if history is not None else None,
        )
        await self.run(self.recommender.run())
        return self.recommender

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Until the end of the test."""
        self._tasks.append(asyncio.create_task(work))
        await self.clock.settle()

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def minutes(self, number: int) -> None:
        await self.clock.advance(60.0 * number)

    async def deployment(self, name: str, **metadata: Any) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        document = {"metadata": {"name": name, "namespace": NAMESPACE, **metadata}, "spec": spec}
        await self.client.create(convert(document, Deployment))

    async def pod(
        self,
        name: str,
        app: str,
        *containers: str,
        memory: str = "300Mi",
        owner: str = "",
        restart: bool = False,
        sidecar: str = "",
        **status: Any,
    ) -> None:
        """One that runs; `owner` is its ReplicaSet. With `restart` another size of memory restarts its containers."""
        resources = {"requests": {"cpu": "100m", "memory": memory}}
        every: list[dict[str, Any]] = [
            {"name": container, "image": "i", "resources": resources} for container in containers or ("app",)
        ]
        if restart:
            policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
            every = [{**container, "resizePolicy": policy} for container in every]
        metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "labels": {"app": app}}
        if owner:
            metadata["ownerReferences"] = [await self.reference(ReplicaSet, owner)]
        spec = {"containers": every, "nodeName": "n", "tolerations": [{"operator": "Exists"}]}
        if sidecar:
            beside = {"name": sidecar, "image": "i", "resources": resources, "restartPolicy": "Always"}
            spec["initContainers"] = [{"name": "setup", "image": "i"}, beside]
        await self.client.create(convert({"metadata": metadata, "spec": spec}, Pod))
        await self.report(name, phase="Running", **status)

    async def node(self) -> None:
        """The one that pods are bound to."""
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        made = await self.client.create(convert({"metadata": {"name": "n"}}, Node))
        status = NodeStatus(capacity=convert(amounts, ResourceList), allocatable=convert(amounts, ResourceList))
        await self.client.update_status(replace(made, status=status))

    async def replicaset(self, name: str, app: str, replicas: int) -> None:
        """Of the Deployment `app`."""
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        owner = await self.reference(Deployment, app)
        metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
        await self.client.create(convert({"metadata": metadata, "spec": spec}, ReplicaSet))

    async def reference(self, kind: type[Deployment] | type[ReplicaSet], name: str) -> dict[str, Any]:
        """To a controller that is there."""
        found: dict[str, Any] = to_dict(reference_to(await self.client.get(kind, name, NAMESPACE)))
        return found

    async def annotate_vpa(self, name: str, annotations: dict[str, str]) -> None:
        patch = {"metadata": {"annotations": annotations}}
        await self.client.patch(VPAS, name, NAMESPACE, patch, content_type=MERGE_PATCH)
        await self.clock.settle()

    async def recommend(
        self,
        name: str,
        cpu: str,
        memory: str,
        container: str = "app",
        *,
        bounds: tuple[dict[str, str], dict[str, str]] | None = None,
    ) -> None:
        """As a recommender says it, with bounds at the target where none are given."""
        amounts = {"cpu": cpu, "memory": memory}
        lower, upper = bounds or (amounts, amounts)
        recommendation = {"containerName": container, "target": amounts, "lowerBound": lower, "upperBound": upper}
        condition = {"type": "RecommendationProvided", "status": "True"}
        status = {"recommendation": {"containerRecommendations": [recommendation]}, "conditions": [condition]}
        await self.say_status(name, status)

    async def say_status(self, name: str, status: dict[str, Any]) -> None:
        """Of a VPA, as another recommender would."""
        await self.client.patch(
            VPAS, name, NAMESPACE, {"status": status}, content_type=MERGE_PATCH, subresource="status"
        )
        await self.clock.settle()

    async def requests(self) -> dict[str, tuple[str, str]]:
        """By pod: CPU and memory of its first container."""
        pods = (await self.client.list(Pod, NAMESPACE)).items
        asked = {pod.metadata.name: pod.spec.containers[0].resources.requests for pod in pods}
        return {name: (str(amounts["cpu"]), str(amounts["memory"])) for name, amounts in asked.items()}

    async def events(self) -> list[tuple[str, str]]:
        """Of whom, and why."""
        found = (await self.client.list(Event, NAMESPACE)).items
        return sorted((f"{event.involved_object.kind}/{event.involved_object.name}", event.reason) for event in found)

    async def report(self, name: str, **status: Any) -> None:
        await self.client.patch(Pod, name, NAMESPACE, {"status": status}, subresource="status")
        await self.clock.settle()

    async def vpa(self, name: str, target: dict[str, str] | None = None, **spec: Any) -> None:
        target = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        document = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"targetRef": target, **spec}}
        await self.client.create_in(VPAS, convert(document, VerticalPodAutoscaler))
        await self.clock.settle()

    async def seen(self, name: str) -> VerticalPodAutoscaler:
        return await self.client.get(VPAS, name, NAMESPACE)

    async def sizes(self, name: str) -> dict[str, RecommendedContainerResources]:
        found = (await self.seen(name)).status.recommendation
        return {
            recommendation.container_name: recommendation
            for recommendation in (found.container_recommendations if found else ())
        }

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        return {
            condition.type: (condition.status, condition.message)
            for condition in (await self.seen(name)).status.conditions
        }

    async def checkpoints(self) -> dict[str, VerticalPodAutoscalerCheckpoint]:
        return {
            checkpoint.metadata.name: checkpoint
            for checkpoint in (await self.client.list(CHECKPOINTS, NAMESPACE)).items
        }


@asynccontextmanager
async def recommending(directory: Path) -> AsyncIterator[World]:
    """Without a recommender: a test starts it."""
    clock = FakeClock()
    usage = MetricsServer(clock)
    async with running_server(directory, clock=clock, services=usage.find) as server:
        for document in yaml.safe_load_all(DEFINITIONS):
            await server.client.create(convert(document, CustomResourceDefinition))
        service = {"namespace": "kube-system", "name": "metrics-server"}
        spec = {"group": GROUP, "version": "v1beta1", "service": service, "insecureSkipTLSVerify": True}
        priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
        document = {"metadata": {"name": f"v1beta1.{GROUP}"}, "spec": {**spec, **priorities}}
        await server.client.create(convert(document, APIService))
        await clock.settle()
        world = World(server, clock, usage)
        await world.node()
        try:
            yield world
        finally:
            await world.stop()
