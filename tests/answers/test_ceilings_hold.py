"""What a plan says of a burst ceiling is what the API server then says to it, in random namespaces."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.ceilings import GRANTED, ceiling_outcome, no_room
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.informers import Informers
from podfit.controllers.quotas import QuotaController
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from support.bursts import ceiling
from support.server import Server, running_server

CPU, MEMORY = ("100m", "200m", "500m", "1"), ("128Mi", "256Mi", "512Mi", "1Gi")
POLICY = {"resourceName": "memory", "restartPolicy": "RestartContainer"}


class Namespaces:
    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.client, self.pick = server, server.client, random.Random(seed)

    async def node(self) -> None:
        amounts = {"cpu": "3", "memory": "3Gi", "pods": "110"}
        await self.client.create(convert({"metadata": {"name": "n"}}, Node))
        await self.client.patch(
            Node, "n", "", {"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status"
        )

    def amounts(self, start: int = 0) -> dict[str, str]:
        return {"cpu": self.pick.choice(CPU[start:]), "memory": self.pick.choice(MEMORY[start:])}

    def container(self, name: str) -> dict[str, Any]:
        limits = self.amounts(1)
        requests = limits if self.pick.random() < 0.4 else {"cpu": CPU[0], "memory": MEMORY[0]}
        policies = {"resizePolicy": [POLICY]} if self.pick.random() < 0.1 else {}
        return {"name": name, "image": "i", "resources": {"requests": requests, "limits": limits}, **policies}

    async def play(self, number: int) -> Counter[str]:
        """One namespace: its pods are asked for one after the other."""
        namespace, pick = f"ns{number}", self.pick
        await self.client.create(convert({"metadata": {"name": namespace}}, Namespace))
        await self.server.account(namespace)
        place = {"name": "x", "namespace": namespace}
        pods = [f"p{place}" for place in range(pick.randint(1, 3))]
        for name in pods:
            containers = [self.container(f"c{place}") for place in range(pick.randint(1, 2))]
            spec = {"containers": containers, "nodeName": "n", "tolerations": [{"operator": "Exists"}]}
            await self.client.create(convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Pod))
            status = {"status": {"phase": "Running"}}
            await self.client.patch(Pod, name, namespace, status, subresource="status")
        if pick.random() < 0.5:
            item = {"type": pick.choice(("Container", "Pod")), "max": self.amounts(2)}
            await self.client.create(convert({"metadata": place, "spec": {"limits": [item]}}, LimitRange))
        if pick.random() < 0.6:
            hard = {"limits.cpu": str(pick.randint(1, 9)), "requests.memory": f"{pick.randint(1, 4)}Gi"}
            await self.client.create(convert({"metadata": place, "spec": {"hard": hard}}, ResourceQuota))
            clock, gates = self.server.context.clock, self.server.context.gates
            informers = Informers(self.client, clock)
            controller = QuotaController(self.client, informers=informers, clock=clock, gates=gates)
            await controller.reconcile((namespace, "x"))
        seen = Counter[str]()
        for _ in range(2):
            for name in pods:
                seen[await self.asked(namespace, name)] += 1
        return seen

    def ranges(self, container: Container) -> dict[str, tuple[str, str]]:
        """Mostly some times the limit; now and then what makes no sense."""
        found = {}
        for name, amount in container.resources.limits.items():
            times, parts = self.pick.choice((1, 2, 2, 3, 4)), self.pick.choice((*[1] * 15, 2))
            found[name] = (str(amount), str(Quantity(amount.nano * times // parts, amount.format)))
        if self.pick.random() < 0.5:
            del found[self.pick.choice(("cpu", "memory"))]
        return found

    async def asked(self, namespace: str, name: str) -> str:
        """Ask for a ceiling of the pod, as planned: the verdict. AssertionError where otherwise happened."""
        snapshot = await Reader(self.client, namespace).read(Target(POD, name))
        (pod,) = snapshot.pods
        text = ceiling(**{container.name: self.ranges(container) for container in pod.spec.containers})
        told = ceiling_outcome(snapshot, pod, text)
        patch = {"metadata": {"annotations": {CEILING: text}}}
        if isinstance(told, ApiError):
            with pytest.raises(ApiError) as refused:
                await self.client.patch(Pod, name, namespace, patch, subresource="resize")
            assert (refused.value.code, refused.value.message) == (told.code, told.message)
            return f"{told.code}"
        after = await self.client.patch(Pod, name, namespace, patch, subresource="resize")
        assert after.spec == pod.spec
        charged = {quota.metadata.name: quota.status.used for quota in told.quotas}
        found = (await self.client.list(ResourceQuota, namespace)).items
        assert {quota.metadata.name: quota.status.used for quota in found} == charged
        return GRANTED


async def played(directory: Path, seed: int, number: int) -> Counter[str]:
    async with running_server(directory) as server:
        namespaces = Namespaces(server, seed)
        await namespaces.node()
        seen = Counter[str]()
        for place in range(number):
            seen += await namespaces.play(place)
        return seen


async def test_what_is_told_of_a_ceiling_is_what_the_server_says(tmp_path: Path) -> None:
    seen = await played(tmp_path, 3, 15)
    assert {GRANTED, "403", "422"} <= seen.keys(), seen


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_what_is_told_of_a_ceiling_holds_a_thousand_times(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """Random ceilings of pods in 250 namespaces with LimitRanges and quotas: granted or refused, and the words of the
    refusal and the charge of the quotas, are as a plan told.
    """
    seen = await played(tmp_path, 11, 250)
    assert sum(seen.values()) >= 900
    for verdict in sorted(seen):
        figure(verdict, seen[verdict])


async def test_of_a_guaranteed_pod_it_is_told_that_its_node_has_no_room_now(tmp_path: Path) -> None:
    """Of 4 cores a neighbour has 3: 900m are there, 1500m are not. Of a Burstable pod requests stay."""
    async with running_server(tmp_path) as server:
        client, namespace = server.client, "default"
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
        await client.create(convert({"metadata": {"name": "n"}, "status": {"allocatable": capacity}}, Node))
        whole = {"cpu": "500m", "memory": "64Mi"}
        sizes = {
            "neighbour": {"requests": {"cpu": "3"}},
            "whole": {"requests": whole, "limits": whole},
            "part": {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}},
        }
        for name, resources in sizes.items():
            spec = {"containers": [{"name": "c0", "image": "i", "resources": resources}], "nodeName": "n"}
            await client.create(convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Pod))
            reported = {"name": "c0", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
            reported |= {"resources": resources, "allocatedResources": resources["requests"]}
            status = {"phase": "Running", "containerStatuses": [reported]}
            await client.patch(Pod, name, namespace, {"status": status}, subresource="status")

        async def told(name: str, most: str) -> str:
            snapshot = await Reader(client, namespace).read(Target(POD, name))
            (pod,) = snapshot.pods
            return no_room(snapshot, pod, ceiling(c0={"cpu": ("500m", most)}))

        assert await told("whole", "900m") == ""
        assert await told("part", "3") == ""
        assert "not all of it now: Node didn't have enough resource: cpu" in await told("whole", "1500m")
