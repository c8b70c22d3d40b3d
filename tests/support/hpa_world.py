"""The horizontal pod autoscaler's controller alone beside a real API server: pods are objects with a status that a
test gives them, the three metrics APIs answer what it says, and time moves when it says so."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apiregistration.v1.types import APIService
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.informers import Informers
from podfit.client.pod_usage import PodUsages
from podfit.client.resource import Resource, dynamic
from podfit.client.rest import MERGE_PATCH
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.times import format_time
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.net.metrics import Metrics
from podfit.net.wire import Handler, Request, Response
from podfit.process.control.controllers import horizontal_autoscaling
from support.clock import FakeClock
from support.server import Server, running_server
from support.vpa_world import DEFINITIONS

Document = dict[str, Any]
VERSIONS = {"metrics.k8s.io": "v1beta1", "custom.metrics.k8s.io": "v1beta2", "external.metrics.k8s.io": "v1beta1"}
_KINDS = {
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "ReplicationController": ("v1", "replicationcontrollers"),
    "Gadget": ("x.example.com/v1", "gadgets"),
}
"""What may be scaled: its group and version, and its plural."""
_GADGET = {
    "metadata": {"name": "gadgets.x.example.com"},
    "spec": {
        "group": "x.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}


class MetricsApis:
    """`told` is what a scenario says: `pods` (containers and their usage), `custom` (items by their path below the
    namespace), `external` (values by name), `pods_error` (code, message, reason). `slow` are the seconds after which
    metrics of other namespaces are answered."""

    def __init__(self, clock: FakeClock, namespace: str) -> None:
        self._clock, self._namespace = clock, namespace
        self.told: Mapping[str, Any] = {}
        self.slow: Mapping[str, float] = {}
        self.asked: list[str] = []

    def find(self, service: ServiceReference) -> Handler | None:
        return self.answer if service.name in VERSIONS else None

    async def answer(self, request: Request) -> Response:
        self.asked.append(request.path)
        group, version, *rest = request.path.removeprefix("/apis/").split("/")
        if not rest:
            return _response(200, {"kind": "APIResourceList", "groupVersion": f"{group}/{version}", "resources": []})
        await self._clock.sleep(self.slow.get(rest[1] if rest[0] == "namespaces" else "", 0.0))
        path = "/".join(rest).removeprefix(f"namespaces/{self._namespace}/")
        if group == "metrics.k8s.io":
            return self._usage()
        told = self.told.get("custom" if group.startswith("custom") else "external", {})
        if path not in told:
            name = path.rpartition("/")[2]
            return _refusal(404, f"the server could not find the metric {name}", "NotFound")
        of = self._described if group.startswith("custom") else self._external
        items = [of(item, path) for item in told[path]]
        return _response(200, {"kind": "MetricValueList", "apiVersion": f"{group}/{version}", "items": items})

    def _usage(self) -> Response:
        if error := self.told.get("pods_error"):
            return _refusal(*error)
        then = format_time(self._clock.now() - timedelta(seconds=1))
        items = [
            {
                "metadata": {"name": name, "namespace": self._namespace},
                "timestamp": then,
                "window": "15s",
                "containers": [{"name": one, "usage": usage} for one, usage in pod["containers"].items()],
            }
            for name, pod in self.told.get("pods", {}).items()
        ]
        return _response(200, {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})

    def _described(self, item: Document, path: str) -> Document:
        reference = {key: value for key, value in item.items() if key != "value"}
        metric = {"name": path.rpartition("/")[2]}
        now = format_time(self._clock.now())
        return {"describedObject": reference, "metric": metric, "timestamp": now, "value": item["value"]}

    def _external(self, value: str, path: str) -> Document:
        return {"metricName": path, "metricLabels": {}, "timestamp": format_time(self._clock.now()), "value": value}


class HpaWorld:
    def __init__(self, server: Server, clock: FakeClock, metrics: MetricsApis, namespace: str) -> None:
        self.server, self.client, self.clock, self.metrics = server, server.client, clock, metrics
        self.namespace = namespace
        self.kind = "Deployment"
        self.exposed = Metrics()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, settings: Settings) -> None:
        self.exposed, informers = Metrics(), Informers(self.client, self.clock)
        usages = PodUsages(self.client, self.clock, lasting=settings.sync_period / 2)
        loops = horizontal_autoscaling(self.server.as_identity, informers, settings, self.clock, self.exposed, usages)
        for loop in (*loops, informers.run()):
            self.run(loop)
        await self.clock.settle()

    def run(self, loop: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(loop))

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def ago(self, seconds: float) -> str:
        return format_time(self.clock.now() - timedelta(seconds=seconds))

    # ------------------------------------------------------------------ objects

    async def target(self, given: Document) -> None:
        """`web`, with the selector `app=web` unless the scenario gives the status another."""
        self.kind, status = given["kind"], {"replicas": given["status_replicas"]}
        spec: Document = {"replicas": given["replicas"]}
        api, _ = _KINDS[self.kind]
        if self.kind == "Gadget":
            await self.client.create(convert(_GADGET, CustomResourceDefinition))
            await self.clock.settle()
            status["selector"] = given.get("selector", "app=web")
        else:
            labels = {"app": "web"}
            spec["selector"] = labels if self.kind == "ReplicationController" else {"matchLabels": labels}
            spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
        metadata = {"name": "web", "namespace": self.namespace}
        made = {"apiVersion": api, "kind": self.kind, "metadata": metadata, "spec": spec}
        await self.client.create_in(self._resource, made)
        await self._patch({"status": status}, subresource="status")

    @property
    def _resource(self) -> Resource[Document]:
        api, plural = _KINDS[self.kind]
        group, _, version = api.rpartition("/")
        return dynamic(group, version, plural)

    async def _patch(self, patch: Document, subresource: str = "") -> None:
        await self.client.patch(
            self._resource, "web", self.namespace, patch, content_type=MERGE_PATCH, subresource=subresource
        )

    async def scale(self, replicas: int) -> None:
        """As a person does."""
        await self._patch({"spec": {"replicas": replicas}})

    async def replicas(self) -> int:
        """-1 where there is no target."""
        try:
            return int((await self.client.get(self._resource, "web", self.namespace))["spec"]["replicas"])
        except ApiError as error:
            if error.code != 404:
                raise
            return -1

    async def pod(self, given: Document) -> None:
        """With the status that the scenario says."""
        metadata: Document = {"name": given["name"], "namespace": self.namespace, "labels": given["labels"]}
        if given["deleted"]:
            metadata["finalizers"] = ["example.com/held"]
        spec: Document = {
            "containers": [
                {"name": one["name"], "image": "i", "resources": {"requests": one.get("requests") or {}}}
                for one in given["containers"]
            ]
        }
        if given.get("pod_requests"):
            spec["resources"] = {"requests": given["pod_requests"]}
        await self.client.create(convert({"metadata": metadata, "spec": spec}, Pod))
        status: Document = {"phase": given["phase"]}
        if given["start"]:
            status["startTime"] = self.ago(given["age"])
        if given["ready"] is not None:
            turned = self.ago(given["transition_age"])
            status["conditions"] = [{"type": "Ready", "status": given["ready"], "lastTransitionTime": turned}]
        await self.client.patch(Pod, given["name"], self.namespace, {"status": status}, subresource="status")
        if given["deleted"]:
            await self.client.delete(Pod, given["name"], self.namespace)

    async def define_vpas(self) -> None:
        for document in yaml.safe_load_all(DEFINITIONS):
            await self.client.create(convert(document, CustomResourceDefinition))
        await self.clock.settle()

    async def vpa(self, mode: str, policies: list[Document]) -> None:
        """Of the Deployment `web`."""
        spec = {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": mode},
            "resourcePolicy": {"containerPolicies": policies},
        }
        document = {"metadata": {"name": "web", "namespace": self.namespace}, "spec": spec}
        await self.client.create_in(VPAS, convert(document, VerticalPodAutoscaler))

    async def node(self, name: str, cpu: str) -> None:
        """All pods that are there run on it."""
        await self.client.create(convert({"metadata": {"name": name}}, Node))
        has = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        status = {"capacity": has, "allocatable": has}
        await self.client.patch(Node, name, "", {"status": status}, subresource="status")
        for pod in (await self.client.list(Pod, self.namespace)).items:
            await self.client.bind(self.namespace, pod.metadata.name, name)

    async def autoscaler(self, name: str, spec: Document, **metadata: Any) -> None:
        document = {"metadata": {"name": name, "namespace": self.namespace, **metadata}, "spec": spec}
        await self.client.create(convert(document, HorizontalPodAutoscaler))

    async def change(self, name: str, spec: Document) -> None:
        await self.client.patch(HorizontalPodAutoscaler, name, self.namespace, {"spec": spec}, content_type=MERGE_PATCH)

    # ------------------------------------------------------------------ what is seen

    async def statuses(self) -> Document:
        """By the autoscaler's name."""
        found = (await self.client.list(HorizontalPodAutoscaler, self.namespace)).items
        return {autoscaler.metadata.name: to_dict(autoscaler.status) for autoscaler in found}

    async def status(self, name: str = "web") -> Document:
        found: Document = (await self.statuses())[name]
        return found

    async def condition(self, type_: str, name: str = "web") -> tuple[str, str, str]:
        """Status, reason and message."""
        status = await self.status(name)
        found = next(one for one in status["conditions"] if one["type"] == type_)
        return found["status"], found["reason"], found["message"]

    async def events(self) -> set[tuple[str, str, str, str]]:
        """Of which autoscaler, type, reason, message."""
        found = (await self.client.list(Event, self.namespace)).items
        return {
            (event.involved_object.name, event.type, event.reason, event.message)
            for event in found
            if event.involved_object.kind == "HorizontalPodAutoscaler"
        }


@asynccontextmanager
async def autoscaling(
    directory: Path, *, namespace: str = "shop", gates: Mapping[str, bool] | None = None
) -> AsyncIterator[HpaWorld]:
    """Without a controller: a test starts it."""
    clock = FakeClock()
    metrics = MetricsApis(clock, namespace)
    enabled = FeatureGates(gates or {})
    async with running_server(directory, clock=clock, services=metrics.find, gates=enabled) as server:
        await server.namespace(namespace)
        for group, version in VERSIONS.items():
            service = {"namespace": "kube-system", "name": group}
            spec = {"group": group, "version": version, "service": service, "insecureSkipTLSVerify": True}
            priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
            document = {"metadata": {"name": f"{version}.{group}"}, "spec": {**spec, **priorities}}
            await server.client.create(convert(document, APIService))
        await clock.settle()
        world = HpaWorld(server, clock, metrics, namespace)
        try:
            yield world
        finally:
            await world.stop()


def _response(code: int, body: Document) -> Response:
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode())


def _refusal(code: int, message: str, reason: str) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return _response(code, {**body, "message": message, "reason": reason, "code": code})
