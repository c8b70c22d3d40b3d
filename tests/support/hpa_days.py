"""A day of a workload that an HPA and a VPA both look after, in the decisions alone: no process, no store, no waiting.

    load of the hour ─▶ usage of pods ─▶ HPA's pass ─▶ replicas ─▶ pods on nodes
                                     └─▶ VPA's recommender and updater ─▶ requests of pods

Everything random comes from a seed. `upstream` has both by upstream's rules: the VPA sizes what the HPA scales on.
"""

import math
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.actions import ActionOutcome, EvictPod, ResizePod
from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import KEEP_POINT
from support.scaled_workload import SAMPLED, ScaledWorkload, Wish, stamp

DAY, PASS, CALM, VPA_PASS = 86400.0, 15.0, 300.0, 300.0
BEGIN = 1_700_000_000.0
READY_AFTER = 20.0
LIVELY, SETTLED = 900.0, 1800.0
"""Seconds after which a constant load has to be answered."""


class Running(msgspec.Struct):
    """`request` in millicores is what its node has granted."""

    name: str
    request: int
    node: int | None
    born: float
    shown: Pod | None = None


class Phase(msgspec.Struct):
    """A load that stays: from when, how long, and what became of it."""

    began: float
    lasted: float
    load: int
    replicas: list[int] = msgspec.field(default_factory=list)
    requests: list[int] = msgspec.field(default_factory=list)
    settled: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Replicas and all that they request, from half an hour on."""
    disturbed: float = 0.0
    """When a node was lost or came back last."""


class Plan(msgspec.Struct, frozen=True):
    """Of a day, by its seed; the load of a phase can be met by the most replicas on the nodes that stay."""

    seed: int
    request: int
    target: int
    least: int
    most: int
    nodes: int
    room: int
    mode: str
    """The annotation `podfit.dev/scale`, empty for none."""
    allowed: int
    """The VPA's maximum of a pod that grows first."""
    phases: tuple[tuple[float, int], ...]
    losses: tuple[tuple[float, int, float], ...]
    budget: int


def planned(seed: int) -> Plan:
    chance = random.Random(seed)
    request, target = chance.choice((100, 200, 250, 500)), chance.choice((50, 60, 70, 80))
    least, most = chance.randint(1, 3), chance.randint(8, 24)
    nodes = chance.randint(3, 6)
    room = -(-request * most * 5 // 2 // (nodes - 1))
    phases, left = list[tuple[float, int]](), DAY
    while left > 0:
        lasts = min(left, chance.choice((5400.0, 7200.0, 10800.0, 14400.0)))
        lasts = left if left - lasts < 5400 else lasts
        phases.append((lasts, int(request * most * target / 100 * chance.uniform(0.05, 0.75))))
        left -= lasts
    losses = [
        (chance.uniform(0, DAY), chance.randrange(nodes), chance.uniform(300, 3600))
        for _ in range(chance.choice((0, 0, 1, 2)))
    ]
    keep, budget = chance.random() < 0.5, chance.randint(1, 2)
    first = not keep and chance.random() < 2 / 3
    return Plan(
        seed,
        request,
        target,
        least,
        most,
        nodes,
        room,
        KEEP_POINT if keep else VERTICAL_FIRST if first else "",
        int(request * chance.uniform(1, 4)),
        tuple(phases),
        tuple(sorted(losses)),
        budget,
    )


class Day:
    def __init__(self, plan: Plan, *, upstream: bool) -> None:
        self.plan, self.now = plan, BEGIN
        wish = Wish(plan.request, plan.target, plan.least, plan.most, plan.mode, plan.allowed)
        self.scaled = ScaledWorkload("web", wish, BEGIN, upstream=upstream, pass_seconds=PASS)
        self.made, self.load, self.next_vpa = 0, 0, BEGIN
        self.pods: dict[str, Running] = {}
        self.lost: dict[int, float] = {}
        self.violations: list[str] = []
        self.phases: list[Phase] = []

    # ------------------------------------------------------------------ the day

    def live(self) -> list[Phase]:
        for lasts, load in self.plan.phases:
            phase = Phase(self.now, lasts, load, disturbed=self.now)
            self.phases.append(phase)
            while self.now < phase.began + lasts:
                self.scaled.sample(self._used(self.load), self.now)
                self.load = load
                self._nodes(phase)
                self._workload()
                self._horizontal(load)
                self._workload()
                if self.now >= self.next_vpa:
                    self.next_vpa = self.now + (SAMPLED if self.now - phase.disturbed < LIVELY else VPA_PASS)
                    self._vpa()
                self._note(phase)
                self.now += PASS if self.now - phase.disturbed < SETTLED + 600 else CALM
        return self.phases

    def _nodes(self, phase: Phase) -> None:
        for since, node, seconds in self.plan.losses:
            away = BEGIN + since <= self.now < BEGIN + since + seconds
            if away is not (node in self.lost):
                phase.disturbed = self.now
                if away:
                    self.lost[node] = self.now
                    for name in [pod.name for pod in self.pods.values() if pod.node == node]:
                        self._end(name)
                else:
                    del self.lost[node]

    def _end(self, name: str) -> None:
        self.scaled.went(name)
        del self.pods[name]

    def _workload(self) -> None:
        """What the controller of the workload and the scheduler make of the replicas."""
        for pod in self.pods.values():
            if pod.node is None:
                self._place(pod)
        newest = sorted(self.pods.values(), key=lambda pod: (pod.node is not None, -pod.born, pod.name))
        for pod in newest[: max(0, len(self.pods) - self.scaled.replicas)]:
            self._end(pod.name)
        while len(self.pods) < self.scaled.replicas:
            self.made += 1
            pod = Running(f"web-{self.made}", self.scaled.template, None, self.now)
            self._place(pod)
            self.pods[pod.name] = pod
            self.scaled.came(pod.name, self.now)

    def _free(self, node: int) -> int:
        return self.plan.room - sum(pod.request for pod in self.pods.values() if pod.node == node)

    def _growth(self, pod: Running) -> int:
        """Its share of what its node has left."""
        assert pod.node is not None
        return self._free(pod.node) // sum(other.node == pod.node for other in self.pods.values())

    def _place(self, pod: Running) -> None:
        rooms = {node: self._free(node) for node in range(self.plan.nodes) if node not in self.lost}
        best = max(rooms, key=lambda node: rooms[node], default=None)
        if best is not None and rooms[best] >= pod.request:
            pod.node, pod.born, pod.shown = best, self.now, None

    def _ready(self, pod: Running) -> bool:
        return pod.node is not None and self.now - pod.born >= READY_AFTER

    def _shown(self, pod: Running) -> Pod:
        if pod.shown is None or len(pod.shown.status.conditions) != (2 if self._ready(pod) else 1):
            pod.shown = self._made(pod)
        return pod.shown

    def _made(self, pod: Running) -> Pod:
        began, amounts = stamp(pod.born), {"cpu": f"{pod.request}m", "memory": "128Mi"}
        turned = stamp(pod.born + READY_AFTER) if self._ready(pod) else began
        ready: dict[str, Any] = {"type": "Ready", "status": str(self._ready(pod)), "lastTransitionTime": turned}
        told: dict[str, Any] = {"phase": "Pending" if pod.node is None else "Running", "conditions": [ready]}
        if self._ready(pod):
            told["conditions"].append({"type": "ContainersReady", "status": "True"})
        if pod.node is not None:
            told["startTime"] = began
            app = {"name": "app", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
            told["containerStatuses"] = [{**app, "resources": {"requests": amounts}, "state": {"running": {}}}]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "web-owner", "controller": True}
        metadata = {
            "name": pod.name,
            "namespace": "shop",
            "uid": pod.name,
            "labels": self.scaled.labels,
            "ownerReferences": [owner],
        }
        spec: dict[str, Any] = {"containers": [{"name": "app", "image": "i", "resources": {"requests": amounts}}]}
        if pod.node is not None:
            spec["nodeName"] = f"n{pod.node}"
        return convert({"metadata": metadata, "spec": spec, "status": told}, Pod)

    def _used(self, load: int) -> dict[str, int]:
        """The load is shared by the pods that are ready."""
        ready = [pod for pod in self.pods.values() if self._ready(pod)]
        return {pod.name: -(-load // len(ready)) for pod in ready}

    def _horizontal(self, load: int) -> None:
        room = {pod.name: {"cpu": self._growth(pod)} for pod in self.pods.values() if pod.node is not None}
        self.scaled.scale([self._shown(pod) for pod in self.pods.values()], self._used(load), room, self.now)

    # ------------------------------------------------------------------ the VPA

    def _vpa(self) -> None:
        self.scaled.recommend(self.now)
        on_nodes = [self._shown(pod) for pod in self.pods.values() if pod.node is not None]
        self.scaled.update(on_nodes, self.now, self._done)

    def _done(self, action: object) -> ActionOutcome:
        if isinstance(action, EvictPod):
            ready = sum(map(self._ready, self.pods.values()))
            if ready - 1 < self.plan.budget:
                return ActionOutcome.REFUSED
            self._end(action.pod.metadata.name)
            if sum(map(self._ready, self.pods.values())) < self.plan.budget:
                self.violations.append(f"evicted below the budget at {self.now - BEGIN:g} s")
            return ActionOutcome.DONE
        if isinstance(action, ResizePod):
            pod = self.pods[action.pod.metadata.name]
            wanted = self.scaled.template
            if pod.node is not None and wanted - pod.request <= self._free(pod.node):
                pod.request, pod.shown = wanted, None
                return ActionOutcome.DONE
            return ActionOutcome.REFUSED
        return ActionOutcome.DONE

    # ------------------------------------------------------------------ what is seen

    def _note(self, phase: Phase) -> None:
        if not phase.replicas or phase.replicas[-1] != self.scaled.replicas:
            phase.replicas.append(self.scaled.replicas)
        if not phase.requests or phase.requests[-1] != self.scaled.template:
            phase.requests.append(self.scaled.template)
        if self.now - phase.disturbed >= SETTLED:
            phase.settled.append((self.scaled.replicas, sum(pod.request for pod in self.pods.values())))


def reversals(values: list[int]) -> int:
    """How often a course of different values turns."""
    steps = [after > before for before, after in pairwise(values)]
    return sum(one is not other for one, other in pairwise(steps))


def complaints(day: Day) -> Iterator[str]:
    """What does not come to rest, is too much or too little, or ends what a budget keeps."""
    yield from day.violations
    for number, phase in enumerate(day.phases):
        for text in phase_complaints(phase, day.plan.target, day.plan.least):
            yield f"phase {number}: {text}"


def phase_complaints(phase: Phase, target: int, least: int) -> Iterator[str]:
    """`target` in percent; `least` replicas may be more than the load needs."""
    quiet = phase.disturbed == phase.began
    if quiet and reversals(phase.replicas) > 1:
        yield f"replicas {phase.replicas}"
    if reversals(phase.requests) > 1:
        yield f"requests {phase.requests}"
    for replicas, total in phase.settled:
        size = total / max(replicas, 1)
        most = 1.5 * phase.load / (target / 100) + size
        if replicas > least and total > most:
            yield f"{replicas} replicas request {total}m, more than {math.ceil(most)}m"
            break
        if total < phase.load:
            yield f"{replicas} replicas request {total}m, less than the load of {phase.load}m"
            break
