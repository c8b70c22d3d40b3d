"""A random situation on a node, what a plan promises in it, and what then happens."""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.plan.amounts import Amount, RequestError
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest, apply
from podfit.answers.plan.result import (
    CRASH,
    DEFERRED,
    ENDED,
    ERROR,
    FITS,
    INFEASIBLE,
    REFUSED,
    UNCHANGED,
    UNSCHEDULABLE,
    Plan,
)
from podfit.answers.why.pods import PodWhy, why_pod
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.phase import ENDED as OVER
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.node.room.minimum import MINIMUM
from podfit.decide.pod.resize_state import ResizeState

LESS = "cannot decrease memory limits"
KILLED = ("OOMKilled", "StartError")
HEAVY = 24 << 20
"""Bytes that containers use in a situation near limits: less than any limit that they are given."""
THEMES = ("special", "room", "near", "room", "special", "", "waits", "")
"""What a situation is about, by its seed: a pod that is not on the node any more or not yet, one that matters more than
others, usage near the new limit, a resize that waits already, or nothing in particular.
"""
FULL = ("room", "waits")
VERDICTS = {"Deferred": DEFERRED, "Infeasible": INFEASIBLE}
NOW = parse_time("2026-01-01T00:00:00Z")


def busy(pod: Pod) -> bool:
    """Whether the node has still something to do with it, however long that takes on a busy machine."""
    if pod.status.phase in OVER:
        return False
    behind = pod.status.observed_generation < pod.metadata.generation
    under_way = any(
        condition.type == "PodResizeInProgress" and condition.reason != "Error" for condition in pod.status.conditions
    )
    return bool(pod.spec.node_name) and (pod.status.phase == "Pending" or behind or under_way)


class World(Protocol):
    """The node that the pods are on, and how to wait until nothing happens any more."""

    node: str
    steady: bool
    """Whether usage stays as it was when it was looked at."""
    container: dict[str, Any]
    client: Client
    brief: dict[str, Any]
    """What of a container makes it one that ends."""
    heavy: dict[str, Any]
    """What of a container makes it use `HEAVY` bytes of memory."""

    async def rest(self, namespace: str) -> None: ...

    async def added(self, namespace: str) -> None:
        """After each pod: those of one moment would be admitted in the order of their UIDs."""
        ...

    async def look(self, namespace: str, name: str) -> Snapshot:
        """What a plan is made of."""
        ...

    async def use(self, memory: int) -> None:
        """Bytes that containers use; until that is known, where they do so by themselves."""
        ...

    async def tried_again(self) -> bool:
        """Until the node has tried again what waits; False where that would take minutes."""
        ...

    async def end(self, name: str) -> None:
        """Until the container of this pod, which is not started again, is over."""
        ...


@dataclass
class Outcome:
    """What became of a pod: the words of `plan`, from what the API and the node say."""

    verdict: str
    text: str
    code: int
    restarts: frozenset[str]


class Situation:
    """A node with a few pods on it, and a request for one of them, all from one seed."""

    def __init__(self, seed: int, world: World) -> None:
        self.random = random.Random(seed)
        self.world, self.client = world, world.client
        self.namespace = f"shop-{seed}"
        self.theme = THEMES[seed % len(THEMES)]
        self.names = [f"p{seed}-{number}" for number in range(self.random.randint(2, 6))]
        self.again: tuple[str, ResizeRequest] | None = None
        self.special = ""

    async def prepare(self, account: Callable[[str], Awaitable[None]]) -> None:
        """`account` sees to the namespace's service account, without which it takes no pods."""
        await self.client.create(convert({"metadata": {"name": self.namespace}}, Namespace))
        await account(self.namespace)
        for document, kind in self._policies():
            await self.client.create(convert(document, kind))
        for name in self.names:
            with suppress(ApiError):  # a quota or LimitRange of this situation has no room for it
                await self.client.create(convert(self._pod(name), Pod))
            await self.world.added(self.namespace)
        await self.world.rest(self.namespace)
        if self.theme == "special":
            await self._special()
        if self.theme == "near":
            await self.world.use(HEAVY)
        if self.random.random() < (0.9 if self.theme == "waits" else 0.3):  # something waits, fails or is done already
            name, request = self.random.choice(self.names), self._request()
            with suppress(ApiError, RequestError):
                await self._patch(name, request)
                if self.random.random() < 0.6:
                    self.again = name, request
            await self.world.rest(self.namespace)

    async def _special(self) -> None:
        """A pod without a node, or one that has ended, which is asked about as any other."""
        kind = self.random.choice(("gated", "huge", "ended"))
        name = f"{self.names[0]}-{kind}"
        document = self._pod(name)
        spec = document["spec"]
        if kind == "ended":
            spec |= {
                "restartPolicy": "Never",
                "containers": [{**self._container("c0"), "resizePolicy": [], **self.world.brief}],
            }
        else:
            del spec["nodeName"]
            spec |= {"schedulingGates": [{"name": "example.com/wait"}]} if kind == "gated" else {}
            if kind == "huge":
                spec["containers"][0]["resources"] = {"requests": {"cpu": "7"}}
                spec.pop("resources", None)
        with suppress(ApiError):
            await self.client.create(convert(document, Pod))
            await self.world.rest(self.namespace)
            if kind == "ended":
                await self.world.end(name)
                await self.world.rest(self.namespace)
            self.names.append(name)
            self.special = name

    def _policies(self) -> Iterator[tuple[dict[str, Any], type[Any]]]:
        meta = {"name": "policy", "namespace": self.namespace}
        if self.theme in FULL:
            return
        if self.random.random() < 0.2:
            defaults = {"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}
            limits = [{"type": "Container", "max": {"cpu": "1500m"}, **defaults}]
            yield {"metadata": meta, "spec": {"limits": limits}}, LimitRange
        if self.random.random() < 0.2:
            hard = {"requests.cpu": "3", "requests.memory": "8Gi"}
            status = {"hard": hard, "used": {"requests.cpu": "0", "requests.memory": "0"}}
            yield {"metadata": meta, "spec": {"hard": hard}, "status": status}, ResourceQuota

    def _pod(self, name: str) -> dict[str, Any]:
        pick = self.random.choice
        containers = [self._container(f"c{number}") for number in range(pick((1, 1, 2)))]
        spec: dict[str, Any] = {
            "nodeName": self.world.node,
            "containers": containers,
            "automountServiceAccountToken": False,
        }
        full = self.theme in FULL
        if full or self.random.random() < 0.5:
            spec["priorityClassName"] = "high" if name == self.names[0] else pick(("low", "high"))
        if not full and self.random.random() < 0.2:
            spec["resources"] = {"requests": {"cpu": "2", "memory": "600Mi"}, "limits": {"cpu": "2", "memory": "600Mi"}}
        minimum = pick(("cpu=50m", "cpu=200m,memory=64Mi", "cpu=100m,restart=allowed", "cpu:much"))
        annotations = {MINIMUM: minimum} if full or self.random.random() < 0.5 else {}
        return {"metadata": {"name": name, "namespace": self.namespace, "annotations": annotations}, "spec": spec}

    def _container(self, name: str) -> dict[str, Any]:
        pick = self.random.choice
        amounts = {"cpu": pick(("100m", "400m", "900m")), "memory": pick(("64Mi", "200Mi"))}
        resources = pick(
            (
                {"requests": amounts},
                {"requests": amounts, "limits": amounts},
                {"requests": amounts, "limits": {"cpu": "1", "memory": "256Mi"}},
                {"requests": {"cpu": amounts["cpu"]}, "limits": {"memory": "300Mi"}},
                *(() if self.theme in FULL else ({},)),
            )
        )
        policy = [
            {"resourceName": resource, "restartPolicy": pick(("NotRequired", "RestartContainer"))}
            for resource in ("cpu", "memory")
            if self.random.random() < 0.5
        ]
        heavy = self.world.heavy if self.theme == "near" else {}
        return {"name": name, **self.world.container, **heavy, "resources": resources, "resizePolicy": policy}

    def _request(self) -> ResizeRequest:
        pick = self.random.choice
        if self.theme == "near":
            new = Quantity.parse(pick(("4Mi", "10Mi", "16Mi", "20Mi", "32Mi", "48Mi")))
            return ResizeRequest({"memory": pick((Amount(new), Amount(Quantity.parse("4Mi"), new)))}, "c0")
        if self.theme in FULL:
            return ResizeRequest({"cpu": Amount(Quantity.parse(pick(("1200m", "2", "3"))))}, "c0")
        cpu = pick((None, "50m", "500m", "1200m", "2", "3", "9"))
        memory = pick((None, None, "32Mi", "128Mi", "1Gi"))
        limit = pick((None, None, None, "1", "2"))
        amounts = {}
        if cpu or limit:
            amounts["cpu"] = Amount(Quantity.parse(cpu) if cpu else None, Quantity.parse(limit) if limit else None)
        if memory:
            amounts["memory"] = Amount(Quantity.parse(memory))
        return ResizeRequest(amounts, pick(("", "c0", "c0")))

    async def promise(self) -> tuple[str, ResizeRequest, Plan]:
        pods = (await self.client.list(Pod, self.namespace)).items
        running = [pod.metadata.name for pod in pods if pod.status.phase == "Running"]
        first = self.theme == "room" and self.names[0] in running
        name, request = self.special or (self.names[0] if first else self.random.choice(running)), self._request()
        if self.again and self.again[0] in running and not self.special:
            name, request = self.again
        return name, request, plan(await self.world.look(self.namespace, name), request)

    async def deed(self, name: str, request: ResizeRequest) -> Outcome:
        client = self.client
        before = await client.get(Pod, name, self.namespace)
        try:
            await self._patch(name, request)
        except ApiError as error:
            return Outcome(REFUSED, error.message, error.code, frozenset())
        await self.world.rest(self.namespace)
        after = await client.get(Pod, name, self.namespace)
        repeated = after.metadata.generation == before.metadata.generation
        if after.status.phase in OVER:
            return Outcome(ENDED, "", 0, frozenset())
        if not after.spec.node_name:
            told = next(
                (condition.message for condition in after.status.conditions if condition.type == "PodScheduled"), ""
            )
            return Outcome(UNSCHEDULABLE, told, 0, frozenset())
        conditions = {condition.type: condition for condition in after.status.conditions}
        pending, progress = conditions.get("PodResizePending"), conditions.get("PodResizeInProgress")
        if pending is not None:
            return Outcome(VERDICTS[pending.reason], pending.message, 0, frozenset())
        if progress is not None and progress.reason == "Error":
            return Outcome(ERROR, progress.message, 0, frozenset())
        if repeated:
            return Outcome(UNCHANGED, "", 0, frozenset())
        killed = [status.name for status in after.status.container_statuses if _killed(status)]
        if killed:
            return Outcome(CRASH, ", ".join(killed), 0, frozenset())
        counts = {status.name: status.restart_count for status in before.status.container_statuses}
        again = {
            status.name
            for status in after.status.container_statuses
            if status.restart_count > counts.get(status.name, 0)
        }
        return Outcome(FITS, "", 0, frozenset(again))

    async def _patch(self, name: str, request: ResizeRequest) -> None:
        pod = await self.client.get(Pod, name, self.namespace)
        await self.client.update(apply(request, pod), subresource="resize")

    async def explain(self) -> None:
        """Of each pod whose resize waits `why` gives the verdict that the node comes to when it tries it again: what it
        said last may be of a moment when others had less. And once all is at rest, `why` promises no neighbour's shrink
        or end that is still to come."""
        told: dict[str, PodWhy] = {}
        for pod in (await self.client.list(Pod, self.namespace)).items:
            if ResizeState.of(pod).pending is None or pod.status.phase in OVER:
                continue
            snapshot = await self.world.look(self.namespace, pod.metadata.name)
            told[pod.metadata.name] = why = why_pod(snapshot.pods[0], snapshot, NOW)
            assert "there is room now" not in why.next, why
            assert not [text for text in why.room if " shrinks " in text or text.endswith(" is evicted")], why
        again = bool(told) and await self.world.tried_again()
        for name, why in told.items():
            pending = ResizeState.of(await self.client.get(Pod, name, self.namespace)).pending
            assert pending is not None, why
            assert VERDICTS[pending.reason] == why.state, (why, pending)
            assert pending.message == why.message or not again, (why, pending)

    async def granted(self) -> list[str]:
        """Names of pods in the order in which their resizes were started."""
        events = (await self.client.list(Event, self.namespace)).items
        started = [event for event in events if event.reason == "ResizeStarted"]
        started.sort(key=lambda event: int(event.metadata.resource_version))
        return [event.involved_object.name for event in started]


def _killed(status: ContainerStatus) -> bool:
    """Whether it did not live with the memory that it was started with."""
    ends = (status.state.terminated, status.last_state.terminated)
    return any(end is not None and end.reason in KILLED for end in ends)


async def compared(seed: int, situation: Situation) -> str:
    try:
        name, request, promised = await situation.promise()
    except RequestError:
        return "several containers"
    already = len(await situation.granted())
    told = promised.pods[0]
    became = await situation.deed(name, request)
    where = f"seed {seed}, pod {name}: promised {told}, became {became}"
    assert told.verdict == became.verdict, where
    assert told.code == became.code, where
    if told.verdict in (REFUSED, DEFERRED, INFEASIBLE, UNSCHEDULABLE):
        assert told.text == became.text, where
    if told.verdict == ERROR:
        assert {text.partition(": ")[0] for text in (told.text, became.text)} == {LESS}, where
        assert told.text == became.text or not situation.world.steady, where
    if told.verdict == FITS:
        assert {restart.container for restart in told.restarts} == became.restarts, where
    granted = (await situation.granted())[already:]
    if told.verdict == ENDED:  # the kubelet says that its resize started, as upstream's (node/traces/ended.txt)
        granted = [other for other in granted if other != name]
    if told.node or told.verdict in (REFUSED, UNSCHEDULABLE):  # else: whom preemption helps besides is not promised
        assert list(promised.order) == granted, where
    await situation.explain()
    kind = "repeated " if told.repeated else "room made, " if told.gifts or told.ends else ""
    return f"{kind}{told.verdict}"
