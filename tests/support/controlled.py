"""Replays what a real controller manager was asked and made of it: `node/controllers.json` of the golden data.

A scenario is a list of requests with their times; what a watch saw of each object is recorded as its first whole state
and what changed at the top level after that, of pods a projection. Here the same requests go at the same times of the
test's clock to a cluster with a simulated node, whose calls take as long as the real ones did.
"""

import asyncio
import itertools
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informer import Informer
from podfit.client.resource import dynamic
from podfit.client.rest import MERGE_PATCH
from podfit.core.errors import ApiError
from podfit.testing.clock import VirtualClock
from podfit.testing.cluster import Cluster

Document = dict[str, Any]
PHASE = 0.5
"""Of a second, when a scenario begins: some changes are told only where whole seconds differ."""
FOLLOWED = (
    ("", "v1", "pods"),
    ("", "v1", "events"),
    ("", "v1", "services"),
    ("", "v1", "endpoints"),
    ("", "v1", "configmaps"),
    ("", "v1", "serviceaccounts"),
    ("", "v1", "resourcequotas"),
    ("", "v1", "persistentvolumeclaims"),
    ("apps", "v1", "deployments"),
    ("apps", "v1", "replicasets"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "daemonsets"),
    ("apps", "v1", "controllerrevisions"),
    ("batch", "v1", "jobs"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("discovery.k8s.io", "v1", "endpointslices"),
)
FOREIGN = "openshift"
OTHERS = ("kubelet", "default-scheduler")
"""Components whose events are not of controllers."""
TOGETHER = 3
"""Milliseconds in which no controller got round to anything: objects made so close are made at once."""
SECONDS_AFTER = 14.0
"""Of the test's time after the last request."""
_TIMES = ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_IP = re.compile(r"\d+\.\d+\.\d+\.\d+")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN = re.compile(r"\{(?:rand|hash)\d+\}")
_TARGET = re.compile(r'("targetRef": \{"kind": "Pod", "name": "[^"{]*\{hash\d+\}-)\{rand\d+\}')
_NEVER_MADE = re.compile(r"(\{hash\d+\}-)[a-z0-9]{5}\b")
_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")


class Paces(dict[str, float]):
    """How long the calls of the simulated runtime take: as long as the real ones did, in the order of their calls."""

    def __init__(self, case: Document) -> None:
        super().__init__()
        took: dict[str, list[tuple[float, float]]] = {}
        for name, changes in case["objects"].items():
            if name.startswith("pods/"):
                for call, began, seconds in _calls(changes):
                    took.setdefault(call, []).append((began, seconds))
        self._left = {call: deque(seconds for _, seconds in sorted(pairs)) for call, pairs in took.items()}

    def get(self, name: str, default: Any = None) -> Any:
        left = self._left.get(name)
        return left.popleft() if left else default


def _calls(changes: Sequence[Document]) -> Iterator[tuple[str, float, float]]:
    """Of one pod: the calls, when they began and how many seconds they took, as far as its states tell."""
    marks: dict[str, float] = {}
    for change in changes:
        told, now = change.get("object") or {}, change["t_ms"] / 1000
        if "deletionTimestamp" in told.get("metadata", {}):
            marks.setdefault("stop", now)
        if ["PodReadyToStartContainers", "True", None] in told.get("conditions", ()):
            marks.setdefault("ready", now)
        if told.get("nodeName"):
            marks.setdefault("placed", now)
        if told.get("phase") == "Running" and "start" not in marks:
            marks["start"] = now
            yield "start_container", now, now - marks.get("ready", now)
            yield "run_sandbox", marks.get("placed", now), marks.get("ready", now) - marks.get("placed", now)
        yield from _ends(told, now, marks)
        if change["watch"] == "DELETED" and "end" in marks:
            yield "remove_sandbox", marks["end"], now - marks["end"]


def _ends(told: Document, now: float, marks: dict[str, float]) -> Iterator[tuple[str, float, float]]:
    """Of a container by itself and then of its sandbox, or of a pod that was asked to stop."""
    over = told.get("phase") in ("Succeeded", "Failed")
    states = {state for *_, state in told.get("containers", ())}
    if "running" in states:
        marks.setdefault("run", now)
    if "terminated" in states and not over and "run" in marks:
        marks["ended"] = now
        yield "run", marks["run"], now - marks.pop("run")
    if over and "ended" in marks:
        yield "stop_sandbox", marks["ended"], now - marks.pop("ended")
    if over and "stop" in marks and "end" not in marks:
        marks["end"] = now
        yield "stop_container", marks["stop"], now - marks["stop"]


class Answer(NamedTuple):
    code: int
    body: Document


class Seen(NamedTuple):
    """What became of a scenario: the answers, and of each object, by resource and name, its states in order."""

    answers: list[Answer]
    objects: dict[str, list[Document | None]]
    names: dict[str, str]
    """What stands here for the recorded names' random parts."""


class Scenario:
    """`case` is a recorded one."""

    def __init__(self, cluster: Cluster, case: Document) -> None:
        self._cluster, self._case = cluster, case
        self._namespace = f"g-{case['id']}"
        self._objects: dict[str, list[Document | None]] = {}
        self._names: dict[str, str] = {"{ns}": self._namespace}
        self._tasks: list[asyncio.Task[None]] = []

    def play(self) -> Seen:
        cluster = self._cluster
        cluster.run(self._follow())
        cluster.settle()
        cluster.run(cluster.client.create(Namespace(metadata=ObjectMeta(name=self._namespace))))
        cluster.run(self._foreign())
        cluster.settle()
        cluster.clock.advance(PHASE - cluster.clock.elapsed % 1 + 1)
        began, answers = cluster.clock.elapsed, list[Answer]()
        for together in _together(self._case["requests"]):
            cluster.clock.advance(began + together[0]["t_ms"] / 1000 - cluster.clock.elapsed)
            self._learn()
            answers += cluster.run(self._send_all(together))
        cluster.clock.advance(SECONDS_AFTER)
        self._learn()
        cluster.run(self._end())
        return Seen(answers, self._objects, self._names)

    async def _foreign(self) -> None:
        """What was in every namespace where it was recorded, so that quotas count it."""
        meta = ObjectMeta(name="openshift-service-ca.crt", namespace=self._namespace)
        await self._cluster.client.create(ConfigMap(metadata=meta, data={"service-ca.crt": ""}))

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self) -> None:
        for group, version, resource in FOLLOWED:
            kind = dynamic(group, version, resource)
            informer: Informer[Document] = Informer(
                self._cluster.client, kind, clock=VirtualClock(), namespace=self._namespace
            )
            informer.add_handler(
                add=lambda new, of=resource: self._seen(of, new, new),  # type: ignore[misc]  # bound now
                update=lambda _, new, of=resource: self._seen(of, new, new),  # type: ignore[misc]  # bound in the loop
                delete=lambda old, of=resource: self._seen(of, old, None),  # type: ignore[misc]  # bound in the loop
            )
            self._tasks.append(asyncio.get_running_loop().create_task(informer.run()))

    def _seen(self, resource: str, obj: Document, state: Document | None) -> None:
        self._objects.setdefault(f"{resource}/{obj['metadata']['name']}", []).append(state)

    async def _send_all(self, requests: Sequence[Document]) -> list[Answer]:
        return await asyncio.gather(*map(self._send, requests))

    async def _send(self, request: Document) -> Answer:
        path, body = self._said(request["path"]), request["body"]
        data = b"" if body is None else self._said(json.dumps(body)).encode()
        kind = MERGE_PATCH if request["method"] == "PATCH" else "application/json"
        try:
            response = await self._cluster.client.send(request["method"], path, data, content_type=kind)
            return Answer(response.status, json.loads(await response.read()))
        except ApiError as error:
            return Answer(error.code, error.status())

    def _said(self, text: str) -> str:
        for token, name in self._names.items():
            text = text.replace(token, name)
        return text

    def _learn(self) -> None:
        """Names by the order in which objects of a like name were made."""
        taken: set[str] = set()
        for recorded in self._case["objects"]:
            pattern = _pattern(recorded, self._names)
            for known in self._objects:
                found = pattern.fullmatch(known)
                if found is None or known in taken:
                    continue
                taken.add(known)
                for group, value in found.groupdict().items():
                    self._names.setdefault(f"{{{group}}}", value)
                break


def _together(requests: Sequence[Document]) -> Iterator[list[Document]]:
    together: list[Document] = []
    for request in requests:
        makes = request["method"] == "POST" and together and together[-1]["method"] == "POST"
        if together and not (makes and request["t_ms"] - together[-1]["t_ms"] <= TOGETHER):
            yield together
            together = []
        together.append(request)
    if together:
        yield together


def _pattern(recorded: str, names: Mapping[str, str]) -> re.Pattern[str]:
    """The recorded name, with what is known of its random parts."""
    parts, place = [], 0
    for token in _TOKEN.finditer(recorded):
        parts.append(re.escape(recorded[place : token.start()]))
        known = names.get(token[0])
        parts.append(re.escape(known) if known else f"(?P<{token[0][1:-1]}>[a-z0-9]+)")
        place = token.end()
    return re.compile("".join(parts) + re.escape(recorded[place:]))


# ---------------------------------------------------------------------- comparing


def _unnamed(value: Any) -> Any:
    """Without names of pods that never came to be."""
    return json.loads(_NEVER_MADE.sub(r"\1{rand}", json.dumps(value)))


def recorded_states(changes: Sequence[Document]) -> list[Document | None]:
    """Whole states, of what a watch's events told."""
    states: list[Document | None] = []
    whole: Document = {}
    for change in changes:
        if change["watch"] == "DELETED":
            states.append(None)
            continue
        whole = {**whole, **change["object"]}
        if not change["object"]:
            whole.pop("subsets", None)  # all that changed is that they went
        states.append(_unnamed(_settled(whole)))
    return states


def own_states(name: str, states: Sequence[Document | None], names: Mapping[str, str]) -> list[Document | None]:
    """In the form of the recorded ones, without repetitions."""
    told = [None if state is None else _unnamed(_settled(_plain(_projected(name, state), names))) for state in states]
    return [state for state, _ in itertools.groupby(told, key=lambda state: state)]


def own_name(recorded: str, names: Mapping[str, str]) -> str:
    """What an object of a recorded name is called here."""
    for token, name in names.items():
        recorded = recorded.replace(token, name)
    return recorded


def own_events(seen: Seen) -> list[Document]:
    """What controllers told, each time, in the form of the recorded events."""
    states = [states for name, states in seen.objects.items() if name.startswith("events/")]
    told = [_told(state) for state in itertools.chain(*states) if state is not None]
    plain = [_unnamed(_plain(event, seen.names)) for event in told if event["component"] not in OTHERS]
    return sorted(filter(_not_by_chance, plain), key=_by_text)


def recorded_events(case: Document) -> list[Document]:
    told = [
        {key: value for key, value in event.items() if key not in ("t_ms", "watch")}
        for event in case["events"]
        if event["component"] not in OTHERS
    ]
    return sorted(filter(_not_by_chance, map(_unnamed, told)), key=_by_text)


def _not_by_chance(event: Document) -> bool:
    """All claims are looked at every 15 seconds, from whenever the controller was started."""
    return not (event["reason"] == "FailedBinding" and event["count"] > 1)


def _told(event: Document) -> Document:
    about, source = event["involvedObject"], event.get("source", {})
    told = {
        "object": f"{about['kind']}/{about['name']}",
        "type": event["type"],
        "reason": event["reason"],
        "message": event["message"],
        "component": source.get("component") or event.get("reportingComponent"),
        "reportingComponent": event.get("reportingComponent"),
        "count": event.get("count"),
    }
    return {key: value for key, value in told.items() if value}


def _by_text(event: Document) -> str:
    return json.dumps(event, sort_keys=True)


def plain_answer(answer: Document, names: Mapping[str, str]) -> Document:
    found: Document = _plain(answer, names, version=True)
    return found


def missing(recorded: Sequence[Document | None], own: Sequence[Document | None]) -> list[int]:
    """Which of the recorded states are not among our own in their order."""
    longest = [[0] * (len(own) + 1) for _ in range(len(recorded) + 1)]
    for i, j in itertools.product(reversed(range(len(recorded))), reversed(range(len(own)))):
        same = recorded[i] == own[j]
        longest[i][j] = longest[i + 1][j + 1] + 1 if same else max(longest[i + 1][j], longest[i][j + 1])
    absent, j = [], 0
    for i, state in enumerate(recorded):
        place = next(
            (k for k in range(j, len(own)) if own[k] == state and longest[i + 1][k + 1] + 1 == longest[i][j]), None
        )
        if place is None:
            absent.append(i)
        else:
            j = place + 1
    return absent


def _projected(name: str, state: Document) -> Document:
    """Of a pod what was recorded; of everything else all but who manages its fields."""
    if not name.startswith("pods/"):
        return state
    spec, status = state["spec"], state.get("status", {})
    return {
        "metadata": state["metadata"],
        "nodeName": spec.get("nodeName"),
        "hostname": spec.get("hostname"),
        "subdomain": spec.get("subdomain"),
        "images": [container["image"] for container in spec["containers"]],
        "restartPolicy": spec.get("restartPolicy"),
        "env": [variable for container in spec["containers"] for variable in container.get("env", [])],
        "volumes": [volume["name"] for volume in spec.get("volumes", [])],
        "tolerations": spec.get("tolerations"),
        "affinity": spec.get("affinity"),
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "conditions": [
            [condition["type"], condition["status"], condition.get("reason")]
            for condition in status.get("conditions", [])
        ],
        "containers": [
            [container["name"], container["ready"], container["restartCount"], next(iter(container["state"]), None)]
            for container in status.get("containerStatuses", [])
        ],
    }


def _plain(value: Any, names: Mapping[str, str], *, version: bool = False) -> Any:
    """With words for what differs between runs."""
    if isinstance(value, dict):
        return dict(_members(value, names, version=version))
    if isinstance(value, list):
        return [_plain(item, names, version=version) for item in value]
    if not isinstance(value, str):
        return value
    if _TIME.fullmatch(value):
        return "{time}"
    if _UID.fullmatch(value):
        return "{uid}"
    if _IP.fullmatch(value):
        return "{ip}"
    if value.startswith("-----BEGIN"):
        return "{pem}"
    for token, name in sorted(names.items(), key=lambda pair: -len(pair[1])):
        value = value.replace(name, token)
    return "node1" if value == "simulated-1" else value


def _members(value: Document, names: Mapping[str, str], *, version: bool) -> Iterator[tuple[str, Any]]:
    for key, member in value.items():
        if key == "uid":
            yield key, "{uid}"
        elif key == "resourceVersion":
            if version:
                yield key, "{rv}"
        elif key != "managedFields" and not (key in _TIMES and "type" in value and not version):
            yield _plain(key, names), _plain(member, names, version=version)


def _settled(state: Document) -> Document:
    """Without random names of volumes. Of the equal pods behind a service it is chance which is ready first and which
    name comes first, so they have no names, and an order of their own."""
    match state.get("kind"):
        case "Endpoints":
            alike = _of_equal_pods(state)
            return {
                **alike,
                "subsets": [{k: _ordered(v) for k, v in subset.items()} for subset in alike.get("subsets", [])],
            }
        case "EndpointSlice":
            alike = _of_equal_pods(state)
            return {**alike, "endpoints": _ordered(alike.get("endpoints") or [])}
    if "volumes" not in state or "nodeName" not in state:
        return state
    return {**state, "volumes": [_VOLUME.sub("kube-api-access-{rand}", volume) for volume in state["volumes"]]}


def _of_equal_pods(state: Document) -> Document:
    alike: Document = json.loads(_TARGET.sub(r"\1{rand}", json.dumps(state, sort_keys=True)))
    return alike


def _ordered(values: Sequence[Any]) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
