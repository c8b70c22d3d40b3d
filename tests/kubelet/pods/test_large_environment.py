"""Environments that no program could be started with: refused before they are made."""

import tracemalloc
from typing import Any

import pytest

from kubelet.harness import IDENTITY, Node, container
from kubelet.node_api import NodeApi
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.decide.pod.environment import STRING_BYTES, STRINGS, TOTAL_BYTES, Budget, TooLarge
from podfit.kubelet.sources.environment import ExpandedCommand, words
from podfit.kubelet.sources.lookup import Lookup
from support.clock import FakeClock
from support.turns import TURN_MS as STALL_MS
from support.turns import worst_ms

ALLOCATABLE = {"cpu": Quantity.parse("4")}
GROWTH = 16 << 20


def doubling(variables: int = 40) -> list[dict[str, Any]]:
    """Each variable holds the one before twice."""
    first = {"name": "E0", "value": "x" * 10}
    return [first, *({"name": f"E{n}", "value": f"$(E{n - 1})" * 2} for n in range(1, variables))]


LONG = {"name": "L", "value": "x" * 120_000}
ANNOTATION = {"fieldRef": {"fieldPath": "metadata.annotations['long']"}}
BOMBS: dict[str, dict[str, Any]] = {
    "doubling variables": {"env": doubling()},
    "one variable over and over": {"env": [LONG, *({"name": "A", "value": "$(L)"} for _ in range(20_000))]},
    "a long text": {"env": [{"name": "A", "value": "x" * STRING_BYTES}]},
    "a long text that comes to nothing": {
        "env": [{"name": "A", "value": ""}, {"name": "B", "value": "$(A)" * 300_000}]
    },
    "many references": {"env": [LONG, {"name": "B", "value": "$(L)" * 30_000}]},
    "two bytes a letter": {"env": [{"name": "A", "value": "ä" * (STRING_BYTES // 2 + 1)}]},
    "arguments": {"env": [LONG], "args": ["$(L)"] * 20_000},
    "command": {"env": [LONG], "command": ["$(L)$(L)"]},
    "many references to nothing in arguments": {"args": ["$(A)" * 30_000] * 20},
    "many variables": {"env": [{"name": f"V{n}", "value": "x" * 20} for n in range(60_000)]},
    "the pod's own fields": {"env": [{"name": f"F{n}", "valueFrom": ANNOTATION} for n in range(20_000)]},
    "a whole ConfigMap": {"envFrom": [{"configMapRef": {"name": "long"}}]},
    "a ConfigMap over and over": {
        "envFrom": [{"configMapRef": {"name": "wide"}, "prefix": f"P{n}"} for n in range(99)]
    },
    "a key of a Secret": {"env": [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "long", "key": "k"}}}]},
}


@pytest.fixture
async def lookup() -> Lookup:
    api = NodeApi()
    api.put("configmaps", {"metadata": {"name": "long", "namespace": "ns"}, "data": {"k": "x" * 200_000}})
    api.put(
        "configmaps", {"metadata": {"name": "wide", "namespace": "ns"}, "data": {f"k{n}": "x" for n in range(20_000)}}
    )
    api.put("secrets", {"metadata": {"name": "long", "namespace": "ns"}, "data": {"k": "eHh4" * 60_000}})
    return Lookup(Client(Local(api, IDENTITY)), FakeClock())


def pod_with(spec: dict[str, Any]) -> Pod:
    metadata = {"name": "web", "namespace": "ns", "uid": "u", "annotations": {"long": "x" * 100_000}}
    return codec.convert({"metadata": metadata, "spec": {"containers": [{"name": "c1", **spec}]}}, Pod)


async def started_with(spec: dict[str, Any], lookup: Lookup) -> ExpandedCommand:
    pod = pod_with(spec)
    return await words(pod, pod.spec.containers[0], lookup=lookup, allocatable=ALLOCATABLE)


@pytest.mark.parametrize("bomb", BOMBS)
async def test_is_refused_before_it_is_made(lookup: Lookup, bomb: str) -> None:
    pod = pod_with(BOMBS[bomb])
    await lookup.read("configmap", "ns", "wide")  # reading it is not what is measured

    async def refused() -> None:
        with pytest.raises(TooLarge):
            await words(pod, pod.spec.containers[0], lookup=lookup, allocatable=ALLOCATABLE)

    assert await worst_ms(refused, most=STALL_MS) < STALL_MS
    tracemalloc.start()
    try:
        await refused()
        assert tracemalloc.get_traced_memory()[1] < GROWTH
    finally:
        tracemalloc.stop()


async def test_what_a_program_can_be_started_with_is_not_refused(lookup: Lookup) -> None:
    """`A=`, the text and the byte at its end are one string of the kernel's."""
    most = "x" * (STRING_BYTES - 3)
    made = await started_with({"env": [{"name": "A", "value": most}, {"name": "B", "value": "$(A)"}]}, lookup)
    assert made.environment == {"A": most, "B": most}
    with pytest.raises(TooLarge, match=f"environment variable A takes {STRING_BYTES} bytes, must be less than"):
        await started_with({"env": [{"name": "A", "value": most + "x"}]}, lookup)


async def test_a_runtime_is_sent_so_many_strings_and_no_more(lookup: Lookup) -> None:
    variables = [{"name": f"V{n}", "value": ""} for n in range(STRINGS)]
    assert len((await started_with({"env": variables}, lookup)).environment) == STRINGS
    with pytest.raises(TooLarge, match=f"more than {STRINGS} strings, counted up to command\\[0\\]"):
        await started_with({"env": variables, "command": ["sh"]}, lookup)


def test_all_of_it_together_has_a_bound() -> None:
    budget = Budget()
    for number in range(20):
        budget.expand(f"args[{number}]", "x" * 100_000, {})
    with pytest.raises(TooLarge, match=f"more than {TOTAL_BYTES} bytes in all, counted up to args\\[20\\]"):
        budget.expand("args[20]", "x" * 100_000, {})


async def test_the_pod_says_so_and_the_node_goes_on(node: Node) -> None:
    node.add("bomb", containers=[container("c1", env=doubling())])
    node.add("web")
    await node.runs("web")
    await node.until(
        lambda: node.state("bomb").get("state", {}).get("waiting", {}).get("reason") not in (None, "ContainerCreating")
    )
    waiting = node.state("bomb")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"] == "environment variable E14 takes 163840 bytes, must be less than 131072"
    assert f"Failed Error: {waiting['message']}" in node.api.events()


async def test_a_sub_path_has_the_bound_of_a_path(node: Node) -> None:
    long = [{"name": "L", "value": "x" * 4096}]
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(L)" * 1000}
    node.add(
        "bomb", volumes=[{"name": "v", "emptyDir": {}}], containers=[container("c1", env=long, volumeMounts=[mount])]
    )
    await node.until(
        lambda: node.state("bomb").get("state", {}).get("waiting", {}).get("reason") not in (None, "ContainerCreating")
    )
    waiting = node.state("bomb")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"] == "subPathExpr of volume mount v takes 4096000 bytes, must be less than 4096"
