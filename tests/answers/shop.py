"""A random namespace of pods, several resizes planned together for it, and what then happens.

The deeds follow the plan as `podfit resize` does: in its order, and a pod that gives up room is waited for. Then pods
leave, on both sides, and what that grants is compared as well.
"""

import random
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol, TypeVar

from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, Target
from podfit.answers.node.live_node import live_node
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import PodRequest, plan_requests
from podfit.answers.plan.resize_request import ResizeRequest, apply
from podfit.answers.plan.result import DEFERRED, FITS, INFEASIBLE, REFUSED, UNCHANGED, Plan
from podfit.answers.plan.several_targets import merged
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity

T = TypeVar("T")
Outcome = tuple[str, str, frozenset[str]]
"""Verdict, its text unless it fits, and the containers that were restarted."""


class World(Protocol):
    """A cluster whose nodes are named, and how to wait until nothing happens any more in a namespace."""

    nodes: list[str]
    container: dict[str, Any]
    client: Client

    def run(self, work: Coroutine[Any, Any, T]) -> T: ...

    def settle(self, namespace: str) -> None: ...


def classes(world: World) -> None:
    """The priority classes that pods name."""
    for name, value in (("low", 10), ("high", 1000)):
        world.run(world.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass)))


class Shop:
    """A namespace with up to 12 pods, and requests for some of them, all from one seed."""

    def __init__(self, seed: int, world: World) -> None:
        self.random, self.world, self.client = random.Random(seed), world, world.client
        self.namespace = f"shop-{seed}"
        self.names: list[str] = []

    def prepare(self) -> None:
        self.world.run(self.client.create(convert({"metadata": {"name": self.namespace}}, Namespace)))
        self.world.settle(self.namespace)
        if self.random.random() < 0.2:
            hard = {"requests.cpu": self.random.choice(("5", "7"))}
            meta = {"name": "quota", "namespace": self.namespace}
            self.world.run(self.client.create(convert({"metadata": meta, "spec": {"hard": hard}}, ResourceQuota)))
            self.world.settle(self.namespace)
        used = self.random.randint(1, len(self.world.nodes))
        for number in range(self.random.randint(2, 12)):
            self._create(f"p{number}", self.world.nodes[self.random.randint(1, used) - 1])
        self.world.settle(self.namespace)

    def _create(self, name: str, node: str) -> None:
        pick = self.random.choice
        amounts = {"cpu": pick(("100m", "500m", "1", "1500m", "2")), "memory": pick(("64Mi", "200Mi"))}
        resources: dict[str, Any] = {"requests": amounts}
        if self.random.random() < 0.3:
            resources["limits"] = amounts
        policy = [
            {"resourceName": resource, "restartPolicy": pick(("NotRequired", "RestartContainer"))}
            for resource in ("cpu", "memory")
        ]
        container = {"name": "c", **self.world.container, "resources": resources, "resizePolicy": policy}
        spec: dict[str, Any] = {
            "nodeName": node,
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        }
        if self.random.random() < 0.4:
            spec["priorityClassName"] = pick(("low", "high"))
        pod = convert({"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}, Pod)
        try:
            self.world.run(self.client.create(pod))
        except ApiError:  # the quota has no room for it
            return
        self.world.settle(self.namespace)
        stored = self.world.run(self.client.get(Pod, name, self.namespace))
        if stored.status.phase == "Running":  # else its node has turned it away
            self.names.append(name)
        else:
            self.delete(name)

    def delete(self, name: str) -> None:
        self.world.run(self.client.delete(Pod, name, self.namespace))
        self.world.settle(self.namespace)

    def requests(self) -> dict[str, ResizeRequest]:
        pick = self.random.choice
        chosen = self.random.sample(self.names, self.random.randint(1, len(self.names)))
        return {
            name: ResizeRequest({"cpu": Amount(Quantity.parse(pick(("50m", "500m", "1", "1500m", "2", "3", "9"))))})
            for name in chosen
        }

    def look(self) -> Snapshot:
        reader = Reader(self.client, self.namespace)
        return merged([self.world.run(reader.read(Target(POD, name), usage=True)) for name in self.names])

    def deed(self, name: str, request: ResizeRequest) -> str:
        """What the API answers; empty when it takes the resize."""
        pod = self.world.run(self.client.get(Pod, name, self.namespace))
        try:
            self.world.run(self.client.update(apply(request, pod), subresource="resize"))
        except ApiError as error:
            return error.message
        return ""

    def became(self, name: str, restarts: int, refused: str, *, changed: bool) -> Outcome:
        if refused:
            return REFUSED, refused, frozenset()
        pod = self.world.run(self.client.get(Pod, name, self.namespace))
        pending = next((condition for condition in pod.status.conditions if condition.type == "PodResizePending"), None)
        if pending is not None:
            return {"Deferred": DEFERRED, "Infeasible": INFEASIBLE}[pending.reason], pending.message, frozenset()
        assert not any(condition.type == "PodResizeInProgress" for condition in pod.status.conditions), (
            pod.status.conditions
        )
        again = {status.name for status in pod.status.container_statuses if status.restart_count > restarts}
        return FITS if changed else UNCHANGED, "", frozenset(again)

    def granted(self) -> list[str]:
        events = self.world.run(self.client.list(Event, self.namespace)).items
        started = [event for event in events if event.reason == "ResizeStarted"]
        started.sort(key=lambda event: int(event.metadata.resource_version))
        return [event.involved_object.name for event in started]


def play(seed: int, world: World) -> Iterator[str]:
    shop = Shop(seed, world)
    shop.prepare()
    if not shop.names:
        return
    yield from resized(shop, f"seed {seed}")
    left(shop, f"seed {seed}")
    for name in shop.names:
        shop.delete(name)


def resized(shop: Shop, where: str) -> Iterator[str]:
    snapshot, requests = shop.look(), shop.requests()
    pods = {pod.metadata.name: pod for pod in snapshot.pods}
    promised = plan_requests(snapshot, [PodRequest(pods[name], request) for name, request in requests.items()])
    refusals = {}
    for planned in promised.pods:
        refusals[planned.pod] = shop.deed(planned.pod, requests[planned.pod])
        if planned.gives:
            shop.world.settle(shop.namespace)
    shop.world.settle(shop.namespace)
    for planned in promised.pods:
        restarts = pods[planned.pod].status.container_statuses[0].restart_count
        told = (
            planned.verdict,
            planned.text if planned.verdict not in (FITS, UNCHANGED) else "",
            frozenset(restart.container for restart in planned.restarts),
        )
        found = shop.became(planned.pod, restarts, refusals[planned.pod], changed=planned.verdict != UNCHANGED)
        assert told[:2] == found[:2], f"{where}: {planned}"
        if planned.verdict == FITS:
            assert told[2] == found[2], f"{where}: {planned}"
        yield planned.verdict
    _same_order(promised, shop, where)


def _same_order(promised: Plan, shop: Shop, where: str) -> None:
    """Of each node: which of two nodes is quicker is not promised."""
    nodes = {planned.pod: planned.node for planned in promised.pods}
    granted = shop.granted()
    for node in set(nodes.values()):
        told = [name for name in promised.order if nodes.get(name) == node]
        assert told == [name for name in granted if nodes.get(name) == node], where


def left(shop: Shop, where: str) -> None:
    """One pod after another leaves, until half are gone."""
    for name in shop.random.sample(shop.names, len(shop.names) // 2):
        snapshot = shop.look()
        pod = next(pod for pod in snapshot.pods if pod.metadata.name == name)
        names = {neighbour.metadata.uid: neighbour.metadata.name for neighbour in snapshot.neighbours}
        told = [names[uid] for uid in live_node(pod.spec.node_name, snapshot).leave(pod.metadata.uid)]
        before = len(shop.granted())
        shop.delete(name)
        shop.names.remove(name)
        assert told == shop.granted()[before:], f"{where}: {name} left"
