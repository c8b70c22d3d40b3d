"""A limit of the whole pod that would come below what is used: the plan names what the node objects to."""

import asyncio
from pathlib import Path

from answers.test_plans_hold import Fake, Machine
from kubelet.harness import IDENTITY
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest, apply
from podfit.answers.plan.result import ERROR
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.net.inline_executor import InlineExecutor
from podfit.store.memory import memory_store
from podfit.testing.loop import TestLoop
from support.pods import needs
from support.server import running_server

MI = 1 << 20


async def told_and_done(directory: Path) -> tuple[str, str, str]:
    """What the plan says and how the node's condition explains that it keeps the limits."""
    node = Machine(directory / "node")
    store = memory_store(InlineExecutor)
    async with running_server(directory, clock=node.clock, certificate=True, store=store) as server:
        client = server.client
        node.use(Client(Local(server.api.handler, IDENTITY)))
        await node.start()
        try:
            world = Fake(node, server)
            await client.create(convert({"metadata": {"name": "shop"}}, Namespace))
            await server.account("shop")
            sizes = {"requests": {"memory": "50Mi"}, "limits": {"memory": "200Mi"}}
            spec = {
                "nodeName": world.node,
                "automountServiceAccountToken": False,
                "resources": sizes,
                "containers": [{"name": "c", **world.container}],
            }
            await client.create(convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}, Pod))
            await world.rest("shop")
            await world.use(150 * MI)
            request = ResizeRequest(pod=needs({"memory": "50Mi"}, {"memory": "100Mi"}))
            snapshot = await world.look("shop", "web")
            planned = plan(snapshot, request).pods[0]
            await client.update(apply(request, snapshot.pods[0]), subresource="resize")
            await world.rest("shop")
            pod = await client.get(Pod, "web", "shop")
            condition = next(told for told in pod.status.conditions if told.type == "PodResizeInProgress")
            return planned.verdict, planned.text, condition.message
        finally:
            await node.kubelet.stop(stop_pods=False)


def test_pod_and_container_are_both_named(tmp_path: Path) -> None:
    """The container has no limit of its own, so the pod's is the one that the node enforces for it."""
    with asyncio.Runner(loop_factory=TestLoop) as runner:
        verdict, told, done = runner.run(told_and_done(tmp_path))
    assert verdict == ERROR
    assert told == done
    limit = f"memory limit ({100 * MI}) below current usage ({150 * MI})"
    assert f"set pod {limit}" in done
    assert f'set container "c" {limit}' in done
