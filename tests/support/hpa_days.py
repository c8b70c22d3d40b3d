"""A day of a workload that an HPA and a VPA both look after, in the decisions alone: no process, no store, no waiting.

    load of the hour ─▶ usage of pods ─▶ HPA's pass ─▶ replicas ─▶ pods on nodes
                                     └─▶ VPA's recommender and updater ─▶ requests of pods

Everything random comes from a seed. `upstream` has both by upstream's rules: the VPA sizes what the HPA scales on.
"""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.selectors import Selector, from_map
from podfit.core.times import format_time
from podfit.decide.autoscaling import update
from podfit.decide.autoscaling.actions import ActionOutcome, Evict, Resize
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import KEEP_POINT, SCALE
from podfit.decide.autoscaling.horizontal.model import Memory, Sample, Settings, View
from podfit.decide.autoscaling.horizontal.passing import finish, propose
from podfit.decide.autoscaling.nodes_and_autoscalers import around, beside_autoscalers
from podfit.decide.autoscaling.status import VpaInputs, status
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.autoscaling.update_settings import UpdateSettings

DAY, PASS, CALM, VPA_PASS = 86400.0, 15.0, 300.0, 300.0
BEGIN = 1_700_000_000.0
SAMPLED, READY_AFTER = 60.0, 20.0
LIVELY, SETTLED = 900.0, 1800.0
"""Seconds after which a constant load has to be answered."""
LABELS = {"app": "web"}
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
KEY = VpaKey("shop", "web")
OWNER = ObjectIdentity("apps", "ReplicaSet", "shop", "web-1", "owner")


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
        self.plan, self.upstream, self.now = plan, upstream, BEGIN
        self.settings = Settings(upstream_compatible=upstream)
        self.hpa = self._autoscaler()
        self.memory = Memory()
        self.replicas, self.made, self.load = plan.least, 0, 0
        self.pods: dict[str, Running] = {}
        self.lost: dict[int, float] = {}
        self.state = ClusterState(gates=GATES, upstream_compatible=upstream)
        self.vpa = self._vertical()
        self.state.set_vpa(KEY, Selector(from_map(LABELS).requirements), None)
        self.template = plan.request
        self.next_vpa = self.next_sample = BEGIN
        self.violations: list[str] = []
        self.phases: list[Phase] = []

    def _autoscaler(self) -> HorizontalPodAutoscaler:
        plan = self.plan
        wanted = {"type": "Utilization", "averageUtilization": plan.target}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": wanted}}
        spec = {"scaleTargetRef": REF, "minReplicas": plan.least, "maxReplicas": plan.most, "metrics": [metric]}
        notes = {SCALE: plan.mode} if plan.mode and not self.upstream else {}
        metadata = {"name": "web", "namespace": "shop", "generation": 1, "annotations": notes}
        return convert({"metadata": metadata, "spec": spec}, HorizontalPodAutoscaler)

    def _vertical(self) -> VerticalPodAutoscaler:
        policy = {"updateMode": "InPlaceOrRecreate", "minReplicas": 1}
        spec: dict[str, Any] = {"targetRef": REF, "updatePolicy": policy}
        if self.plan.mode == VERTICAL_FIRST:
            most = {"containerName": "*", "maxAllowed": {"cpu": f"{self.plan.allowed}m"}}
            spec["resourcePolicy"] = {"containerPolicies": [most]}
        document = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
        return convert(document, VerticalPodAutoscaler)

    # ------------------------------------------------------------------ the day

    def live(self) -> list[Phase]:
        for lasts, load in self.plan.phases:
            phase = Phase(self.now, lasts, load, disturbed=self.now)
            self.phases.append(phase)
            while self.now < phase.began + lasts:
                self._sample(self.load)
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
        self.state.remove_pod(PodKey("shop", name))
        del self.pods[name]

    def _workload(self) -> None:
        """What the controller of the workload and the scheduler make of the replicas."""
        for pod in self.pods.values():
            if pod.node is None:
                self._place(pod)
        newest = sorted(self.pods.values(), key=lambda pod: (pod.node is not None, -pod.born, pod.name))
        for pod in newest[: max(0, len(self.pods) - self.replicas)]:
            self._end(pod.name)
        while len(self.pods) < self.replicas:
            self.made += 1
            pod = Running(f"web-{self.made}", self.template, None, self.now)
            self._place(pod)
            self.pods[pod.name] = pod
            self.state.set_pod(PodKey("shop", pod.name), LABELS, ["app"], self.now)

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
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "owner", "controller": True}
        metadata = {
            "name": pod.name,
            "namespace": "shop",
            "uid": pod.name,
            "labels": LABELS,
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
        samples = {name: Sample(used, self.now, PASS) for name, used in self._used(load).items()}
        view = View(
            autoscaler=self.hpa,
            replicas=self.replicas,
            reported=len(self.pods),
            selector="app=web",
            pods=[self._shown(pod) for pod in self.pods.values()],
            memory=self.memory,
            settings=self.settings,
            vpas=[self.vpa],
            room={pod.name: {"cpu": self._growth(pod)} for pod in self.pods.values() if pod.node is not None},
        )
        outcome = finish(propose(view, [samples], self.now), self.now)
        metadata = self.hpa.metadata
        if outcome.annotations:
            metadata = replace(metadata, annotations={**metadata.annotations, **outcome.annotations})
        self.hpa = replace(self.hpa, metadata=metadata, status=outcome.status)
        self.memory = outcome.memory
        if outcome.desired is not None:
            self.replicas = outcome.desired

    # ------------------------------------------------------------------ the VPA

    def _sample(self, load: int) -> None:
        """Once a minute, also of the minutes since the last look, in which nothing changed."""
        used = self._used(load)
        slots = [slot for name in used if (slot := self.state.slot(PodKey("shop", name), "app")) is not None]
        while self.next_sample <= self.now:
            if slots:
                times, amounts = np.full(len(slots), self.next_sample), np.array(list(used.values()), dtype=float)
                self.state.model.add_cpu(np.array(slots, dtype=np.intp), amounts, times)
            self.next_sample += SAMPLED

    def _vpa(self) -> None:
        found = self.state.found({KEY: {}})[KEY]
        now = stamp(self.now)
        told = status(self.vpa, VpaInputs(found, self.state.pods_of(KEY)), now)
        if not self.upstream:
            told = beside_autoscalers(told, self.vpa, around((), [self.hpa]), {}, now)
        self.vpa = replace(self.vpa, status=told)
        recommended = told.recommendation.container_recommendations if told.recommendation else ()
        if recommended and "cpu" in recommended[0].target:
            self.template = recommended[0].target["cpu"].milli()
        self._updates()

    def _updates(self) -> None:
        view = update.View(
            vpa=self.vpa,
            pods=tuple(self._shown(pod) for pod in self.pods.values() if pod.node is not None),
            configured={OWNER: self.replicas},
            now=datetime.fromtimestamp(self.now, UTC),
        )
        run = update.run(view, UpdateSettings(gates=GATES, upstream_compatible=self.upstream))
        outcome: ActionOutcome | None = None
        while True:
            try:
                action = run.send(outcome) if outcome is not None else next(run)
            except StopIteration:
                return
            outcome = self._done(action)

    def _done(self, action: object) -> ActionOutcome:
        if isinstance(action, Evict):
            ready = sum(map(self._ready, self.pods.values()))
            if ready - 1 < self.plan.budget:
                return ActionOutcome.REFUSED
            self._end(action.pod.metadata.name)
            if sum(map(self._ready, self.pods.values())) < self.plan.budget:
                self.violations.append(f"evicted below the budget at {self.now - BEGIN:g} s")
            return ActionOutcome.DONE
        if isinstance(action, Resize):
            pod = self.pods[action.pod.metadata.name]
            wanted = self.template
            if pod.node is not None and wanted - pod.request <= self._free(pod.node):
                pod.request, pod.shown = wanted, None
                return ActionOutcome.DONE
            return ActionOutcome.REFUSED
        return ActionOutcome.DONE

    # ------------------------------------------------------------------ what is seen

    def _note(self, phase: Phase) -> None:
        if not phase.replicas or phase.replicas[-1] != self.replicas:
            phase.replicas.append(self.replicas)
        if not phase.requests or phase.requests[-1] != self.template:
            phase.requests.append(self.template)
        if self.now - phase.disturbed >= SETTLED:
            phase.settled.append((self.replicas, sum(pod.request for pod in self.pods.values())))


GATES = Gates(in_place=True)


def stamp(time: float) -> str:
    return format_time(datetime.fromtimestamp(time, UTC))


def reversals(values: list[int]) -> int:
    """How often a course of different values turns."""
    steps = [after > before for before, after in pairwise(values)]
    return sum(one is not other for one, other in pairwise(steps))


def complaints(day: Day) -> Iterator[str]:
    """What does not come to rest, is too much or too little, or ends what a budget keeps."""
    plan = day.plan
    yield from day.violations
    for number, phase in enumerate(day.phases):
        quiet = phase.disturbed == phase.began
        if quiet and reversals(phase.replicas) > 1:
            yield f"phase {number}: replicas {phase.replicas}"
        if reversals(phase.requests) > 1:
            yield f"phase {number}: requests {phase.requests}"
        for replicas, total in phase.settled:
            size = total / max(replicas, 1)
            most = 1.5 * phase.load / (plan.target / 100) + size
            if replicas > plan.least and total > most:
                yield f"phase {number}: {replicas} replicas request {total}m, more than {math.ceil(most)}m"
                break
            if total < phase.load:
                yield f"phase {number}: {replicas} replicas request {total}m, less than the load of {phase.load}m"
                break
