"""A random situation on a node, what a plan promises in it, and what then happens."""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from podfit.answers.plan import DEFERRED, FITS, INFEASIBLE, REFUSED, UNCHANGED, Plan, plan
from podfit.answers.snapshot import ENDED, Reader
from podfit.answers.target import POD, Target
from podfit.answers.wish import Amount, Wish, WishError, apply
from podfit.api.codec import convert
from podfit.api.core.events import Event
from podfit.api.core.limits import LimitRange, ResourceQuota
from podfit.api.core.namespaces import Namespace
from podfit.api.core.pods import Pod
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity


def busy(pod: Pod) -> bool:
    """Whether the node has still something to do with it, however long that takes on a busy machine."""
    if pod.status.phase in ENDED:
        return False
    behind = pod.status.observed_generation < pod.metadata.generation
    under_way = any(each.type == "PodResizeInProgress" and each.reason != "Error" for each in pod.status.conditions)
    return pod.status.phase == "Pending" or behind or under_way


class World(Protocol):
    """The node that the pods are on, and how to wait until nothing happens any more."""

    node: str
    container: dict[str, Any]
    client: Client

    async def rest(self, namespace: str) -> None: ...


@dataclass
class Outcome:
    """What became of a pod: the words of `plan`, from what the API and the node say."""

    verdict: str
    text: str
    code: int
    restarts: frozenset[str]


class Situation:
    """A node with a few pods on it, and a wish for one of them, all from one seed."""

    def __init__(self, seed: int, world: World) -> None:
        self.random = random.Random(seed)
        self.world, self.client = world, world.client
        self.namespace = f"shop-{seed}"
        self.names = [f"p{seed}-{number}" for number in range(self.random.randint(2, 5))]

    async def prepare(self, account: Callable[[str], Awaitable[None]]) -> None:
        """`account` sees to the namespace's service account, without which it takes no pods."""
        await self.client.create(convert({"metadata": {"name": self.namespace}}, Namespace))
        await account(self.namespace)
        for document, kind in self._policies():
            await self.client.create(convert(document, kind))
        for name in self.names:
            with suppress(ApiError):  # a quota or LimitRange of this situation has no room for it
                await self.client.create(convert(self._pod(name), Pod))
        await self.world.rest(self.namespace)
        if self.random.random() < 0.4:  # something waits already
            with suppress(ApiError, WishError):
                await self._patch(self.random.choice(self.names), self._wish())
            await self.world.rest(self.namespace)

    def _policies(self) -> Iterator[tuple[dict[str, Any], type[Any]]]:
        meta = {"name": "policy", "namespace": self.namespace}
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
            "nodeName": self.world.node, "containers": containers, "automountServiceAccountToken": False}
        if self.random.random() < 0.3:
            spec["priorityClassName"] = pick(("low", "high"))
        if self.random.random() < 0.2:
            spec["resources"] = {"requests": {"cpu": "2", "memory": "600Mi"}, "limits": {"cpu": "2", "memory": "600Mi"}}
        return {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}

    def _container(self, name: str) -> dict[str, Any]:
        pick = self.random.choice
        amounts = {"cpu": pick(("100m", "400m", "900m")), "memory": pick(("64Mi", "200Mi"))}
        resources = pick((
            {"requests": amounts},
            {"requests": amounts, "limits": amounts},
            {"requests": amounts, "limits": {"cpu": "1", "memory": "256Mi"}},
            {"requests": {"cpu": amounts["cpu"]}, "limits": {"memory": "300Mi"}},
            {},
        ))  # fmt: skip
        policy = [{"resourceName": each, "restartPolicy": pick(("NotRequired", "RestartContainer"))}
                  for each in ("cpu", "memory") if self.random.random() < 0.5]  # fmt: skip
        return {"name": name, **self.world.container, "resources": resources, "resizePolicy": policy}

    def _wish(self) -> Wish:
        pick = self.random.choice
        cpu = pick((None, "50m", "500m", "1200m", "3", "9"))
        memory = pick((None, None, "32Mi", "128Mi", "1Gi"))
        limit = pick((None, None, None, "1", "2"))
        amounts = {}
        if cpu or limit:
            amounts["cpu"] = Amount(Quantity.parse(cpu) if cpu else None, Quantity.parse(limit) if limit else None)
        if memory:
            amounts["memory"] = Amount(Quantity.parse(memory))
        return Wish(amounts, pick(("", "c0", "c0")))

    async def promise(self) -> tuple[str, Wish, Plan]:
        pods = (await self.client.list(Pod, self.namespace)).items
        running = [pod.metadata.name for pod in pods if pod.status.phase == "Running"]
        name, wish = self.random.choice(running), self._wish()
        found = await Reader(self.client, self.namespace).read(Target(POD, name))
        return name, wish, plan(found, wish)

    async def deed(self, name: str, wish: Wish) -> Outcome:
        client = self.client
        before = await client.get(Pod, name, self.namespace)
        try:
            await self._patch(name, wish)
        except ApiError as error:
            return Outcome(REFUSED, error.message, error.code, frozenset())
        await self.world.rest(self.namespace)
        after = await client.get(Pod, name, self.namespace)
        if after.metadata.generation == before.metadata.generation:
            return Outcome(UNCHANGED, "", 0, frozenset())
        pending = next((each for each in after.status.conditions if each.type == "PodResizePending"), None)
        if pending is not None:
            verdict = {"Deferred": DEFERRED, "Infeasible": INFEASIBLE}[pending.reason]
            return Outcome(verdict, pending.message, 0, frozenset())
        counts = {each.name: each.restart_count for each in before.status.container_statuses}
        again = {each.name for each in after.status.container_statuses if each.restart_count > counts[each.name]}
        return Outcome(FITS, "", 0, frozenset(again))

    async def _patch(self, name: str, wish: Wish) -> None:
        pod = await self.client.get(Pod, name, self.namespace)
        await self.client.update(apply(wish, pod), subresource="resize")

    async def granted(self) -> list[str]:
        """Names of pods in the order in which their resizes were started."""
        events = (await self.client.list(Event, self.namespace)).items
        started = [each for each in events if each.reason == "ResizeStarted"]
        started.sort(key=lambda each: int(each.metadata.resource_version))
        return [each.involved_object.name for each in started]


async def compared(seed: int, situation: Situation) -> str:
    try:
        name, wish, promised = await situation.promise()
    except WishError:
        return "several containers"
    already = len(await situation.granted())
    told = promised.pods[0]
    became = await situation.deed(name, wish)
    where = f"seed {seed}, pod {name}: promised {told}, became {became}"
    assert told.verdict == became.verdict, where
    assert told.code == became.code, where
    if told.verdict in (REFUSED, DEFERRED, INFEASIBLE):
        assert told.text == became.text, where
    if told.verdict == FITS:
        assert {each.container for each in told.restarts} == became.restarts, where
    assert list(promised.order) == (await situation.granted())[already:], where
    return told.verdict
