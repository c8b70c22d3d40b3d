"""A cluster whose nodes come and go by the cluster autoscaler's machine: no process, no store, no waiting.

    time passes ─▶ machines become Nodes ─▶ the scheduler's `place` ─▶ a look ─▶ step ─▶ effects on groups, nodes, pods

A test says what the provider does wrong: it refuses, loses machines, or never makes them.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import format_time
from podfit.decide.capacity import look as seen
from podfit.decide.capacity.deletion import DeleteMachine, EvictPod, LookForPods, Removal, Taint, Wait, remove
from podfit.decide.capacity.look import Look, Looked, Moment, Sizes, State
from podfit.decide.capacity.machine import step
from podfit.decide.capacity.node_groups import Instance, InstanceState, NodeGroup, believed
from podfit.decide.capacity.outlook import Outlook
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.room.shrinkable import after
from podfit.decide.placement.place import Placed, place
from podfit.decide.placement.view import NodeInfo, Resident

BEGIN = 1_770_000_000.0
DAY = 86_400.0
STEP = 0.1


def template(name: str, cpu: str = "4", memory: str = "8Gi", **labels: str) -> Node:
    size = {"cpu": cpu, "memory": memory, "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return convert({"metadata": meta, "status": {"capacity": size, "allocatable": size}}, Node)


class Group(msgspec.Struct, kw_only=True):
    """Machines of it are Nodes `provision` seconds after they were asked for; None is never."""

    name: str
    like: Node
    least: int = 0
    most: int = 10
    target: int = 0
    provision: float | None = 60.0
    machines: dict[str, float] = msgspec.field(default_factory=dict)
    refuses: str = ""
    broken: str = ""
    """The error code of machines that cannot be made."""
    told: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the provider says instead of the truth."""


class World:
    def __init__(self, *groups: Group, settings: AutoscalerSettings | None = None) -> None:
        self.groups = {group.name: group for group in groups}
        self.settings = settings or AutoscalerSettings()
        self.now, self.made = BEGIN, 0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.state = State()
        self.events: list[tuple[str, str, str]] = []
        """Name of the object (empty for the status), reason and text."""
        self.history: list[tuple[float, str, str]] = []
        """When, `added` or `removed`, and the node."""
        self.outlook = Outlook()
        self.look: dict[str, Any] = {}
        """More of what the autoscaler sees, such as `recommended`."""
        self.evictions: list[str] = []
        self.shrunk: list[str] = []
        self.unshrinkable: dict[str, str] = {}
        """By pod, why the API does not shrink it."""
        self.marked: set[str] = set()
        """Nodes with the soft taint."""
        self.refused: dict[str, str] = {}
        """By pod, why it may not be evicted."""
        self._removals: dict[str, tuple[seen.RemoveNode, Removal, float]] = {}
        for group in groups:
            for _ in range(group.target):
                self._machine(group, at=BEGIN - DAY)
        self._register()

    # ------------------------------------------------------------------ what a test does

    def pod(self, name: str, cpu: str = "1", *, node: str = "", owner: str = "web", **more: Any) -> Pod:
        """One that waits, or runs on `node`. `more` is laid over its document."""
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": self.stamp(-60)}
        meta |= {"labels": {"app": owner}} | ({"ownerReferences": [reference]} if owner else {})
        meta |= more.pop("metadata", {})
        requests = {"cpu": cpu, "memory": "64Mi"}
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
            **more.pop("spec", {}),
        }
        made: Pod = convert({"metadata": meta, "spec": spec, "status": more.pop("status", {"phase": "Pending"})}, Pod)
        self.pods[name] = replace(made, spec=replace(made.spec, node_name=node)) if node else made
        return self.pods[name]

    def run(self, seconds: float, *, every: float | None = None) -> None:
        every = every or self.settings.interval
        until = self.now + seconds
        while self.now < until:
            self.now += every
            self.tick()

    def run_closely(self, seconds: float, see: Callable[[float], None]) -> None:
        """As `run`, with the scheduler at work between two looks, too; `see` is told every tenth of a second."""
        until, look = self.now + seconds, self.now + self.settings.interval
        while self.now < until:
            self.now += STEP
            if self.now >= look:
                look += self.settings.interval
                self.tick()
            else:
                self._register()
                self._schedule()
            see(STEP)

    def tick(self) -> None:
        self._register()
        self._schedule()
        self._go_on_removing()
        self.look_once()

    def look_once(self) -> None:
        self._take(Looked(self.looked()))

    # ------------------------------------------------------------------ the cluster

    def stamp(self, offset: float = 0.0) -> str:
        return format_time(datetime.fromtimestamp(self.now + offset, UTC))

    def _machine(self, group: Group, at: float) -> None:
        self.made += 1
        group.machines[f"{group.name}-{self.made}"] = at

    def _register(self) -> None:
        for group in self.groups.values():
            for name, began in group.machines.items():
                ready = group.provision is not None and not group.broken and self.now >= began + group.provision
                if name not in self.nodes and (ready or began < BEGIN):
                    self.nodes[name] = self.node(name, group.like)
                    self.history.append((self.now, "added", name))

    def node(self, name: str, like: Node, *, ready: bool = True) -> Node:
        labels = {**like.metadata.labels, "kubernetes.io/hostname": name}
        meta = replace(like.metadata, name=name, uid=name, labels=labels, creation_timestamp=self.stamp())
        made = convert({"conditions": [{"type": "Ready", "status": str(ready)}]}, type(like.status))
        status = replace(like.status, conditions=made.conditions)
        return replace(like, metadata=meta, spec=replace(like.spec, provider_id=f"fake:{name}"), status=status)

    def views(self) -> list[NodeInfo]:
        return [
            NodeInfo.of(node, (Resident.of(pod) for pod in self.pods.values() if pod.spec.node_name == name))
            for name, node in self.nodes.items()
        ]

    def _schedule(self) -> None:
        """As the scheduler does; a pod without a place says so."""
        waiting = [pod for pod in self.pods.values() if not pod.spec.node_name]
        views = {view.name: view for view in self.views()} if waiting else {}
        for pod in sorted(waiting, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.name)):
            verdict = place(Resident.of(pod, placed=False), list(views.values()))
            if isinstance(verdict, Placed):
                there = self.placed(replace(pod, spec=replace(pod.spec, node_name=verdict.node)))
                self.pods[pod.metadata.name] = there
                views[verdict.node] = views[verdict.node].plus(Resident.of(there))
            else:
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                status = convert({"phase": "Pending", "conditions": [condition]}, type(pod.status))
                self.pods[pod.metadata.name] = replace(pod, status=status)

    def placed(self, pod: Pod) -> Pod:
        """As its node makes it of a pod that was given to it."""
        return replace(pod, status=convert({"phase": "Running"}, type(pod.status)))

    def why_refused(self, pod: Pod) -> str:
        """Why the pod may not be evicted; empty when it may."""
        return self.refused.get(pod.metadata.name, "")

    def evicted(self, pod: Pod) -> None:
        """Its controller makes it anew; a test may do otherwise."""
        self.evictions.append(pod.metadata.name)
        meta = replace(pod.metadata, uid=f"{pod.metadata.uid}+", creation_timestamp=self.stamp())
        fresh = replace(pod, metadata=meta, spec=replace(pod.spec, node_name=""), status=type(pod.status)())
        self.pods[pod.metadata.name] = fresh

    # ------------------------------------------------------------------ the autoscaler

    def looked(self) -> Look:
        told = believed(self._told(group) for group in self.groups.values())
        members = {name: group.name for group in self.groups.values() for name in group.machines if name in self.nodes}
        return Look(
            nodes=tuple(self.nodes.values()),
            pods=tuple(self.pods.values()),
            groups=told.groups,
            refused=told.refused,
            members=members,
            **self.look,
        )

    def _told(self, group: Group) -> NodeGroup:
        instances = []
        for name in group.machines:
            creating = name not in self.nodes
            state = InstanceState.CREATING if creating else InstanceState.RUNNING
            code = group.broken if creating else ""
            instances.append(Instance(id=f"fake:{name}", state=state, error_code=code, error_message="no more of them"))
        whole = NodeGroup(
            id=group.name,
            min_size=group.least,
            max_size=group.most,
            target=group.target,
            instances=tuple(instances),
            template=group.like,
        )
        return replace(whole, **group.told)

    def _take(self, event: seen.Event) -> None:
        moment = Moment(datetime.fromtimestamp(self.now, UTC), self.now)
        self.state, effects = step(self.state, event, moment, self.settings)
        for effect in effects:
            for outcome in self._carried_out(effect):
                self._take(outcome)

    def _carried_out(self, effect: seen.Effect) -> Iterable[seen.Event]:
        match effect:
            case seen.Say():
                self._said(effect)
            case seen.ScaleUp():
                errors = {one.group.id: text for one in effect.increases if (text := self._more(one))}
                return (seen.ScaledUp(effect, errors),)
            case seen.LowerTarget():
                self.groups[effect.group].target -= effect.by
            case seen.DeleteInstances():
                for name in effect.ids:
                    self._gone(self.groups[effect.group], name.removeprefix("fake:"))
                return (seen.InstancesDeleted(effect),)
            case seen.RemoveNode():
                self._removals[effect.node.metadata.name] = (effect, remove(effect, self.settings.drain), self.now)
            case seen.ShrinkPods() | seen.MovePod():
                return (self._for_a_resize(effect),)
            case seen.SoftTaint():
                self._mark(effect)
            case seen.Report():
                self.outlook = effect.outlook
        return ()

    def _taint(self, name: str, key: str, effect: str, *, on: bool) -> None:
        node = self.nodes[name]
        made = convert({"taints": [{"key": key, "effect": effect}] if on else []}, type(node.spec)).taints
        taints = (*(taint for taint in node.spec.taints if taint.key != key), *made)
        self.nodes[name] = replace(node, spec=replace(node.spec, taints=taints))

    def _mark(self, soft: seen.SoftTaint) -> None:
        (self.marked.add if soft.on else self.marked.discard)(soft.node)
        self._taint(soft.node, "DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule", on=soft.on)

    def _move(self, effect: seen.MovePod) -> seen.Moved:
        why = self.why_refused(effect.pod)
        if not why:
            self.evicted(effect.pod)
        return seen.Moved(effect, why)

    def _for_a_resize(self, effect: seen.ShrinkPods | seen.MovePod) -> seen.Event:
        return self._move(effect) if isinstance(effect, seen.MovePod) else self._shrink(effect)

    def _shrink(self, effect: seen.ShrinkPods) -> seen.Shrunk:
        """As the API and the node do at once."""
        pods = [change.pod.metadata for change in effect.plan.shrinks]
        refusals = {meta.uid: self.unshrinkable[meta.name] for meta in pods if meta.name in self.unshrinkable}
        for change in effect.plan.shrinks if not refusals else ():
            smaller = after(change)
            meta = replace(smaller.metadata, generation=smaller.metadata.generation + 1)
            self.pods[meta.name] = replace(smaller, metadata=meta)
            self.shrunk.append(meta.name)
        return seen.Shrunk(effect, refusals)

    def _said(self, said: seen.Say) -> None:
        self.events.append((said.about.metadata.name if said.about is not None else "", said.reason, said.message))

    def _more(self, increase: seen.Increase) -> str:
        group = self.groups[increase.group.id]
        if group.refuses:
            return group.refuses
        group.target += increase.by
        for _ in range(increase.by):
            self._machine(group, self.now)
        return ""

    def _gone(self, group: Group, name: str) -> None:
        group.machines.pop(name, None)
        group.target -= 1
        if self.nodes.pop(name, None) is not None:
            self.history.append((self.now, "removed", name))

    def _go_on_removing(self) -> None:
        for name in list(self._removals):
            self._remove(name)

    def _remove(self, name: str) -> None:
        """As far as it goes without waiting; a wait is over at the next tick that is late enough."""
        job, actions, due = self._removals[name]
        if self.now < due:
            return
        answer: str | None = None
        try:
            while True:
                action = next(actions) if answer is None else actions.send(answer)
                if isinstance(action, Wait):
                    self._removals[name] = (job, actions, self.now + action.seconds)
                    return
                answer = self._done(action, job)
        except StopIteration as end:
            del self._removals[name]
            self._take(seen.Removed(name, job.group, end.value))

    def _done(self, action: object, job: seen.RemoveNode) -> str:
        name = job.node.metadata.name
        match action:
            case EvictPod(pod=pod):
                if why := self.why_refused(pod):
                    return why
                if pod.metadata.name in self.pods:
                    self.evicted(pod)
            case LookForPods(pods=pods):
                uids = {pod.metadata.uid for pod in self.pods.values()}
                return ", ".join(pod.metadata.name for pod in pods if pod.metadata.uid in uids)
            case DeleteMachine():
                self._gone(self.groups[job.group], name)
            case seen.Say():
                self._said(action)
            case Taint(on=on):
                self._taint(name, "ToBeDeletedByClusterAutoscaler", "NoSchedule", on=on)
        return ""

    # ------------------------------------------------------------------ what a test sees

    def reasons(self, about: str | None = None) -> list[str]:
        return [reason for name, reason, _ in self.events if about is None or name == about]

    def text(self, reason: str) -> str:
        """Of the last event with this reason."""
        return next(message for _, name, message in reversed(self.events) if name == reason)

    def running(self) -> list[str]:
        return sorted(name for name, pod in self.pods.items() if pod.spec.node_name)

    def count(self, group: str) -> int:
        return sum(name in self.nodes for name in self.groups[group].machines)


def recommended(pods: Iterable[Pod], **cpu: str) -> Sizes:
    """What a VPA says for pods by name."""
    made: dict[str, Mapping[str, Any]] = {}
    for pod in pods:
        if pod.metadata.name in cpu:
            size = convert({"requests": {"cpu": cpu[pod.metadata.name]}}, type(pod.spec.containers[0].resources))
            made[pod.metadata.uid] = {"c": size.requests}
    return made
