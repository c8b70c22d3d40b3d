"""Pods on a node that decides for itself, resized as `podfit resize` does."""

import asyncio
from typing import Any

from kubelet.harness import Node
from podfit.actions.resize_pods import Options, Outcome, carry_out
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import plan_requests, requests_of
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.several_targets import merged
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.core.quantity import Quantity
from support.server import Server

NAMESPACE = "default"


class Shop:
    def __init__(self, node: Node, server: Server) -> None:
        self.node, self.server, self.client = node, server, server.client

    async def add(
        self,
        name: str,
        cpu: str,
        policy: str = "NotRequired",
        memory: str = "64Mi",
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> None:
        request, _, limit = memory.partition(":")
        resources: dict[str, Any] = {"requests": {"cpu": cpu, **({"memory": request} if request else {})}}
        resources |= {"limits": {"memory": limit}} if limit else {}
        container = {
            "name": "app",
            "image": "app:1",
            "resources": resources,
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": policy}],
        }
        meta = {"name": name, "namespace": NAMESPACE, "labels": labels or {"app": name}}
        document = {"metadata": meta, "spec": {"nodeName": "n1", "containers": [container], **spec}}
        await self.client.create(convert(document, Pod))
        await self.node.advance(2)

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, name, NAMESPACE)

    def use(self, memory: int) -> None:
        """What every container uses from now on, in bytes."""
        self.node.cgroups.used = memory

    async def snapshot(self, *names: str) -> Snapshot:
        reader = Reader(self.client, NAMESPACE, self.node.clock)
        return merged([await reader.read(Target(POD, name), usage=True) for name in names])

    async def resize(self, *names: str, request: ResizeRequest, how: Options, moves: float = 0) -> list[Outcome]:
        """Plan it and carry it out while time moves on, by `moves` seconds in 60 steps until it is over."""
        return await self.carried_out(promise(await self.snapshot(*names), request), how, moves)

    async def carried_out(
        self, promised: Planned, how: Options, moves: float, client: Client | None = None
    ) -> list[Outcome]:
        async def act() -> list[Outcome]:
            return [outcome async for outcome in carry_out(client or self.client, promised, how, self.node.clock)]

        task = asyncio.create_task(act())
        for _ in range(600):  # each pod has a timeout of its own
            if task.done():
                return task.result()
            await self.node.advance(moves / 60)
        task.cancel()
        raise AssertionError("it never came to an end")


def promise(snapshot: Snapshot, request: ResizeRequest) -> Planned:
    requests = requests_of(snapshot, request)
    return Planned(snapshot=snapshot, requests=requests, plan=plan_requests(snapshot, requests))


def cpu(amount: str) -> ResizeRequest:
    """`1`, or request and limit as `1:2`."""
    request, _, limit = amount.partition(":")
    return ResizeRequest({"cpu": Amount(Quantity.parse(request), Quantity.parse(limit) if limit else None)})
