"""What a plan says of manager policies and of critical pods, beside what a kubelet then does; the situations at random
have neither.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubelet.harness import IDENTITY, MACHINE, NO_MANAGERS, Node
from kubelet.test_static_policies import STATIC
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest, apply
from podfit.answers.plan.result import DEFERRED, INFEASIBLE, Plan
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.kubelet.managers.config import ManagersConfig
from support.server import Server, running_server


class Deed:
    def __init__(self, node: Node, server: Server) -> None:
        self.node, self.client = node, server.client

    async def add(self, name: str, cpu: str, **spec: Any) -> None:
        amounts = {"cpu": cpu, "memory": "64Mi"}
        container = {"name": "app", "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}
        document = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": "n1", "containers": [container], **spec},
        }
        await self.client.create(convert(document, Pod))
        await self.rest()

    async def rest(self) -> None:
        for _ in range(6):
            await self.node.advance(1)

    async def pod(self, name: str = "web") -> Pod:
        return await self.client.get(Pod, name, "default")

    async def planned(self, request: ResizeRequest) -> Plan:
        return plan(await Reader(self.client, "default").read(Target(POD, "web")), request)

    async def done(self, request: ResizeRequest) -> None:
        while True:
            try:
                await self.client.update(apply(request, await self.pod()), subresource="resize")
                break
            except ApiError as error:  # the node wrote the pod's status in between
                if error.code != 409:
                    raise
        await self.rest()


@asynccontextmanager
async def a_node(directory: Path, managers: ManagersConfig = NO_MANAGERS) -> AsyncIterator[Deed]:
    machine = replace(MACHINE, static_cpus=managers.cpu_policy == "static")
    node = Node(directory / "node", managers=managers, machine=machine)
    async with running_server(
        directory, clock=node.clock, kubelet=lambda _: node.kubelet.handler, certificate=True
    ) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        await node.start()
        try:
            yield Deed(node, server)
        finally:
            await node.kubelet.stop(stop_pods=False)


@pytest.mark.parametrize(("resource", "amount"), [("cpu", "700m"), ("memory", "128Mi")])
async def test_static_managers_refuse_as_the_plan_says(tmp_path: Path, resource: str, amount: str) -> None:
    request = ResizeRequest({resource: parse_amount(f"--{resource}", amount)})
    async with a_node(tmp_path, STATIC) as deed:
        await deed.add("web", "500m")
        promised = (await deed.planned(request)).pods[0]
        await deed.done(request)
        pending = {condition.type: condition for condition in (await deed.pod()).status.conditions}["PodResizePending"]
        assert (promised.verdict, promised.text) == (INFEASIBLE, pending.message)
        assert pending.reason == "Infeasible"


async def test_those_end_for_a_critical_pod_whom_the_plan_names(tmp_path: Path) -> None:
    request = ResizeRequest({"cpu": parse_amount("--cpu", "3")})
    async with a_node(tmp_path) as deed:
        await deed.add("web", "500m", priorityClassName="system-node-critical")
        for name, cpu in (("small", "300m"), ("batch", "2")):
            await deed.add(name, cpu)
        promised = (await deed.planned(request)).pods[0]
        assert (promised.verdict, promised.ends) == (DEFERRED, ("default/batch",))
        await deed.done(request)
        phases = {name: (await deed.pod(name)).status.phase for name in ("web", "small", "batch")}
        assert phases == {"web": "Running", "small": "Running", "batch": "Failed"}
        assert str((await deed.pod()).status.container_statuses[0].allocated_resources["cpu"]) == "3"
