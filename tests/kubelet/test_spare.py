"""Spare capacity on simulated nodes: what a node lends, who runs on it, and who gives way."""

from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.core.errors import ApiError
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.testing.cluster import Clock, Cluster

lending = pytest.mark.podfit(nodes=[{"cpu": "4", "memory": "4Gi"}], lend_spare=True)
NODE = "simulated-1"
GUARANTEED = {"cpu": "1", "memory": "1Gi"}
Resources = dict[str, dict[str, str]]
OWN: Resources = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "3500Mi"}}


def pod(name: str, resources: Resources | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app:1", "resources": resources or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }


def spare(cpu: int | None = 500, memory: int | None = 256) -> Resources:
    asked = {"podfit.dev/spare-cpu": cpu, "podfit.dev/spare-memory": memory}
    amounts = {name: str(amount) for name, amount in asked.items() if amount is not None}
    return {"requests": amounts, "limits": amounts}


def lent(cluster: Cluster) -> tuple[int, int] | None:
    """Millicores and MiB that the node tells, as capacity and as allocatable."""
    status = cluster.run(cluster.client.get(Node, NODE)).status
    names = ("podfit.dev/spare-cpu", "podfit.dev/spare-memory")
    assert [status.capacity.get(name) for name in names] == [status.allocatable.get(name) for name in names]
    amounts = [status.allocatable[name].value() for name in names if name in status.allocatable]
    return (amounts[0], amounts[1]) if amounts else None


def writes(cluster: Cluster) -> int:
    return int(cluster.run(cluster.client.get(Node, NODE)).metadata.resource_version)


@pytest.fixture
def owner(cluster: Cluster, clock: Clock) -> Cluster:
    """A pod that has requested 2 CPUs and 2 GiB, and uses half a CPU and 512 MiB."""
    cluster.apply(pod("owner", OWN))
    cluster.load("owner", cpu=0.5, memory=512 << 20)
    clock.advance(seconds=30)
    return cluster


@lending
def test_what_is_requested_and_unused_is_lent_but_for_a_margin(owner: Cluster) -> None:
    assert lent(owner) == (2000 - 500 - 200, 2048 - 512 - 205)


@lending
def test_a_pod_runs_on_it_in_a_tier_of_its_own_and_is_told_so(owner: Cluster) -> None:
    owner.apply(pod("guest", spare()))
    view = owner.pod("guest")
    assert (view.phase, view.pod.status.qos_class) == ("Running", "BestEffort")
    told = next(condition for condition in view.pod.status.conditions if condition.type == "podfit.dev/Spare")
    assert (told.status, told.reason) == ("True", "RunsOnSpareCapacity")
    assert "at most 256Mi of memory" in told.message
    cgroups = owner._composed.nodes[0].cgroups
    assert isinstance(cgroups, MemoryCgroups)
    path = f"/simulated-spare/pod{view.pod.metadata.uid}"
    assert (cgroups.read_cpu(path).shares, cgroups.read_memory(path)) == (2, 256 << 20)
    owner.apply(pod("too-much", spare(cpu=900)))
    assert owner.pod("too-much").phase == "Pending", "500 of 1,300 are taken"


@lending
def test_usage_that_swings_does_not_make_the_node_write(owner: Cluster, clock: Clock) -> None:
    owner.load("owner", cpu=lambda seconds: 1.6 if int(seconds) % 40 < 20 else 0.2, memory=512 << 20)
    clock.advance(minutes=2)
    before, steady = writes(owner), lent(owner)
    assert steady is not None
    assert steady[0] == pytest.approx(2000 - 1600 - 200, abs=5)
    clock.advance(minutes=2)
    assert (writes(owner), lent(owner)) == (before, steady)


@lending
def test_what_is_lent_follows_usage_down_at_once_and_up_after_a_minute(owner: Cluster, clock: Clock) -> None:
    owner.load("owner", cpu=1.5, memory=512 << 20)
    clock.advance(seconds=25)
    assert lent(owner) == (300, 1331)
    owner.load("owner", cpu=0.5, memory=512 << 20)
    clock.advance(seconds=40)
    assert lent(owner) == (300, 1331)
    clock.advance(seconds=50)
    assert lent(owner) == (1300, 1331)


@lending
def test_less_lent_than_asked_ends_nobody_and_admits_nobody(owner: Cluster, clock: Clock) -> None:
    owner.apply(pod("guest", spare(cpu=1000)))
    owner.load("owner", cpu=1.5, memory=512 << 20)
    clock.advance(seconds=30)
    assert lent(owner) == (300, 1331)
    assert owner.pod("guest").phase == "Running", "its weight gives way"
    owner.apply(pod("next", spare(cpu=100)))
    owner.apply(pod("placed", spare(cpu=100), nodeName=NODE))
    assert (owner.pod("next").phase, owner.pod("placed").phase) == ("Pending", "Failed")
    assert owner.pod("placed").document["status"]["reason"] == "OutOfpodfit.dev/spare-cpu"


@lending
def test_memory_is_taken_back_within_ten_seconds_from_the_lowest_priority_first(owner: Cluster, clock: Clock) -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -10}
    owner.apply(low, pod("high", spare(memory=500)), pod("low", spare(memory=400), priorityClassName="low"))
    owner.load("high", memory=450 << 20)
    owner.load("low", memory=300 << 20)
    clock.advance(seconds=20)
    assert [owner.pod(name).phase for name in ("high", "low")] == ["Running", "Running"]
    owner.load("owner", cpu=0.5, memory=3250 << 20)
    clock.advance(seconds=9)
    assert [owner.pod(name).phase for name in ("owner", "high", "low")] == ["Running", "Running", "Failed"]
    status = owner.pod("low").document["status"]
    assert status["reason"] == "Evicted"
    assert "needs the memory that it had lent" in status["message"]
    clock.advance(minutes=1)
    assert owner.pod("high").phase == "Running", "there is room again"


@lending
@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (spare(memory=None), "asks for podfit.dev/spare-memory too"),
        ({side: {**amounts, **GUARANTEED} for side, amounts in spare().items()}, "has no request or limit of cpu and"),
        ({**spare(), "limits": spare()["limits"] | {"memory": "1Gi"}}, "has no request or limit of cpu and memory"),
    ],
)
def test_who_has_requests_of_its_own_is_lent_nothing(owner: Cluster, resources: Resources, why: str) -> None:
    """One that asks for both would be Guaranteed, so the last to go, on what it was lent."""
    owner.apply(pod("greedy", resources))
    status = owner.pod("greedy").document["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnfitForSpare")
    assert why in status["message"]
    assert "podfit.dev/Spare" not in {condition["type"] for condition in status.get("conditions", ())}


@lending
@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_who_is_never_ended_is_lent_nothing(owner: Cluster, name: str) -> None:
    """It would keep what it was lent, and the kernel would end the owners before it."""
    owner.apply(pod("vital", spare(), priorityClassName=name))
    status = owner.pod("vital").document["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnfitForSpare")
    assert "it cannot give back what it was lent" in status["message"]


@lending
@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"requests": spare()["requests"]}, "Limit must be set for non overcommitable resources"),
        ({"requests": spare(cpu=100)["requests"], "limits": spare()["limits"]}, "must be equal to"),
        ({"limits": {"podfit.dev/spare-cpu": "0.5", "podfit.dev/spare-memory": "1"}}, "must be an integer"),
        (
            {"limits": {"podfit.dev/spare-cpu": "-1", "podfit.dev/spare-memory": "1"}},
            "must be greater than or equal to 0",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_api(owner: Cluster, resources: Resources, why: str) -> None:
    with pytest.raises(ApiError, match=why) as caught:
        owner.apply(pod("odd", resources))
    assert caught.value.code == 422


@lending
def test_what_init_containers_ask_for_is_counted_too(owner: Cluster, clock: Clock) -> None:
    """The larger of them and of what runs later, with sidecars."""
    init = {"name": "first", "image": "app:1", "resources": spare(cpu=1301, memory=100)}
    sidecar = {"name": "side", "image": "app:1", "restartPolicy": "Always", "resources": spare(cpu=801, memory=100)}
    owner.apply(pod("init", initContainers=[init]), pod("sidecar", spare(), initContainers=[sidecar]))
    owner.apply(pod("placed", initContainers=[init], nodeName=NODE))
    assert [owner.pod(name).phase for name in ("init", "sidecar", "placed")] == ["Pending", "Pending", "Failed"]
    for name in ("init", "sidecar"):
        told = owner.pod(name).document["status"]["conditions"][0]
        assert told["message"].startswith("0/1 nodes are available: 1 Insufficient podfit.dev/spare-cpu")


@lending
def test_a_quota_of_it_bounds_what_a_template_makes(owner: Cluster, clock: Clock) -> None:
    hard = {"requests.podfit.dev/spare-cpu": "1000"}
    owner.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
    template = {"metadata": {"labels": {"app": "batch"}}, "spec": pod("batch", spare(cpu=400))["spec"]}
    template["spec"]["restartPolicy"] = "Always"
    selector = {"matchLabels": {"app": "batch"}}
    spec = {"replicas": 5, "selector": selector, "template": template}
    owner.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "batch"}, "spec": spec})
    clock.advance(minutes=1)
    phases = [view.phase for view in owner.pods() if view.name.startswith("batch")]
    assert phases == ["Running", "Running"]
    conditions = owner.get("apps/v1", "Deployment", "batch")["status"]["conditions"]
    failure = next(one for one in conditions if one["type"] == "ReplicaFailure")
    assert "exceeded quota: q, requested: requests.podfit.dev/spare-cpu=400" in failure["message"]


@lending
@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"requests": {"cpu": "100m"}}, "Pod QOS Class may not change as a result of resizing"),
        ({"limits": {"memory": "1Gi"}}, "Pod QOS Class may not change as a result of resizing"),
        (spare(cpu=1), "only cpu and memory resources are mutable"),
        (spare(memory=4000), "only cpu and memory resources are mutable"),
    ],
)
def test_a_resize_changes_nothing_of_it(owner: Cluster, resources: Resources, why: str) -> None:
    owner.apply(pod("guest", spare()))
    with pytest.raises(ApiError, match=why):
        owner.resize("guest", app=resources)
    assert owner.pod("guest").phase == "Running"


@lending
@pytest.mark.parametrize("amount", ["1.5", "-1", "500m"])
def test_a_node_that_tells_nonsense_is_refused(owner: Cluster, amount: str) -> None:
    forged = {"podfit.dev/spare-cpu": amount}
    with pytest.raises(ApiError) as caught:
        owner.run(owner.client.patch(Node, NODE, "", {"status": {"capacity": forged}}, subresource="status"))
    assert caught.value.code == 422
    assert lent(owner) == (1300, 1331)


@lending
def test_a_forged_status_is_put_right(owner: Cluster) -> None:
    forged = {"podfit.dev/spare-cpu": "99E", "podfit.dev/spare-memory": "99E"}
    patch = {"status": {"capacity": forged, "allocatable": forged}}
    owner.run(owner.client.patch(Node, NODE, "", patch, subresource="status"))
    owner.settle()
    assert lent(owner) == (1300, 1331)


def test_a_node_that_does_not_lend_tells_nothing_whoever_says_so(cluster: Cluster, clock: Clock) -> None:
    cluster.apply(pod("owner", OWN))
    clock.advance(minutes=2)
    assert lent(cluster) is None
    forged = {"podfit.dev/spare-cpu": "9000", "podfit.dev/spare-memory": "9000"}
    patch = {"status": {"capacity": forged, "allocatable": forged}}
    cluster.run(cluster.client.patch(Node, NODE, "", patch, subresource="status"))
    cluster.settle()
    assert lent(cluster) is None
    cluster.apply(pod("guest", spare(), nodeName=NODE))
    assert cluster.pod("guest").phase == "Failed"


@lending
def test_a_namespaces_quota_and_defaults_are_not_about_it(owner: Cluster) -> None:
    quota = {"hard": {"requests.cpu": "2", "limits.memory": "4Gi"}}
    owner.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": quota})
    defaults = {"limits": [{"type": "Container", "default": {"memory": "64Mi"}, "defaultRequest": {"cpu": "100m"}}]}
    owner.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": defaults})
    owner.apply(pod("guest", spare()))
    assert owner.pod("guest").phase == "Running"
    used = owner.get("v1", "ResourceQuota", "q")["status"]["used"]
    assert used == {"requests.cpu": "2", "limits.memory": "3500Mi"}
