"""A day of workloads that an HPA and a VPA look after, on nodes of the cluster autoscaler, from a seed.

    load ─▶ usage of pods ─▶ HPA's pass ─▶ replicas ─▶ the scheduler's `place` ─▶ nodes
                         └─▶ VPA's recommender, updater ─▶ resizes ─▶ the node's machine ─▶ granted, or waiting
    pods without a place, resizes that wait ─▶ the cluster autoscaler's machine ─▶ nodes, moves

Everything is decided by `podfit.decide`; here is only who is told what, in which order, and what time it is. Where
nothing has changed for a while the clock goes on in longer steps.
"""

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import convert
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.apiserver.registry.patch import jsonpatch
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES
from podfit.core.times import parse_time
from podfit.decide.autoscaling.actions import Action, ActionOutcome, EvictPod, ResizePod
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import KEEP_POINT
from podfit.decide.autoscaling.patches import admission_patches, recommended_resources
from podfit.decide.capacity.outlook import Act
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.room.growth import growth
from podfit.decide.pod.resize_state import ResizeState
from podfit.decide.resize import checks
from podfit.decide.workload import budgets, disruption
from podfit.decide.workload.deletion_order import first_to_go
from podfit.decide.workload.pods import is_ready
from support.capacity_world import BEGIN, Group, World, template
from support.hpa_days import LIVELY, READY_AFTER, SETTLED, Phase, phase_complaints
from support.node_machine import NodeMachine, running
from support.scaled_workload import GATES, NAMESPACE, ScaledWorkload, Wish

HOUR, PASS, SCAN, VPA_PASS, SAMPLED = 3600.0, 15.0, 30.0, 300.0, 60.0
STEPS = ((300.0, PASS), (LIVELY, 60.0), (HOUR, 300.0), (float("inf"), 600.0))
"""While nothing has changed for less than so many seconds, from one look to the next."""
MARGIN = 120.0
"""Seconds beyond the time that a node takes to come, after which a pod that waits has its place, or is told why not."""


class Load(msgspec.Struct, frozen=True):
    """For so many seconds, by workload the millicores that its pods use together."""

    seconds: float
    used: dict[str, int]


class Plan(msgspec.Struct, frozen=True):
    provision: float
    wishes: dict[str, Wish]
    budgets: dict[str, int]
    """By workload, how many pods are to be ready at all times."""
    loads: tuple[Load, ...]
    most: tuple[int, int]
    """Nodes of the two groups: few enough on some days that a pod finds no place."""


def planned(seed: int, hours: float = 24.0) -> Plan:
    chance = random.Random(seed)
    wishes = {f"web-{number}": _wish(chance) for number in range(chance.randint(2, 3))}
    used = {name: _used(chance, wish) for name, wish in wishes.items()}
    loads, left = list[Load](), hours * HOUR
    while left > 0:
        lasts = min(left, chance.choice((5400.0, 7200.0, 10800.0, 14400.0, 21600.0)))
        lasts = left if left - lasts < 5400 else lasts
        loads.append(Load(lasts, dict(used)))
        left -= lasts
        used |= {name: _used(chance, wish) for name, wish in wishes.items() if chance.random() < 0.7}
    allowed = {name: chance.randint(0, 1) for name in wishes}
    most = chance.choice(((30, 10), (30, 10), (30, 10), (2, 1)))
    return Plan(chance.choice((30.0, 60.0, 180.0)), wishes, allowed, tuple(loads), most)


def _wish(chance: random.Random) -> Wish:
    request, target = chance.choice((200, 400, 500, 800, 1000)), chance.choice((50, 60, 70, 80))
    least, most = chance.randint(1, 3), chance.randint(6, 12)
    mode = chance.choice((KEEP_POINT, KEEP_POINT, VERTICAL_FIRST, ""))
    return Wish(request, target, least, most, mode, int(request * chance.uniform(1, 3)))


def _used(chance: random.Random, wish: Wish) -> int:
    return int(wish.request * wish.most * wish.target / 100 * chance.uniform(0.05, 0.75))


class AutoscaledDay(World):
    def __init__(self, plan: Plan) -> None:
        few, fewer = plan.most
        small = Group(name="small", like=template("small"), most=few, provision=plan.provision)
        large = Group(name="large", like=template("large", "16", "32Gi"), most=fewer, provision=plan.provision)
        self.machines: dict[str, NodeMachine] = {}
        self.provided = True
        """Whether nodes come; `untold`: whether the autoscaler says nothing. For tests of what is seen."""
        super().__init__(small, large, settings=AutoscalerSettings(interval=SCAN))
        self.plan, self.number, self.changed = plan, 0, self.now
        self.next_vpa = self.next_scan = self.now
        self.recommender = ClusterState(gates=GATES)
        self.scaled = {
            name: ScaledWorkload(name, wish, self.now, pass_seconds=PASS, state=self.recommender)
            for name, wish in plan.wishes.items()
        }
        self.own: dict[str, dict[str, None]] = {name: {} for name in self.scaled}
        self.starting: dict[str, float] = {}
        self.used = dict.fromkeys(self.scaled, 0)
        self.phases: dict[str, Phase] = {}
        self.complaints: list[str] = []
        self.acts: dict[str, int] = {}
        self.resizes = 0
        self.untold = False
        self.budgets = {name: _budget(name, least) for name, least in plan.budgets.items() if least}
        self.templates = {name: self._made(name).spec for name in self.scaled}
        self.sizes: dict[str, dict[str, ResourceList]] = {}

    # ------------------------------------------------------------------ the day

    def live(self) -> None:
        for number, load in enumerate(self.plan.loads):
            began = self.now
            self.phases = {name: Phase(began, load.seconds, used, disturbed=began) for name, used in load.used.items()}
            first = True
            while self.now < began + load.seconds:
                self._sample()
                if first:
                    self.used, self.changed, first = dict(load.used), self.now, False
                    self.next_vpa = min(self.next_vpa, self.now + SAMPLED)
                self.pass_by()
                self._note()
                self.now = min(self.now + self._step(), began + load.seconds)
            self.complaints += [f"load {number}: {text}" for text in self._unrest(began)]

    def _step(self) -> float:
        if self._removals or any(not pod.spec.node_name for pod in self.pods.values()):
            return PASS
        if any(machine.state.queue for machine in self.machines.values()):
            return PASS
        return next(step for within, step in STEPS if self.now - self.changed < within)

    def pass_by(self) -> None:
        """All of them have a look, one after the other."""
        self._register()
        self._begin()
        self._replicate()
        self._schedule()
        for name, scaled in self.scaled.items():
            scaled.scale(self._pods_of(name), self._usage(name), self._room(name), self.now)
        self._replicate()
        self._schedule()
        if self.now >= self.next_vpa:
            lively = self.now - self.changed < LIVELY
            self.next_vpa = self.now + (SAMPLED if lively else VPA_PASS)
            self._size()
        for name, machine in self.machines.items():
            machine.retry()
            self._tell(name)
        self._go_on_removing()
        if self.now >= self.next_scan:
            self.next_scan = self.now + SCAN
            self._see()
            self.look_once()

    def _see(self) -> None:
        """What the cluster autoscaler is told beside nodes and pods."""
        owners = {pod.metadata.name: pod.metadata.labels["app"] for pod in self.pods.values()}
        self.look = {
            "templates": {(NAMESPACE, name): self.templates[owner] for name, owner in owners.items()},
            "recommended": {pod.metadata.uid: self.sizes[pod.metadata.uid] for pod in self.pods.values()},
            "controllers": {("ReplicaSet", NAMESPACE, f"{name}-1"): one.replicas for name, one in self.scaled.items()},
            "budgets": self._budgets(),
        }

    # ------------------------------------------------------------------ nodes

    def _register(self) -> None:
        if self.provided:
            super()._register()
        for name in self.machines.keys() - self.nodes.keys():
            del self.machines[name]
            self.changed = self.now
        for name in self.nodes.keys() - self.machines.keys():
            self.machines[name] = NodeMachine(self.nodes[name], self.moment)
            self.changed = self.now

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def _tell(self, node: str) -> None:
        """What a node reports of its pods."""
        machine = self.machines[node]
        for entry in list(machine.state.pods.values()):
            name = entry.pod.metadata.name
            told = machine.reported(self.pods[name])
            if told is not self.pods[name]:
                self.pods[name], self.changed = told, self.now

    # ------------------------------------------------------------------ pods

    def _pods_of(self, workload: str) -> list[Pod]:
        return [self.pods[name] for name in self.own[workload]]

    def _made(self, workload: str) -> Pod:
        """As its template says, which nobody changes."""
        self.number += 1
        name, owner = f"{workload}.{self.number}", self.scaled[workload].owner
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner.name, "uid": owner.uid}
        meta = {"name": name, "namespace": NAMESPACE, "uid": name, "generation": 1, "creationTimestamp": self.stamp()}
        meta |= {"labels": {"app": workload}, "ownerReferences": [{**reference, "controller": True}]}
        requests = {"cpu": f"{self.plan.wishes[workload].request}m", "memory": "128Mi"}
        spec = {"containers": [{"name": "app", "image": "i", "resources": {"requests": requests}}]}
        status = {"phase": "Pending", "qosClass": "Burstable"}
        return convert({"metadata": meta, "spec": spec, "status": status}, Pod)

    def _replicate(self) -> None:
        """Controllers make pods, which the VPA's admission sizes, and end those that are too many."""
        for name, scaled in self.scaled.items():
            own = self._pods_of(name)
            surplus = len(own) - scaled.replicas
            for pod in first_to_go(own, own, surplus, self.moment()) if surplus > 0 else ():
                self._end(pod)
            for _ in range(-surplus):
                self._create(name)

    def _create(self, workload: str) -> None:
        pod, scaled = self._made(workload), self.scaled[workload]
        pod = _patched(pod, admission_patches(pod, scaled.vpa, (), GATES))
        name, self.changed = pod.metadata.name, self.now
        self.pods[name], self.own[workload][name] = pod, None
        self.sizes[pod.metadata.uid] = self._recommended(pod)
        scaled.came(name, self.now)

    def _end(self, pod: Pod) -> None:
        name, workload = pod.metadata.name, pod.metadata.labels["app"]
        del self.pods[name], self.own[workload][name], self.sizes[pod.metadata.uid]
        self.starting.pop(name, None)
        self.scaled[workload].went(name)
        self.changed = self.now
        if pod.spec.node_name in self.machines:
            self.machines[pod.spec.node_name].remove(pod.metadata.uid)

    def placed(self, pod: Pod) -> Pod:
        self.starting[pod.metadata.name] = self.now + READY_AFTER
        self.changed = self.now
        begun = replace(pod, status=running(pod, self.stamp(), ready=False))
        self.machines[pod.spec.node_name].add(begun)
        return begun

    def _begin(self) -> None:
        """Pods that were placed a while ago are ready."""
        for name in [name for name, due in self.starting.items() if due <= self.now]:
            del self.starting[name]
            pod = self.pods[name]
            ready = replace(pod, status=running(pod, self.stamp(), ready=True))
            self.pods[name], self.changed = self.machines[pod.spec.node_name].reported(ready), self.now

    # ------------------------------------------------------------------ evictions

    def _budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """By their controller."""
        made = []
        for name, budget in self.budgets.items():
            own = self._pods_of(name)
            meant, desired = budgets.expected(budget, own, self.scaled[name].replicas)
            current = budgets.healthy(own, {})
            status = budgets.status_of(
                budget, meant=meant, desired=desired, current=current, disrupted={}, stamp=self.stamp()
            )
            made.append(replace(budget, status=status))
        return tuple(made)

    def why_refused(self, pod: Pod) -> str:
        return disruption.why_protected(pod, self._budgets())

    def evicted(self, pod: Pod) -> None:
        """It ends, and its controller makes another one."""
        workload = pod.metadata.labels["app"]
        self.evictions.append(pod.metadata.name)
        self._end(pod)
        ready = sum(map(is_ready, self._pods_of(workload)))
        if is_ready(pod) and ready < self.plan.budgets[workload]:
            self.complaints.append(f"evicted below the budget at {self.now - BEGIN:g} s")
        self._create(workload)

    # ------------------------------------------------------------------ the HPA and the VPA

    def _usage(self, workload: str) -> dict[str, int]:
        """The load is shared by the pods that are ready."""
        ready = [pod.metadata.name for pod in self._pods_of(workload) if is_ready(pod)]
        return {name: -(-self.used[workload] // len(ready)) for name in ready}

    def _room(self, workload: str) -> Mapping[str, Mapping[str, int]]:
        """By how much pods could grow where they are, as the HPA's controller asks for those that grow first."""
        if self.plan.wishes[workload].mode != VERTICAL_FIRST:
            return {}
        on_node: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            if pod.spec.node_name:
                on_node.setdefault(pod.spec.node_name, []).append(pod)
        return growth(self._pods_of(workload), self.nodes, on_node, ("cpu",), DEFAULT_GATES)

    def _sample(self) -> None:
        for name, scaled in self.scaled.items():
            scaled.sample(self._usage(name), self.now)

    def _size(self) -> None:
        known = self.recommender.found({scaled.key: {} for scaled in self.scaled.values()})
        for name, scaled in self.scaled.items():
            before = scaled.vpa.status.recommendation
            scaled.recommend(self.now, self.nodes.values(), known[scaled.key])
            if scaled.vpa.status.recommendation != before:
                self.sizes |= {pod.metadata.uid: self._recommended(pod) for pod in self._pods_of(name)}
            there = [pod for pod in self._pods_of(name) if pod.spec.node_name]
            scaled.update(there, self.now, self._acted, places_first=True)

    def _recommended(self, pod: Pod) -> dict[str, ResourceList]:
        wanted = recommended_resources(pod, self.scaled[pod.metadata.labels["app"]].vpa, ())
        return {name: resources.requests for name, resources in wanted.items()}

    def _acted(self, action: Action) -> ActionOutcome:
        match action:
            case EvictPod(pod=pod):
                if self.why_refused(pod):
                    return ActionOutcome.REFUSED
                self.evicted(pod)
            case ResizePod(pod=pod, resources=resources):
                return self._resized(self.pods[pod.metadata.name], resources)
        return ActionOutcome.DONE

    def _resized(self, pod: Pod, resources: tuple[dict[str, Any], ...]) -> ActionOutcome:
        """By the API's own checks, then by the node's machine."""
        node = self.nodes[pod.spec.node_name]
        asked = checks.ResizeToCheck(new=_patched(pod, resources), old=default_pod(pod, DEFAULT_GATES), node=node)
        outcome = checks.judge(asked)
        if isinstance(outcome, ApiError):
            full = "NodeCapacity" in str(outcome.details)
            return ActionOutcome.NO_CAPACITY if full else ActionOutcome.REFUSED
        if outcome.new.spec == pod.spec:
            return ActionOutcome.DONE
        meta = replace(pod.metadata, generation=pod.metadata.generation + 1)
        self.pods[pod.metadata.name], self.changed = replace(pod, metadata=meta, spec=outcome.new.spec), self.now
        self.resizes += 1
        self.machines[node.metadata.name].ask(self.pods[pod.metadata.name])
        self._tell(node.metadata.name)
        return ActionOutcome.DONE

    # ------------------------------------------------------------------ what is seen

    def seen(self) -> dict[str, int]:
        """How often what happened, and by act, for how many waiting pods and resizes it came next at a look."""
        nodes = {f"nodes {what}": sum(what == one for _, one, _ in self.history) for what in ("added", "removed")}
        counts = {**nodes, "evictions": len(self.evictions), "resizes": self.resizes, **self.acts}
        return {what: count for what, count in counts.items() if count}

    def _note(self) -> None:
        for told in self.outlook.pods:
            what = f"{'resize' if told.resize else 'pod'}: {told.act}"
            self.acts[what] = self.acts.get(what, 0) + 1
        for name, phase in self.phases.items():
            scaled = self.scaled[name]
            own = self._pods_of(name)
            size = scaled.template
            if not phase.replicas or phase.replicas[-1] != scaled.replicas:
                phase.replicas.append(scaled.replicas)
            if not phase.requests or phase.requests[-1] != size:
                phase.requests.append(size)
            if self.now - phase.began >= SETTLED and not self._stuck(name):
                asked = sum(pod.spec.containers[0].resources.requests["cpu"].milli() for pod in own)
                phase.settled.append((scaled.replicas, asked))
        self._late()

    def _stuck(self, workload: str) -> bool:
        """Whether pods of it have no place, as no group may grow."""
        return any(not pod.spec.node_name for pod in self._pods_of(workload))

    def _late(self) -> None:
        """Pods without a place, and resizes that wait, of which nobody says why."""
        told = {} if self.untold else {pod.pod: pod for pod in self.outlook.pods}
        for name, pod in self.pods.items():
            since = parse_time(str(pod.metadata.creation_timestamp)) if not pod.spec.node_name else _waits_since(pod)
            waited = (self.moment() - since).total_seconds() if since is not None else 0.0
            one = told.get(name)
            if waited > 3 * SCAN and (one is None or not (one.because or one.due or one.to)):
                self.complaints.append(f"{name} waits and is told nothing at {self.now - BEGIN:.0f} s")
            elif (
                not pod.spec.node_name and waited > self.plan.provision + MARGIN and one and one.act is not Act.NOTHING
            ):
                self.complaints.append(f"{name} has no place after {waited:.0f} s, at {self.now - BEGIN:.0f} s: {one}")

    def _is_late(self, pod: Pod, waited: float) -> bool:
        return not pod.spec.node_name and waited > self.plan.provision + MARGIN

    def _unrest(self, began: float) -> Iterator[str]:
        yield from turned(self.history, began, self.now)
        for name, phase in self.phases.items():
            wish = self.plan.wishes[name]
            for text in phase_complaints(phase, wish.target, wish.least):
                yield f"{name}: {text}"


def _waits_since(pod: Pod) -> datetime | None:
    return ResizeState.of(pod).waits_since


def _patched(pod: Pod, operations: tuple[dict[str, Any], ...]) -> Pod:
    return convert(jsonpatch.apply(codec.to_dict(pod), list(operations)), Pod)


def _budget(workload: str, least: int) -> PodDisruptionBudget:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": workload}}}
    meta = {"name": workload, "namespace": NAMESPACE, "generation": 1}
    return convert({"metadata": meta, "spec": spec}, PodDisruptionBudget)


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
