"""What a real kube-scheduler did with fake nodes, replayed: where pods went, what stood on them, what was told.

The recorded cluster held one real node that every pod's selector excludes, and a controller that taints nodes which are
not ready; both are made here by hand.
"""

import json
import re
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.scheduling.v1.types import PriorityClass
from support.golden import Case, golden_folder, replaying
from support.scheduling import World
from support.untaint import untaint

NS = "golden"
PRIORITIES = {"hi": 1000, "mid": 500, "nev": 1000}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
CLAIMS = {"pvc-unbound": "pvc1"}  # which was there, and bound to nothing


FILE = "node/scheduler.json"


def recorded(part: str) -> pytest.MarkDecorator:
    return replaying(FILE, lambda: json.loads((golden_folder() / FILE).read_text())[part])


class Replay:
    def __init__(self, world: World) -> None:
        self.world = world
        self.uids: dict[str, str] = {}
        self.told: dict[str, list[dict[str, Any]]] = {}

    async def prepare(self, case: Case) -> None:
        world = self.world
        await world.client.create(Namespace(metadata=ObjectMeta(name=NS)))
        await world.server.account(NS)
        for name, value in PRIORITIES.items():
            policy = "Never" if name == "nev" else ""
            await world.client.create(
                PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=policy)
            )
        await world.node("node1", cpu="2", memory="24581684Ki")
        for node in case["nodes"]:
            await self.node(node)
        for pod in case["existing"]:
            await self.create(pod)
        if case["id"] in CLAIMS:
            await self.claim(CLAIMS[case["id"]])

    async def node(self, given: dict[str, Any]) -> None:
        taints = [{"key": "gn", "value": "fake", "effect": "NoSchedule"}, *given.get("taints", ())]
        if given.get("ready") is False:
            taints.append(NOT_READY)
        name = given["n"]
        labels = {"gn": NS, "kubernetes.io/hostname": name, **given.get("labels", {})}
        extra = {
            "pods": given.get("pods", "110"),
            "ephemeral-storage": given.get("eph", "100Gi"),
            **given.get("ext", {}),
        }
        document = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": given.get("unsched", False)},
        }
        await self.world.client.create(convert(document, Node))
        await untaint(self.world.client, name, taints=taints)
        amounts = {"cpu": given.get("cpu", "4"), "memory": given.get("mem", "8Gi"), **extra}
        status = {"allocatable": amounts, "capacity": amounts, "images": given.get("images", [])}
        await self.world.client.patch(Node, name, "", {"status": status}, subresource="status")

    async def claim(self, name: str) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made = convert({"metadata": {"name": name, "namespace": NS}, "spec": spec}, PersistentVolumeClaim)
        await self.world.client.create(made)

    async def create(self, pod: dict[str, Any]) -> Pod:
        made = await self.world.client.create(convert(json.loads(json.dumps(pod).replace("{ns}", NS)), Pod), NS)
        self.uids[made.metadata.uid] = "{uid}"
        return made

    async def step(self, request: dict[str, Any]) -> None:
        action = request.get("action", "")
        if gone := re.fullmatch(r"delete pod (\S+)", action):
            await self.world.client.delete(Pod, gone[1], NS)
        elif come := re.fullmatch(r"create pod (\S+) requesting (\S+) (\S+)", action):
            await self.create(plain(come[1], {come[2]: come[3]}))
        elif action:
            raise AssertionError(f"an action that this replay does not know: {action}")
        elif request["method"] == "POST":
            await self.create(request["pod"])
        else:
            text = json.dumps(request["body"]).replace("{time}", "2026-01-01T00:00:00Z")
            merge = (
                "application/json-patch+json"
                if isinstance(request["body"], list)
                else ("application/strategic-merge-patch+json")
            )
            path = request["path"].replace("{ns}", NS)
            answer = await self.world.server.ask("PATCH", path, text.encode(), content_type=merge)
            assert answer.status == request["code"], await answer.read()
        await self.world.rest()

    async def events(self) -> set[tuple[str, ...]]:
        found = (await self.world.client.list(Event, NS)).items
        return {
            (
                f"{event.involved_object.kind}/{event.involved_object.name}",
                event.type,
                event.reason,
                self.templated(event.message),
                event.reporting_component,
                event.action,
            )
            for event in found
        }

    def templated(self, text: str) -> str:
        for uid in self.uids:
            text = text.replace(uid, "{uid}")
        return text.replace(f"{NS}/", "{ns}/")


def plain(name: str, requests: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"key": "gn", "operator": "Exists"}],
            "nodeSelector": {"gn": NS},
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        },
    }


def shown(state: dict[str, Any]) -> tuple[Any, ...]:
    conditions = [
        tuple(condition.get(key, "") for key in ("type", "status", "reason", "message", "observedGeneration"))
        for condition in state["conditions"]
    ]
    return state.get("nodeName", ""), state["phase"], state.get("nominatedNodeName", ""), sorted(conditions)


def distinct(states: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [state for index, state in enumerate(states) if index == 0 or state != states[index - 1]]


def state_of(pod: Pod) -> tuple[Any, ...]:
    return shown(
        {
            "nodeName": pod.spec.node_name,
            "phase": pod.status.phase,
            "nominatedNodeName": pod.status.nominated_node_name,
            "conditions": [to_dict(condition) for condition in pod.status.conditions],
        }
    )


@recorded("scenarios")
async def test_a_scenario_goes_as_recorded(world: World, case: Case) -> None:
    replay = Replay(world)
    await replay.prepare(case)
    await world.rest()
    version = (await world.client.list(Pod, NS)).resource_version
    for request in case["requests"]:
        await world.clock.advance(1)
        await replay.step(request)
    await world.rest()
    seen: dict[str, list[tuple[Any, ...]]] = {}
    end = await world.pod("last", cpu="1", schedulerName="nobody")
    async for event in world.client.watch(Pod, resource_version=version):
        if event.object.metadata.uid == end.metadata.uid:
            break
        if event.object.metadata.namespace == NS:
            seen.setdefault(event.object.metadata.name, []).append(state_of(event.object))
    for name, expected in case["podSequences"].items():
        assert distinct(seen[name]) == distinct([shown(place) for place in expected]), name
    expected_events = {
        (event["object"], event["type"], event["reason"], event["message"], event["component"], event["action"])
        for event in case["events"]
    }
    assert await replay.events() == expected_events


@recorded("scoring")
async def test_of_nodes_that_would_do_the_same_one_is_chosen(world: World, case: Case) -> None:
    """Ties are not a rule upstream; ours go to the first name, which is also the one chosen most often there."""
    replay = Replay(world)
    await replay.prepare(case)
    await world.rest()
    await replay.create(case["pod"])
    await world.rest()
    pod = await world.client.get(Pod, case["pod"]["metadata"]["name"], NS)
    assert pod.spec.node_name == max(case["distribution"], key=case["distribution"].get)
