"""Replays recorded lives of pods (`node/pod-lifecycle.json`) and says how ours differ.

A life is `{id, pod, requests, podSequence, events, cleanupDelete_t_ms}`. Each is lived in a namespace of its own, at
the recorded pace or as much slower as the machine needs; then what two watches showed is compared: the last status as a
whole, and how phase, conditions and containers came to it. Between two lasting states a watch shows more or less,
depending on how fast writers are, so of two such stories each may leave out what the other tells; what both tell they
tell in the same order.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from podfit.api.core.v1.config.types import ConfigMap, Secret
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.client.informer import Informer
from podfit.client.rest import JSON_PATCH, STRATEGIC_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from support.background import beside
from support.golden import Case, golden_folder

Document: TypeAlias = dict[str, Any]

NO_LIMIT = "9007199254740988Ki"  # what cgroup v1 says where there is none; podfit says nothing
KINDS: dict[str, type[ConfigMap] | type[Secret]] = {"ConfigMap": ConfigMap, "Secret": Secret}
_TEMPLATES = (
    (re.compile(r"containerd://[0-9a-f]{64}"), "containerd://{cid}"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "{cid}"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "{time}"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "{ip}"),
    (re.compile(r"(OCI runtime create failed: .*?): unknown"), r"\1"),  # the recorded containerd is a newer one
    (re.compile(r"\b\d+(\.\d+)?m?s \(\d+(\.\d+)?m?s including waiting\)"), "{took}"),
)
FILE = "node/pod-lifecycle.json"
PATIENCE = 6.0
_ELSEWHERE = ("hostIP", "hostIPs", "podIP", "podIPs", "startTime", "nominatedNodeName")
_OF_CONTAINERS = ("image", "imageID", "volumeMounts", "containerID", "user")


def lives() -> list[Case]:
    found: list[Case] = json.loads((golden_folder() / FILE).read_text())["scenarios"]
    return found


def duration(case: Case) -> float:
    """Seconds until the recorder looked away."""
    ended = case["cleanupDelete_t_ms"]
    if ended is None:
        ended = max(entry["t_ms"] for part in ("podSequence", "events", "requests") for entry in case[part])
    return float(ended) / 1000


@dataclass
class Life:
    """One pod until the recorder looked away. `states` are its statuses, `events` what was told of it first."""

    client: Client
    clock: Clock
    case: Case
    namespace: str
    uid: str = ""
    states: list[Document] = field(default_factory=list)
    events: list[Document] = field(default_factory=list)

    async def live(self) -> None:
        pods = Informer(self.client, Pod, clock=self.clock, namespace=self.namespace)
        events = Informer(self.client, Event, clock=self.clock, namespace=self.namespace)
        pods.add_handler(add=self._saw, update=lambda _, pod: self._saw(pod), delete=self._saw)
        events.add_handler(add=lambda event: self.events.append(to_dict(event)))
        try:
            async with beside(pods.run(), events.run()):
                began = self.clock.monotonic()
                for request in sorted(self.case["requests"], key=lambda entry: entry["t_ms"]):
                    await self._until(began + request["t_ms"] / 1000)
                    began += await self._behind(request["t_ms"])
                    await self._ask(request)
                await self._until(began + duration(self.case))
                await self._behind(float("inf"))
                await self._all_told()
        finally:
            await self._clear()

    async def _until(self, when: float) -> None:
        await self.clock.sleep(max(0.0, when - self.clock.monotonic()))

    async def _behind(self, milliseconds: float) -> float:
        """Wait until the pod has come as far as the recorded one had by then; how many seconds that took."""
        came = [entry for entry in self.case["podSequence"] if entry["t_ms"] < milliseconds]
        wanted = tracks(self._plain(came[-1].get("status") or {})) if came else {}
        began = self.clock.monotonic()
        while not self._has(wanted) and self.clock.monotonic() - began < PATIENCE:
            await self.clock.sleep(0.05)
        return self.clock.monotonic() - began

    async def _all_told(self) -> None:
        began, wanted = self.clock.monotonic(), {_recorded_event(event) for event in self._known_events()}
        while wanted - {self._event(event) for event in self.events} and self.clock.monotonic() - began < PATIENCE:
            await self.clock.sleep(0.05)

    def _has(self, wanted: dict[str, str]) -> bool:
        now = tracks(self._plain(self.states[-1])) if self.states else {}
        return all(now.get(name) == value for name, value in wanted.items())

    def _saw(self, pod: Pod) -> None:
        self.uid = pod.metadata.uid
        self.states.append(to_dict(pod).get("status", {}))

    async def _clear(self) -> None:
        try:
            await self.client.patch(Pod, self.case["id"], self.namespace, {"metadata": {"finalizers": None}})
            await self.client.delete(Pod, self.case["id"], self.namespace, grace=0)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _ask(self, request: Document) -> None:
        method, name = request.get("method"), self.case["id"]
        match method:
            case "POST" if request["path"] == "pods":
                await self.client.create(convert(self._named(self.case["pod"]), Pod))
            case "POST" | "PUT":
                await self._put(request["body"])
            case "DELETE":
                await self.client.delete(Pod, name, self.namespace, grace=request["options"].get("gracePeriodSeconds"))
            case "PATCH":
                kind = JSON_PATCH if isinstance(request["body"], list) else STRATEGIC_PATCH
                await self.client.patch(
                    Pod,
                    name,
                    self.namespace,
                    request["body"],
                    content_type=kind,
                    subresource=request["sub"].removeprefix("/"),
                )

    async def _put(self, body: Document) -> None:
        kind = KINDS[body["kind"]]
        meta = {**body["metadata"], "namespace": self.namespace}
        made: ConfigMap | Secret = convert({**body, "metadata": meta}, kind)
        try:
            await self.client.create(made)
        except ApiError as error:
            if error.code != 409:
                raise
            change = {"data": body["data"]}
            await self.client.patch(kind, made.metadata.name, self.namespace, change)

    def _named(self, pod: Document) -> Document:
        text = json.dumps(pod).replace("{pod}", self.case["id"]).replace("{ns}", self.namespace)
        made: Document = json.loads(text)
        made["metadata"]["namespace"] = self.namespace
        return made

    # ------------------------------------------------------------------ what came of it

    def differences(self) -> Iterator[str]:
        recorded = [self._plain(entry.get("status") or {}) for entry in self.case["podSequence"]]
        ours = [self._plain(state) for state in self.states]
        last, wanted = ours[-1], recorded[-1]
        if last != wanted:
            yield f"the last status has {_unequal(last, wanted)}"
        for track in sorted({name for state in (*ours, *recorded) for name in tracks(state)}):
            told = _story(tracks(state).get(track) for state in ours)
            heard = _story(tracks(state).get(track) for state in recorded)
            if not _agree(told, heard):
                yield f"{track} went {told}, recorded {heard}"
        events = list(dict.fromkeys(self._event(event) for event in self.events))
        wanted_events = list(dict.fromkeys(_recorded_event(event) for event in self._known_events()))
        if events[: len(wanted_events)] != wanted_events:
            yield "events were\n    " + "\n    ".join(events) + "\n  recorded\n    " + "\n    ".join(wanted_events)

    def _known_events(self) -> Iterator[Document]:
        """Until the recorder deleted the pod, and first occurrences only."""
        for event in self.case["events"]:
            if event["watch"] == "ADDED" and event["t_ms"] <= duration(self.case) * 1000:
                yield event

    def _plain(self, status: Document) -> Document:
        text = json.dumps(status)
        for value, template in ((self.uid, "{uid}"), (self.namespace, "{ns}"), (self.case["id"], "{pod}")):
            text = text.replace(value, template) if value else text
        for pattern, template in _TEMPLATES:
            text = pattern.sub(template, text)
        plain: Document = json.loads(text)
        for name in _ELSEWHERE:
            plain.pop(name, None)
        over = plain.get("phase") in ("Succeeded", "Failed")  # upstream's figures are those of a cgroup that is going
        plain["resources"] = {} if over else _cpu_and_memory(plain.get("resources") or {})
        for condition in plain.get("conditions", []):
            for name in ("lastProbeTime", "lastTransitionTime"):
                condition.pop(name, None)
        for key in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
            for status in plain.get(key, []):
                for name in _OF_CONTAINERS:
                    status.pop(name, None)
                _settle(status)
        return plain

    def _event(self, event: Document) -> str:
        about, source = event["involvedObject"], event.get("source", {}).get("component") or event["reportingComponent"]
        path, message = about.get("fieldPath", ""), json.dumps(event["message"])
        for value, template in ((self.uid, "{uid}"), (self.namespace, "{ns}"), (self.case["id"], "{pod}")):
            message = message.replace(value, template)
        return _line(source, event["type"], event["reason"], path, message)


def _cpu_and_memory(resources: Document) -> Document:
    """Where upstream loses the other names while the pod runs, podfit keeps them."""
    kept = {
        kind: {name: amount for name, amount in amounts.items() if name in ("cpu", "memory") and amount != NO_LIMIT}
        for kind, amounts in resources.items()
    }
    return {kind: amounts for kind, amounts in kept.items() if amounts}


def _settle(status: Document) -> None:
    """A container that is to come again reads the same before and while it waits for that."""
    waiting = status["state"].get("waiting", {}).get("reason")
    if waiting in ("CrashLoopBackOff", "RunContainerError") and status["lastState"]:
        status["state"] = status["lastState"]
    if "terminated" in status["state"]:
        status["lastState"] = {}


def _recorded_event(event: Document) -> str:
    return _line(
        event["component"], event["type"], event["reason"], event.get("fieldPath", ""), json.dumps(event["message"])
    )


def _line(*words: str) -> str:
    text = " ".join(words)
    for pattern, template in _TEMPLATES:
        text = pattern.sub(template, text)
    return text


def tracks(status: Document) -> dict[str, str]:
    """What is followed from status to status, by name."""
    found = {"phase": f"{status.get('phase', '')} {status.get('reason', '')}".strip()}
    for condition in status.get("conditions", []):
        found[condition["type"]] = f"{condition['status']} {condition.get('reason', '')}".strip()
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        kind, details = next(iter(container["state"].items()))
        words = (kind, details.get("reason", ""), str(details.get("exitCode", "")), f"#{container['restartCount']}")
        found[f"container {container['name']}"] = " ".join(word for word in words if word)
    return found


def _story(values: Iterable[str | None]) -> list[str]:
    told: list[str] = []
    for value in values:
        if value is not None and (not told or told[-1] != value):
            told.append(value)
    return told


def _agree(told: list[str], heard: list[str]) -> bool:
    """What both tell they tell in the same order."""
    both = set(told) & set(heard)
    ours, theirs = _story(state for state in told if state in both), _story(state for state in heard if state in both)
    return bool(both or not told or not heard) and (_within(ours, theirs) or _within(theirs, ours))


def _within(short: list[str], long: list[str]) -> bool:
    rest = iter(long)
    return all(state in rest for state in short)


def _unequal(ours: Any, theirs: Any, path: str = "") -> str:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted(ours.keys() | theirs.keys())
        return ", ".join(
            _unequal(ours.get(key), theirs.get(key), f"{path}.{key}")
            for key in keys
            if ours.get(key) != theirs.get(key)
        )
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return ", ".join(_unequal(one, other, f"{path}[{n}]") for n, (one, other) in pairs if one != other)
    return f"{path}={json.dumps(ours)} for {json.dumps(theirs)}"
