"""What a resize means to the scheduler: what a pod counts for while it is under way, and whom a shrink wakes."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.node.v1.types import RuntimeClass
from support.scheduling import World

ROOM_FOR_TWO = "2"
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def holding(name: str, cpu: str) -> dict[str, object]:
    """The status of a container that has this much."""
    held = {"cpu": cpu}
    return {
        "name": name,
        "image": "i",
        "imageID": "i",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {}},
        "allocatedResources": held,
        "resources": {"requests": held},
    }


async def runs(world: World, name: str, cpu: str) -> None:
    await world.pod(name, cpu=cpu)
    await world.until(name, lambda pod: bool(pod.spec.node_name))
    await world.report(name, cpu)


@pytest.mark.row("R-078")
async def test_a_deferred_growth_counts_at_its_desired_size(world: World) -> None:
    await world.node("n1", cpu=ROOM_FOR_TWO)
    await runs(world, "a", "500m")
    await world.resize("a", "1500m")
    await world.report("a", "500m", DEFERRED)
    await world.pod("b", cpu="1")
    assert "Insufficient cpu" in await world.waits("b")
    await world.pod("c", cpu="500m")
    await world.until("c", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.row("R-079")
async def test_an_infeasible_growth_does_not_count(world: World) -> None:
    await world.node("n1", cpu=ROOM_FOR_TWO)
    await runs(world, "a", "500m")
    await world.resize("a", "1500m")
    await world.pod("b", cpu="1")
    await world.waits("b")
    await world.report("a", "500m", INFEASIBLE)
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.row("R-080", "R-082")
async def test_a_shrink_frees_room_only_when_the_node_has_reported_it(world: World) -> None:
    await world.node("n1", cpu=ROOM_FOR_TWO)
    await runs(world, "a", "1500m")
    await world.pod("b", cpu="1")
    await world.waits("b")
    await world.resize("a", "500m")
    await world.stays("b")
    await world.report("a", "500m")
    await world.until("b", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.row("R-081")
async def test_an_unscheduled_pod_that_is_resized_down_is_placed_without_any_other_event(world: World) -> None:
    await world.node("n1", cpu="1")
    await world.pod("a", cpu="2")
    await world.waits("a")
    await world.resize("a", "500m")
    await world.until("a", lambda pod: pod.spec.node_name == "n1")


@pytest.mark.row("R-081")
async def test_an_unscheduled_pod_that_is_resized_up_is_not_tried_again(world: World) -> None:
    await world.node("n1", cpu="1")
    await world.pod("a", cpu="2")
    await world.waits("a")
    await world.resize("a", "3")
    await world.stays("a")
    assert world.attempts("unschedulable") == 1


@pytest.mark.row("R-082")
async def test_of_two_shrinks_of_the_running_pod_the_one_that_makes_room_lets_the_other_in(world: World) -> None:
    await world.node("n1", cpu="3")
    await runs(world, "a", "2500m")
    await world.pod("b", cpu="2")
    await world.waits("b")
    for size in ("2", "1"):
        await world.resize("a", size)
        await world.report("a", size)
        await world.rest()
    assert await world.placed("b") == "n1"
    assert world.attempts("unschedulable") == 2


@pytest.mark.row("R-083")
async def test_a_shrink_of_a_resource_that_it_does_not_lack_does_not_wake_a_pod(world: World) -> None:
    await world.node("n1", cpu="2", memory="4Gi")
    await world.pod("a", cpu="1500m", memory="3Gi")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.report("a", "1500m", memory="3Gi")
    await world.pod("b", cpu="1")
    await world.waits("b")
    await world.resize("a", "1500m", memory="1Gi")
    await world.report("a", "1500m", memory="1Gi")
    await world.stays("b")
    assert world.attempts("unschedulable") == 1


@pytest.mark.row("R-084")
async def test_the_status_of_a_sidecar_counts_and_that_of_a_plain_init_container_does_not(world: World) -> None:
    await world.node("n1", cpu="4")
    init = [
        {"name": "first", "image": "i", "resources": {"requests": {"cpu": "100m"}}},
        {"name": "side", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
    ]
    await world.pod("a", cpu="500m", initContainers=init)
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.status("a", {"initContainerStatuses": [holding("first", "3"), holding("side", "1500m")]})
    await world.pod("b", cpu="2001m")
    assert "Insufficient cpu" in await world.waits("b")
    await world.pod("c", cpu="2")
    await world.until("c", lambda pod: bool(pod.spec.node_name))


@pytest.mark.row("R-085")
async def test_requests_of_the_pod_as_a_whole_replace_the_sum_and_follow_its_status(world: World) -> None:
    await world.node("n1", cpu="2")
    await world.pod("a", cpu="100m", resources={"requests": {"cpu": "500m"}})
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.pod("b", cpu="1500m")
    await world.until("b", lambda pod: bool(pod.spec.node_name))
    await world.client.delete(Pod, "b", "default", grace=0)
    held = {"allocatedResources": {"cpu": "1500m"}, "resources": {"requests": {"cpu": "500m"}}}
    await world.status("a", held)
    await world.pod("c", cpu="1")
    assert "Insufficient cpu" in await world.waits("c")
    await world.status("a", {"allocatedResources": {"cpu": "500m"}})
    await world.until("c", lambda pod: bool(pod.spec.node_name))


@pytest.mark.row("R-086")
async def test_overhead_is_added_once(world: World) -> None:
    await world.node("n1", cpu="2")
    costly = {"metadata": {"name": "costly"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}}}
    await world.client.create(convert(costly, RuntimeClass))
    await world.pod("a", cpu="1", runtimeClassName="costly")
    await world.until("a", lambda pod: bool(pod.spec.node_name))
    await world.report("a", "1")
    await world.pod("b", cpu="751m")
    assert "Insufficient cpu" in await world.waits("b")
    await world.pod("c", cpu="750m")
    await world.until("c", lambda pod: bool(pod.spec.node_name))


@pytest.mark.row("R-087")
async def test_a_node_needs_no_resize_feature_to_get_a_pod_but_others_it_does(world: World) -> None:
    await world.node("n1", cpu="4")
    await world.pod("a", cpu="1", resources={"requests": {"cpu": "1"}})
    await world.until("a", lambda pod: pod.spec.node_name == "n1")
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}]
    container = {"name": "c", "image": "i", "restartPolicy": "Never", "restartPolicyRules": rules}
    await world.pod("b", containers=[container])
    assert (await world.waits("b")).startswith(
        "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    )
    await world.allocatable("n1", cpu="4", pods="110", features=("InPlacePodLevelResourcesVerticalScaling",))
    await world.stays("b")
    await world.allocatable("n1", cpu="4", pods="110", features=("RestartAllContainersOnContainerExits",))
    await world.until("b", lambda pod: pod.spec.node_name == "n1")
