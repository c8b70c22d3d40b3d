"""Replays recorded resizes (`node-behaviour.json`) against a node and an API server, and says how the answer differs.

A scenario is `{id, pod, otherPods, before, requests, podSequence, events}`: the pod as it stood, what was asked, every
state that a watch showed of it, and the events about it. Nothing here waits by itself: the node under test brings a
`wait` that lets things happen until something holds.

What a watch shows between two lasting states depends on how fast writers are, so ours may skip recorded states, never
add one. Figures that upstream gets wrong are compared as they should be: see `Expected`.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from support.golden import Case, golden_folder

State: TypeAlias = dict[str, Any]
Wait: TypeAlias = Callable[[Callable[[], object], str], Awaitable[None]]

FILE = "node-behaviour.json"
NAMESPACE, NODE = "default", "n1"
_RESIZE = ("PodResizePending", "PodResizeInProgress")
_NO_LIMIT = "9007199254740988Ki"
_USAGE = re.compile(r"below current usage \(\d+\)")
_POD_TOO = re.compile(r"\[attempting to set pod memory limit [^,]*, (attempting to set container [^]]*)\]")


def everything() -> list[Case]:
    recorded: list[Case] = json.loads((golden_folder() / FILE).read_text())["scenarios"]
    return recorded


def scenarios() -> list[Case]:
    """Those in which a node had to act."""
    return [case for case in everything() if "podSequence" in case]


def allocatable() -> dict[str, str]:
    """Of the recorded node."""
    recorded: dict[str, str] = json.loads((golden_folder() / FILE).read_text())["node"]["allocatable"]
    return {name: recorded[name] for name in ("cpu", "memory", "pods")}


# ---------------------------------------------------------------------- what is compared


def state_of(pod: Pod) -> State:
    """A pod in the words of the recording."""
    document = to_dict(pod)
    status = document["status"]
    conditions = status.get("conditions", [])
    kept = ("type", "observedGeneration", "status", "reason", "message")
    return {
        "generation": document["metadata"]["generation"],
        "observedGeneration": status.get("observedGeneration"),
        "phase": status["phase"],
        "resizeConditions": [
            {
                key: usage_aside(str(condition[key])) if key == "message" else condition[key]
                for key in kept
                if key in condition
            }
            for condition in conditions
            if condition["type"] in _RESIZE
        ],
        "ready": [
            [condition["type"], condition["status"], condition.get("reason")]
            for condition in conditions
            if condition["type"] in ("Ready", "ContainersReady")
        ],
        "containers": [
            _container(container)
            for container in (*status.get("initContainerStatuses", ()), *status["containerStatuses"])
        ]
        if "containerStatuses" in status
        else [],
        "podAllocatedResources": status.get("allocatedResources"),
        "podResources": status.get("resources"),
    }


def _container(status: State) -> State:
    name, details = next(iter(status["state"].items()))
    shown = {
        "name": status["name"],
        "resources": status.get("resources"),
        "allocatedResources": status.get("allocatedResources"),
        "restartCount": status["restartCount"],
        "ready": status["ready"],
        "state": name,
        "stateReason": details.get("reason"),
    }
    return {key: value for key, value in shown.items() if value is not None}


def _event(event: Event, watch: str) -> State:
    about = event.involved_object
    return {
        "watch": watch,
        "pod": about.name,
        "fieldPath": about.field_path or None,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "component": event.source.component,
        "count": event.count,
    }


def _plain(recorded: Iterable[State]) -> list[State]:
    """Without what the recording adds: when it came, and how."""
    return [{key: value for key, value in entry.items() if key not in ("t_ms", "type", "pod")} for entry in recorded]


@dataclass(frozen=True)
class Expected:
    """A recorded scenario as podfit has to behave in it."""

    case: Case

    @property
    def before(self) -> State:
        before: State = self.case["before"]
        return before

    @property
    def states(self) -> list[State]:
        """Recorded states, with the figures that upstream reports wrongly put right.

        A failed actuation shows at once, and not first in the status of the sync after it.
        """
        states = _corrected(_plain(self.case["podSequence"]))
        error = self._last_error()
        if error and states[-1]["resizeConditions"]:
            *others, progress = states[-1]["resizeConditions"]
            told = {**progress, "reason": "Error", "message": error}
            states += [] if "reason" in progress else [{**states[-1], "resizeConditions": [*others, told]}]
        return states

    @property
    def events(self) -> list[State]:
        kept = [{key: value for key, value in event.items() if key != "t_ms"} for event in self.case["events"]]
        return [event | {"message": usage_aside(event["message"])} for event in kept]

    def _last_error(self) -> str:
        last = self.events[-1] if self.events else {"reason": ""}
        return json.loads(last["message"].partition(": ")[2])["error"] if last["reason"] == "ResizeError" else ""


def usage_aside(text: str) -> str:
    """Which of the usages is printed, and whether the pod's was known yet, does not matter."""
    return _USAGE.sub("below current usage (N)", _POD_TOO.sub(r"\1", text))


def _corrected(recorded: list[State]) -> list[State]:
    """What the pod is allocated is the basis of its figures, so a memory request follows a resize, and a limit
    that was none before is not the kernel's figure for no limit. An init container's resize is in progress until
    it is done.
    """
    states = deepcopy(recorded)
    for state in states:
        resources = state["podResources"] or {}
        if not state["resizeConditions"] and state["phase"] == "Running" and "memory" in resources.get("requests", {}):
            resources["requests"]["memory"] = state["podAllocatedResources"]["memory"]
    for state, following in pairwise(states):
        if ((state["podResources"] or {}).get("limits") or {}).get("memory") == _NO_LIMIT:
            state["podResources"] = following["podResources"]
        if state["observedGeneration"] == state["generation"] and _has_to_come(state, following):
            progress = {"type": _RESIZE[1], "observedGeneration": state["generation"], "status": "True"}
            state["resizeConditions"] = state["resizeConditions"] or [progress]
    return states


def _has_to_come(state: State, following: State) -> bool:
    """Whether an init container that runs has other resources in the state that follows."""
    later = {container["name"]: container for container in following["containers"] if container["state"] == "running"}
    return state["phase"] == "Pending" and any(
        container["resources"] != later[container["name"]]["resources"]
        for container in state["containers"]
        if container["state"] == "running" and container["name"] in later
    )


# ---------------------------------------------------------------------- the replay


@dataclass
class Replay:
    """One scenario on one node. `play`, then look at `states` and `events`, which hold what came after `before`."""

    client: Client
    clock: Clock
    wait: Wait
    case: Case
    states: list[State] = field(default_factory=list)
    events: list[State] = field(default_factory=list)
    answers: list[tuple[int, str | None]] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name: str = self.case["pod"]["metadata"]["name"]
        self.expected = Expected(self.case)
        self.informers: tuple[Informer[Any], ...] = (
            Informer(self.client, Pod, clock=self.clock, namespace=NAMESPACE),
            Informer(self.client, Event, clock=self.clock, namespace=NAMESPACE),
        )
        self.informers[0].add_handler(add=self._saw, update=lambda _, pod: self._saw(pod), delete=self._gone)
        self.informers[1].add_handler(
            add=lambda event: self.events.append(_event(event, "ADDED")),
            update=lambda _, event: self.events.append(_event(event, "MODIFIED")),
        )

    def _saw(self, pod: Pod) -> None:
        self.pods[pod.metadata.name] = pod
        if pod.metadata.name == self.name:
            state = state_of(pod)
            if not self.states or self.states[-1] != state:
                self.states.append(state)

    def _gone(self, pod: Pod) -> None:
        self.pods.pop(pod.metadata.name, None)

    async def create(self) -> None:
        for pod in (*self.case["otherPods"], self.case["pod"]):
            await self.client.create(convert(_placed(pod), Pod))
            await self.wait(partial(self._stands, pod["metadata"]["name"]), f"{pod['metadata']['name']} does not start")

    async def set_up(self) -> None:
        """Other pods first, then the pod, until it stands as recorded; what was seen so far is forgotten."""
        await self.create()
        before = self.expected.before
        await self.wait(lambda: self.states[-1] == before, f"not as it was before: {before}")
        self.states, self.events = [before], []

    def _stands(self, name: str) -> bool:
        """Whether it runs, or for the pod itself, is there."""
        return name in self.pods and (name == self.name or self.pods[name].status.phase == "Running")

    async def play(self, at: Callable[[int], Awaitable[None]]) -> None:
        """Ask what was asked; `at` is told the recorded time of each request, in milliseconds, before it is made."""
        recorded = self.case["podSequence"]
        for request in self.case["requests"]:
            await at(request["t_ms"])
            await self._ask(request)
            later = [other["t_ms"] for other in self.case["requests"] if other["t_ms"] > request["t_ms"]]
            until = min(later, default=float("inf"))
            lasting = [state for state in recorded if state["t_ms"] < until]
            if lasting:
                wanted = self.expected.states[len(lasting) - 1 if until < float("inf") else -1]
                await self.wait(partial(self._shows, wanted), f"never came to {wanted}")
        told = len(self.expected.events)
        await self.wait(lambda: len(self.events) >= told, f"events are missing: {self.events}")

    def _shows(self, wanted: State) -> bool:
        return self.states[-1] == wanted

    async def _ask(self, request: State) -> None:
        if "action" in request:
            victim = request["action"].split()[2]
            await self.client.delete(Pod, victim, NAMESPACE)
            return
        if "PodResizeValidator disabled" in (self.case["note"] or ""):
            await self._promise_a_larger_node()
        try:
            await self.client.patch(Pod, request["pod"], NAMESPACE, request["body"], subresource="resize")
        except ApiError as error:
            self.answers.append((error.code, error.message))
        else:
            self.answers.append((200, None))

    async def _promise_a_larger_node(self) -> None:
        """The API server's idea of the node is out of date, so that the kubelet has to decide."""
        room = {"cpu": "1000", "memory": "1Ti"}
        await self.client.patch(Node, NODE, "", {"status": {"allocatable": room}}, subresource="status")

    # ------------------------------------------------------------------ what came of it

    def problems(self) -> list[str]:
        """How this differs from the recording; empty when it does not."""
        wanted = [(request["code"], request["message"]) for request in self.case["requests"] if "code" in request]
        found = [] if self.answers == wanted else [f"answers {self.answers}, recorded {wanted}"]
        said = [event | {"message": usage_aside(event["message"])} for event in self.events]
        if said != self.expected.events:
            found.append(f"events {_lines(said)}\nrecorded {_lines(self.expected.events)}")
        return [*found, *self._foreign_states()]

    def _foreign_states(self) -> list[str]:
        """Ours have to be recorded ones, in that order; the conditions that lasted must all be there."""
        recorded = [self.expected.before, *self.expected.states]
        place, found = 0, []
        for state in self.states:
            if state not in recorded[place:]:
                found.append(f"not recorded: {_short(state, recorded[min(place, len(recorded) - 1)])}")
                continue
            place += recorded[place:].index(state)
        shown = [state["resizeConditions"] for state in self.states]
        missing = [state for state in (conditions["resizeConditions"] for conditions in recorded) if state not in shown]
        return found + [f"never shown: {conditions}" for conditions in missing]


def _placed(pod: State) -> State:
    """On our node without a scheduler's help."""
    return {**pod, "metadata": {**pod["metadata"], "namespace": NAMESPACE}, "spec": {**pod["spec"], "nodeName": NODE}}


def _lines(events: Iterable[State]) -> str:
    return "\n".join(["", *(json.dumps(event) for event in events)])


def _short(state: State, other: State) -> str:
    return json.dumps({key: [value, "for", other[key]] for key, value in state.items() if other[key] != value})
