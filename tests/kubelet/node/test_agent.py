"""The node object and its Lease."""

from pathlib import Path

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document
from kubelet.test_probes import told
from podfit.core.features import FeatureGates
from podfit.kubelet.node.machine import capacity
from podfit.kubelet.node.status import declared_features


def conditions(node: Node) -> dict[str, str]:
    found = node.api.get("nodes", "n1", "") or {}
    return {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}


async def test_a_node_registers_with_what_it_has(node: Node) -> None:
    found = node.api.get("nodes", "n1", "") or {}
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert found["metadata"]["labels"]["kubernetes.io/os"] == "linux"
    status = found["status"]
    assert status["allocatable"] == {"cpu": "4", "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"}
    assert status["nodeInfo"]["containerRuntimeVersion"] == "fake://1"
    assert status["declaredFeatures"] == [
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
    ]
    assert conditions(node) == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }


async def test_the_lease_is_renewed_every_ten_seconds(node: Node) -> None:
    await node.rest()
    leases = []
    for _ in range(3):
        leases.append(node.api.get("leases", "n1", "kube-node-lease") or {})
        await node.advance(10)
    lease = leases[0]
    assert len({lease["spec"]["renewTime"] for lease in leases}) == 3
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["name"] == "n1"


def writes(node: Node) -> int:
    return len(list(node.api.history("nodes")))


async def test_the_status_is_written_every_five_minutes_unless_something_changed(node: Node) -> None:
    await node.rest()
    before = writes(node)
    await node.advance(290)
    assert writes(node) == before
    await node.advance(20)
    assert writes(node) == before + 1
    node.runtime.ready = False
    await node.advance(10)
    assert conditions(node)["Ready"] == "False"
    node.runtime.ready = True
    await node.advance(10)
    assert conditions(node)["Ready"] == "True"


async def test_a_node_that_was_there_before_is_taken_over(node: Node) -> None:
    await node.crash()
    known = node.api.get("nodes", "n1", "") or {}
    node.api.put("nodes", {**known, "spec": {"unschedulable": True}})
    await node.start()
    found = node.api.get("nodes", "n1", "") or {}
    assert found["spec"] == {"unschedulable": True}
    assert conditions(node)["Ready"] == "True"


async def test_a_node_object_that_was_deleted_comes_back(node: Node) -> None:
    node.api.remove("nodes", "n1", "")
    await node.rest()
    assert conditions(node)["Ready"] == "True"


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": {"cpu": "64", "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"}},
        {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        {"declaredFeatures": []},
    ],
)
async def test_what_others_make_of_its_status_is_put_right(node: Node, change: Document) -> None:
    await node.rest()
    known = node.api.get("nodes", "n1", "") or {}
    node.api.put("nodes", {**known, "status": {**known["status"], **change}})
    await node.rest()
    found = node.api.get("nodes", "n1", "") or {}
    assert {condition["type"] for condition in found["status"]["conditions"]} >= {"Ready"}
    assert conditions(node)["Ready"] == "True"
    assert found["status"]["capacity"]["cpu"] == "4"
    assert found["status"]["declaredFeatures"] == known["status"]["declaredFeatures"]


async def test_what_others_add_to_its_status_is_theirs(node: Node) -> None:
    await node.rest()
    known, before = node.api.get("nodes", "n1", "") or {}, writes(node)
    status = known["status"]
    added = {
        "conditions": [*status["conditions"], {"type": "DiskIsSlow", "status": "True"}],
        "capacity": {**status["capacity"], "example.com/lamp": "3"},
    }
    node.api.put("nodes", {**known, "status": {**status, **added}})
    await node.rest()
    assert writes(node) == before + 2, "the node answered to more than a resource, which it made allocatable"
    await node.advance(310)
    found = node.api.get("nodes", "n1", "") or {}
    assert conditions(node)["DiskIsSlow"] == "True"
    assert found["status"]["capacity"]["example.com/lamp"] == "3"


async def test_new_labels_count_at_once(node: Node) -> None:
    await node.rest()
    known = node.api.get("nodes", "n1", "") or {}
    labels = {**known["metadata"]["labels"], "disk": "fast"}
    node.api.put("nodes", {**known, "metadata": {**known["metadata"], "labels": labels}})
    await node.rest()
    near = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}]
        }
    }
    node.add(affinity={"nodeAffinity": near})
    await node.runs()


def test_features_are_declared_by_their_gates() -> None:
    gates = FeatureGates({"InPlacePodVerticalScalingInitContainers": False})
    declared = ("ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling")
    assert declared_features(gates) == declared


def test_the_machine_has_a_size(tmp_path: Path) -> None:
    found = capacity(tmp_path / "not" / "there")
    assert set(found) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert all(found.values())


async def test_extended_resources_become_allocatable_and_admit_pods(node: Node) -> None:
    found = node.api.get("nodes", "n1", "") or {}
    found["status"]["capacity"]["example.com/dongle"] = "2"
    node.api.put("nodes", found)
    await node.rest()
    told = (node.api.get("nodes", "n1", "") or {})["status"]
    assert told["allocatable"]["example.com/dongle"] == "2"
    dongles = {"requests": {"example.com/dongle": "2"}, "limits": {"example.com/dongle": "2"}}
    node.add("has", containers=[container("c1", resources=dongles)])
    await node.runs("has")
    node.add("none", containers=[container("c1", resources=dongles)])
    await node.until(lambda: node.phase("none") == "Failed")
    assert node.api.status("none")["reason"] == "OutOfexample.com/dongle"


def said(node: Node) -> list[str]:
    """The reasons of events about the node, as they came."""
    return [event.split(" ", 1)[0] for event in node.api.events() if "Node" in event or event.startswith("Starting")]


async def test_a_node_says_how_it_is_when_it_begins_and_when_that_changes(node: Node) -> None:
    await node.rest()
    assert sorted(said(node)) == [
        "NodeAllocatableEnforced",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientMemory",
        "NodeHasSufficientPID",
        "NodeReady",
        "Starting",
    ]
    before = len(said(node))
    node.runtime.ready = False
    await node.advance(10)
    node.runtime.ready = True
    await node.advance(10)
    await node.advance(60)
    assert said(node)[before:] == ["NodeNotReady"], "that it is ready is an event that is there, and counted"


async def test_a_kubelet_that_is_started_again_says_so_and_not_that_the_node_became_ready(node: Node) -> None:
    await node.rest()
    await node.crash()
    await node.start()
    await node.rest()
    assert said(node).count("Starting") == 2
    assert told(node, "NodeReady") == ["NodeReady Node n1 status is now: NodeReady"]


async def test_pods_together_have_what_the_node_can_give(node: Node) -> None:
    group = node.cgroups.groups[node.cgroups.layout.root]
    assert (group.memory_limit, group.cpu_shares) == (4 << 30, 4096)
