"""What a plan promises against what then happens: random situations on a node that decides for itself."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import IDENTITY, Node
from podfit.answers.plan import DEFERRED, FITS, INFEASIBLE, REFUSED, UNCHANGED, Plan, plan
from podfit.answers.snapshot import Reader
from podfit.answers.target import POD, Target
from podfit.answers.wish import Amount, Wish, WishError, apply
from podfit.api.codec import convert
from podfit.api.core.events import Event
from podfit.api.core.limits import LimitRange, ResourceQuota
from podfit.api.core.pods import Pod
from podfit.api.scheduling import PriorityClass
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from support.server import Server, running_server

NAMESPACE = "shop"


@dataclass
class Outcome:
    """What became of a pod: the words of `plan`, from what the API and the node say."""

    verdict: str
    text: str
    code: int
    restarts: frozenset[str]


class Situation:
    """A node with a few pods on it, and a wish for one of them, all from one seed."""

    def __init__(self, seed: int, node: Node, server: Server) -> None:
        self.random = random.Random(seed)
        self.node, self.server = node, server
        self.names = [f"p{seed}-{number}" for number in range(self.random.randint(2, 5))]

    async def prepare(self) -> None:
        await self.server.namespace(NAMESPACE)
        for document, kind in self._policies():
            await self.server.client.create(convert(document, kind))
        for name in self.names:
            with suppress(ApiError):  # a quota or LimitRange of this situation has no room for it
                await self.server.client.create(convert(self._pod(name), Pod))
        await self._come_to_rest()
        if self.random.random() < 0.4:  # something waits already
            with suppress(ApiError, WishError):
                await self._patch(self.random.choice(self.names), self._wish())
            await self._come_to_rest()

    def _policies(self) -> Iterator[tuple[dict[str, Any], type[Any]]]:
        meta = {"name": "policy", "namespace": NAMESPACE}
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
        spec: dict[str, Any] = {"nodeName": "n1", "containers": containers}
        if self.random.random() < 0.3:
            spec["priorityClassName"] = pick(("low", "high"))
        if self.random.random() < 0.2:
            spec["resources"] = {"requests": {"cpu": "2", "memory": "600Mi"}, "limits": {"cpu": "2", "memory": "600Mi"}}
        return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}

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
        return {"name": name, "image": "app:1", "resources": resources, "resizePolicy": policy}

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
        pods = (await self.server.client.list(Pod, NAMESPACE)).items
        running = [pod.metadata.name for pod in pods if pod.status.phase == "Running"]
        name, wish = self.random.choice(running), self._wish()
        found = await Reader(self.server.client, NAMESPACE).read(Target(POD, name))
        return name, wish, plan(found, wish)

    async def deed(self, name: str, wish: Wish) -> Outcome:
        client = self.server.client
        before = await client.get(Pod, name, NAMESPACE)
        try:
            await self._patch(name, wish)
        except ApiError as error:
            return Outcome(REFUSED, error.message, error.code, frozenset())
        await self._come_to_rest()
        after = await client.get(Pod, name, NAMESPACE)
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
        pod = await self.server.client.get(Pod, name, NAMESPACE)
        await self.server.client.update(apply(wish, pod), subresource="resize")

    async def granted(self) -> list[str]:
        """Names of pods in the order in which their resizes were started."""
        events = (await self.server.client.list(Event, NAMESPACE)).items
        started = [each for each in events if each.reason == "ResizeStarted"]
        started.sort(key=lambda each: int(each.metadata.resource_version))
        return [each.involved_object.name for each in started]

    async def _come_to_rest(self) -> None:
        for _ in range(4):
            await self.node.advance(1)


async def fulfilled(seed: int, directory: Path) -> str:
    """Play one situation; what was seen, for the count of kinds."""
    node = Node(directory / f"node{seed}")
    async with running_server(directory, clock=node.clock) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        for name, value in (("low", 10), ("high", 1000)):
            await server.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        await node.start()
        try:
            situation = Situation(seed, node, server)
            await situation.prepare()
            return await _compared(seed, situation)
        finally:
            await node.kubelet.stop(stop_pods=False)


async def _compared(seed: int, situation: Situation) -> str:
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


async def test_what_is_promised_happens(tmp_path: Path) -> None:
    seen = [await fulfilled(seed, tmp_path) for seed in range(30)]
    assert {FITS, DEFERRED, REFUSED, UNCHANGED} <= set(seen)


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_what_is_promised_happens_five_hundred_times(tmp_path: Path) -> None:
    seen = [await fulfilled(seed, tmp_path) for seed in range(1000, 1500)]
    assert {FITS, DEFERRED, REFUSED, UNCHANGED} <= set(seen)
