"""A day of workloads whose sizes and numbers change, on nodes that come and go by the cluster autoscaler, from a seed.

A load stays for a while; at its beginning a horizontal autoscaler has changed how many pods there are, and a vertical
one how large: running pods are resized in place where their node has room, and wait where it has none. Both are told
by their outcomes; the cluster autoscaler is the machine itself.
"""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.codec import convert
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import ResourceList
from podfit.core.times import parse_time
from support.capacity_world import BEGIN, Group, World, template

HOUR, TICK = 3600.0, 20.0
SETTLED = 300.0
"""Seconds beyond the time that a node takes to come, after which every pod has its place."""


class Load(msgspec.Struct, frozen=True):
    """For so many seconds, by workload how many pods of how many millicores."""

    seconds: float
    workloads: dict[str, tuple[int, int]]


class Plan(msgspec.Struct, frozen=True):
    provision: float
    loads: tuple[Load, ...]


def planned(seed: int, hours: float) -> Plan:
    chance = random.Random(seed)
    names = [f"web-{number}" for number in range(chance.randint(2, 5))]
    sizes = {name: chance.choice((200, 400, 800, 1500)) for name in names}
    loads, left = list[Load](), hours * HOUR
    while left > 0:
        lasts = min(left, chance.choice((5400.0, 7200.0, 9000.0)))
        for name in names:
            if chance.random() < 0.4:
                sizes[name] = min(int(sizes[name] * chance.uniform(0.5, 2.0)), 3500)
        loads.append(Load(lasts, {name: (chance.randint(1, 10), sizes[name]) for name in names}))
        left -= lasts
    return Plan(chance.choice((30.0, 60.0, 180.0)), tuple(loads))


class NodeDay(World):
    def __init__(self, plan: Plan) -> None:
        small = Group(name="small", like=template("small"), most=30, provision=plan.provision)
        large = Group(name="large", like=template("large", "16", "32Gi"), most=10, provision=plan.provision)
        super().__init__(small, large)
        self.plan, self.sizes, self.number = plan, dict[str, int](), 0
        self.complaints: list[str] = []
        self.acts: dict[str, int] = {}

    def live(self) -> None:
        for number, load in enumerate(self.plan.loads):
            began = self.now
            self._turn(load)
            due = began + self.plan.provision + SETTLED
            while self.now < began + load.seconds:
                self.now += TICK
                self._see()
                self.tick()
                if self.now >= due:
                    self.complaints += [f"load {number}: {text}" for text in self._unplaced()]
            self.complaints += [f"load {number}: {text}" for text in turned(self.history, began, self.now)]

    def _turn(self, load: Load) -> None:
        for name, (replicas, cpu) in load.workloads.items():
            self.sizes[name] = cpu
            own = sorted(pod for pod in self.pods if pod.rpartition("_")[0] == name)
            for pod in own[replicas:]:
                del self.pods[pod]
            for _ in range(replicas - len(own)):
                self.number += 1
                self.pod(f"{name}_{self.number}", f"{cpu}m", owner=name)

    def _see(self) -> None:
        """What the nodes make of the sizes that are wanted, and what the autoscaler is told of them."""
        for name in list(self.pods):
            self.pods[name] = self._resized(self.pods[name])
        specs = {name: self._spec(pod) for name, pod in self.pods.items()}
        self.look["templates"] = {("shop", name): spec for name, spec in specs.items()}
        sizes: dict[str, dict[str, ResourceList]] = {
            pod.metadata.uid: {"c": specs[name].containers[0].resources.requests} for name, pod in self.pods.items()
        }
        self.look["recommended"] = sizes
        for told in self.outlook.pods:
            self.acts[str(told.act)] = self.acts.get(str(told.act), 0) + 1

    def _spec(self, pod: Pod) -> PodSpec:
        [container] = pod.spec.containers
        wanted = Quantity.of_milli(self.sizes[pod.metadata.name.rpartition("_")[0]])
        requests = {**container.resources.requests, "cpu": wanted}
        resources = replace(container.resources, requests=requests)
        return replace(pod.spec, containers=(replace(container, resources=resources),))

    def _resized(self, pod: Pod) -> Pod:
        """As its node leaves it: at the size that is wanted, or waiting with what it has."""
        wanted, node = self._spec(pod), self.nodes.get(pod.spec.node_name)
        if node is None:
            return pod if pod.spec.node_name else replace(pod, spec=wanted)
        held, more = self._held(pod), wanted.containers[0].resources.requests["cpu"].milli()
        others = sum(self._held(one) for one in self.pods.values() if one.spec.node_name == pod.spec.node_name) - held
        room = node.status.allocatable.get("cpu", ZERO).milli()
        if others + more <= room:
            return replace(pod, spec=wanted, status=convert({"phase": "Running"}, type(pod.status)))
        before = [one for one in pod.status.conditions if one.type == "PodResizePending"]
        since = before[0].last_transition_time if before else self.stamp()
        text = f"Node didn't have enough resource: cpu, requested: {more}, used: {others}, capacity: {room}"
        told: dict[str, Any] = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": text}
        has = {"cpu": f"{held}m", "memory": "64Mi"}
        container = {"name": "c", "resources": {"requests": has}, "allocatedResources": has}
        status = {"phase": "Running", "conditions": [{**told, "lastTransitionTime": since}]}
        return replace(pod, spec=wanted, status=convert({**status, "containerStatuses": [container]}, type(pod.status)))

    def _held(self, pod: Pod) -> int:
        """Millicores that its node has set aside."""
        if pod.status.container_statuses:
            return pod.status.container_statuses[0].allocated_resources["cpu"].milli()
        return pod.spec.containers[0].resources.requests["cpu"].milli()

    def evicted(self, pod: Pod) -> None:
        super().evicted(pod)
        fresh = self.pods[pod.metadata.name]
        self.pods[pod.metadata.name] = replace(fresh, spec=self._spec(fresh))

    def _unplaced(self) -> Iterator[str]:
        """Pods that wait for longer than two looks, and are told nothing."""
        told = {pod.pod for pod in self.outlook.pods if pod.because or pod.due or pod.to}
        for name, pod in self.pods.items():
            waited = self.now - parse_time(str(pod.metadata.creation_timestamp)).timestamp()
            if not pod.spec.node_name and name not in told and waited > 3 * TICK:
                yield f"{name} has no place and no reason at {self.now - BEGIN:.0f} s"


def turned(history: list[tuple[float, str, str]], began: float, ended: float) -> Iterator[str]:
    """Groups that were given a node and lost one twice within an hour under one load."""
    groups: dict[str, list[tuple[float, str]]] = {}
    for at, what, node in history:
        if began < at <= ended:
            groups.setdefault(node.rpartition("-")[0], []).append((at, what))
    for group, turns in groups.items():
        removals = [at for (_, before), (at, what) in pairwise(turns) if (before, what) == ("added", "removed")]
        for first, second in pairwise(removals):
            if second - first < HOUR:
                yield f"group {group} was given a node and lost one twice within {second - first:.0f} s"
