"""Trace scripts of the node machine: commands, `----`, and what came of them.

    node cpu=4
    add web cpu=1
    ----
    persist web cpu=1
    admit web cpu=1

Blocks are separated by an empty line; `#` begins a comment. Commands, each one step but for `node`, `at` and `unsaved`:

    node cpu=4 memory=8Gi pods=110 pressure=DiskPressure     what the node has from now on
    at 30                                                    seconds since the beginning
    unsaved REASON, saved                                    nothing can be persisted; it can again
    add NAME cpu=1 memory=1Gi limit=2 priority=5 ...         admit pods: `add a cpu=1 + b cpu=2` is a batch
    update NAME cpu=2                                        the API's pod has another size, in a new generation; a
                                                             batch as with `add`
    actuated NAME                                            a sync found everything actuated, and said so
    failed NAME TEXT, done NAME                              how an actuation went
    due NAME [ending=c] [unreadable=TEXT], due NAME down     a sync is at what is allocated; the container runs, or not
                                                             `again=c` ends too and starts anew, `lost` is what
                                                             starts anew since the runtime has lost track of it
    noted NAME                                               what was asked to be noted last is
    did NAME                                                 the steps that were asked for last are done, and noted
    used NAME 90Mi, used NAME anything                       what was measured of both; or that it is enough
    ended NAME, deleted NAME, removed NAME, ready, retry TRIGGER

Shown: every effect in order, then each condition, queue and reservation that the block changed.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import ContainerResizePolicy, ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.cgroup.pod_cgroup import PodValues, pod_config
from podfit.decide.node import effects as do
from podfit.decide.node import events as on
from podfit.decide.node.effects import Effect
from podfit.decide.node.machine import step
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import PodResources, overlay, resizable
from podfit.decide.resize.memory_shrink import Memory
from podfit.decide.resize.steps import CheckMemory, GrowContainer, RecordPod, SetPod, Step, UpdateContainer, recorded
from podfit.decide.resize.verdict import NodeView
from support.placed import placed, resized
from support.pods import container, needs, pod

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SEPARATOR = "----"


class Trace:
    """Runs one script; `run` answers the script with what really came of it."""

    def __init__(self) -> None:
        self.state = NodeState(view=NodeView(allocatable={}, machine=Machine(memory=8 << 30)))
        self._now, self._unsaved = BEGIN, ""
        self._desired: dict[str, Pod] = {}
        self._effects: list[Effect] = []
        self._last: list[Effect] = []  # of all blocks so far

    def run(self, script: str) -> str:
        return "\n\n".join(map(self._block, script.strip("\n").split("\n\n"))) + "\n"

    def _block(self, block: str) -> str:
        lines = block.split("\n")
        given = lines[: lines.index(SEPARATOR)] if SEPARATOR in lines else lines
        commands = [line for line in given if line and not line.startswith("#")]
        if not commands:
            return block
        before, self._effects = self._shown(), []
        for command in commands:
            self._command(*command.split(maxsplit=1))
        after = self._shown()
        changed = [f"{what} {text}".rstrip() for what, text in after.items() if before.get(what) != text]
        changed += [f"no {what}" for what in before if what not in after]
        return "\n".join([*given, SEPARATOR, *map(_line, self._effects), *changed])

    def _command(self, name: str, rest: str = "") -> None:
        match name:
            case "node":
                self._node(dict(word.split("=", 1) for word in rest.split()))
            case "at":
                self._now = BEGIN + timedelta(seconds=float(rest))
            case "unsaved" | "saved":
                self._unsaved = rest
            case _:
                for event in self._events(name, rest):
                    self._step(event)

    def _step(self, event: on.Event) -> None:
        state, effects = step(self.state, event, now=self._now)
        if self._unsaved and any(isinstance(effect, do.Persist) for effect in effects):
            state, effects = step(self.state, event, now=self._now, unsaved=self._unsaved)
        self.state = state
        self._effects += effects
        self._last += effects

    def _node(self, words: dict[str, str]) -> None:
        pressure = tuple(filter(None, words.pop("pressure", "").split(",")))
        allocatable = {**self.state.view.allocatable, **{name: Quantity.parse(text) for name, text in words.items()}}
        self.state = replace(self.state, view=replace(self.state.view, allocatable=allocatable, pressure=pressure))

    def _events(self, name: str, rest: str) -> Iterator[on.Event]:  # noqa: C901  (a list of commands)
        who, _, text = rest.partition(" ")
        match name:
            case "add":
                yield on.PodsAdded(tuple(self._made(part) for part in rest.split(" + ")))
            case "update":
                yield on.PodsUpdated(tuple(map(self._updated, rest.split(" + "))))
            case "actuated":
                yield from self._actuated(self._desired[who])
            case "failed" | "done":
                yield on.ActuationEnded(self._desired[who], text)
            case "due":
                yield self._due(self._desired[who], text)
            case "noted":
                yield self._noted(who)
            case "did":
                yield from self._did(self._desired[who])
            case "used":
                yield self._used(text)
            case "ended":
                yield on.StatusGenerated(who, replace(self.state.pods[who].pod.status, phase="Succeeded"))
            case "deleted":
                yield on.PodsDeleted((who,))
            case "removed":
                yield on.PodsRemoved((who,))
            case "ready":
                yield on.SourcesReady()
            case "retry":
                yield on.Retry(rest)
            case _:
                raise ValueError(f"unknown command: {name} {rest}")

    def _made(self, text: str) -> Pod:
        name, _, words = text.strip().partition(" ")
        if name not in self._desired:
            priority = next((int(word[9:]) for word in words.split() if word.startswith("priority=")), None)
            restart = [word[8:] for word in words.split() if word.startswith("restart=")]
            size = " ".join(word for word in words.split() if not word.startswith(("priority=", "restart=")))
            policies = tuple(
                ContainerResizePolicy(resource_name=resource, restart_policy="RestartContainer") for resource in restart
            )
            made = replace(container("c"), resources=_size(size), resize_policy=policies)
            self._desired[name] = placed(pod(made, name=name, priority=priority))
        return self._desired[name]

    def _updated(self, text: str) -> Pod:
        name, _, size = text.strip().partition(" ")
        assert name in self.state.pods, f"{name} was not admitted"
        self._desired[name] = resized(self._desired[name], c=_size(size))
        return self._desired[name]

    def _actuated(self, desired: Pod) -> Iterator[on.Event]:
        uid, gates = desired.metadata.uid, self.state.view.gates
        now = self.state.allocated_pod(desired)
        record = {container.name: effective(now, container) for container in resizable(now, gates)}
        before = self.state.actuated.get(uid, PodResources())
        yield on.Actuated(uid, replace(before, containers=record, pod=now.spec.resources))
        yield on.SyncStarted(desired, tuple(record))
        statuses = tuple(
            ContainerStatus(
                name=container.name, resources=container.resources, allocated_resources=container.resources.requests
            )
            for container in now.spec.containers
        )
        yield on.StatusGenerated(uid, replace(desired.status, phase="Running", container_statuses=statuses))

    def _due(self, desired: Pod, text: str) -> on.Event:
        """The pod's cgroup holds what was actuated."""
        allocated, machine = self.state.allocated_pod(desired), self.state.view.machine
        ending, _, unreadable = text.partition("unreadable=")
        seen = overlay(allocated, self.state.actuated.get(desired.metadata.uid), machine.gates)
        cgroup = PodValues.of(pod_config(seen, machine))
        return on.ActuationDue(
            allocated,
            {} if text in ("down", "lost") else {"c": "i1"},
            on.Unreadable(unreadable) if unreadable else cgroup,
            ("c",) if ending.startswith(("ending=", "again=", "lost")) else (),
            {"c": "i1"} if ending.startswith(("again=", "lost")) else {},
        )

    def _noted(self, uid: str) -> on.Event:
        asked = next(effect for effect in reversed(self._last) if isinstance(effect, do.NoteRestarts))
        actuated = self.state.actuated.get(uid, PodResources())
        return on.Actuated(uid, replace(actuated, restarting=asked.instances))

    def _did(self, desired: Pod) -> Iterator[on.Event]:
        asked = next(effect for effect in reversed(self._last) if isinstance(effect, do.Actuate))
        actuated = self.state.actuated.get(desired.metadata.uid, PodResources())
        yield on.Actuated(desired.metadata.uid, recorded(actuated, asked.steps))
        yield on.ActuationEnded(desired)

    def _used(self, text: str) -> on.Event:
        asked = next(effect for effect in reversed(self._last) if isinstance(effect, do.MeasureMemory))
        used = None if text == "anything" else Quantity.parse(text).value()
        limits = asked.limits
        usage = Memory(None if limits.pod is None else used, dict.fromkeys(limits.containers, used))
        return on.MemoryMeasured(asked.due, None if used is None else usage)

    def _shown(self) -> dict[str, str]:
        """What lasts from one step to the next, by its name."""
        state = self.state
        shown = {
            f"{uid} {condition.type}": f"{condition.reason} {condition.message}".strip()
            for by_uid in (state.conditions.pending, state.conditions.in_progress)
            for uid, condition in sorted(by_uid.items())
        }
        shown |= {f"reserved {uid}": _amounts(counts.requests) for uid, counts in state.reservations.held.items()}
        return shown | ({"queue": " ".join(state.queue)} if state.queue else {})


def _size(words: str) -> ResourceRequirements:
    """`cpu=1 memory=1Gi` are requests, `limit=2` is the CPU limit, `most=1Gi` the one of memory."""
    amounts = dict(word.split("=", 1) for word in words.split())
    limits = {"cpu": amounts.pop("limit", ""), "memory": amounts.pop("most", "")}
    return needs(amounts, {name: limit for name, limit in limits.items() if limit} or None)


def _amounts(amounts: ResourceList) -> str:
    return " ".join(f"{name}={amount}" for name, amount in amounts.items())


def _sized(shown: Pod) -> str:
    return f"{shown.metadata.name} {_amounts(shown.spec.containers[0].resources.requests)}".rstrip()


def _line(effect: Effect) -> str:  # noqa: C901  (a list of effects)
    match effect:
        case do.Persist(allocations=allocations):
            pods = (f"{uid} {_amounts(kept.containers['c'].requests)}".rstrip() for uid, kept in allocations.items())
            return f"persist {' + '.join(pods)}"
        case do.Admitted(pod=shown):
            return f"admit {_sized(shown)}"
        case do.Rejected() | do.Unsaved():
            reason = effect.reason if isinstance(effect, do.Rejected) else "unsaved"
            return f"reject {effect.pod.metadata.name} {reason}: {effect.message}"
        case do.Preempting(pod=shown, preempts=preempts):
            return f"hold {shown.metadata.name} until {_names(preempts.victims)} ended"
        case do.RecordEvent():
            return f"event {effect.pod.metadata.name} {effect.type} {effect.reason}"
        case do.Requested(new=new):
            return f"requested {_sized(new)}"
        case do.Sync(uid=uid, trigger=trigger):
            return f"sync {uid} {trigger}"
        case do.End(uid=uid):
            return f"end {uid}"
        case do.WakeUp(seconds=seconds):
            return f"wake up after {seconds:g} s"
        case do.Count(metric=metric, label=label):
            return f"count {metric} {label}"
        case do.SyncAgain(uid=uid, seconds=seconds):
            return f"sync {uid} after {seconds:g} s"
        case do.NoteRestarts(pod=shown, instances=instances):
            noted = " ".join(f"{name}={instance}" for name, instance in instances.items())
            return f"note restarts {shown.metadata.name} {noted}".rstrip()
        case do.StopForResize(pod=shown, ending=ending, restarting=restarting):
            return f"stop {shown.metadata.name} ending={','.join(ending)} restarting={','.join(restarting)}"
        case do.MeasureMemory(due=due, limits=limits):
            return f"measure {due.pod.metadata.name} {_limits(limits)}"
        case do.Actuate(pod=shown, steps=steps):
            return f"actuate {shown.metadata.name} {'; '.join(map(_step, steps))}"
        case do.Grow(pods=pods):
            return f"grow {_names(pods)}"
        case do.Release(uids=uids) | do.Forget(uids=uids):
            return f"{type(effect).__name__.lower()} {' '.join(uids)}"


def _limits(limits: Memory) -> str:
    named = {"pod": limits.pod, **limits.containers}
    return " ".join(f"{name}={Quantity.of_bytes(limit)}" for name, limit in named.items() if limit is not None)


def _step(step: Step) -> str:
    match step:
        case SetPod(resource=resource, value=value):
            return f"pod {resource} {value}"
        case UpdateContainer(name=name, resource=resource):
            return f"{name} {resource}"
        case GrowContainer(name=name, resource=resource, value=value):
            return f"{name} kernel {resource} {value}"
        case RecordPod():
            return "record pod"
        case CheckMemory():
            return "check memory"


def _names(pods: tuple[Pod, ...]) -> str:
    return " ".join(pod.metadata.name for pod in pods) or "others"


def check(path: Path) -> None:
    """With PODFIT_REWRITE_TRACES set the file is written anew, to be read and committed."""
    script = path.read_text()
    really = Trace().run(script)
    if os.environ.get("PODFIT_REWRITE_TRACES"):
        path.write_text(really)
    assert really == script
