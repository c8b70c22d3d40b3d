"""Admission, the queue of resizes, events and restarts of the kubelet, as stories on a node of four CPUs."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity
from podfit.decide.node import events as on
from podfit.decide.node.drive import drive
from podfit.decide.node.effects import Admitted, Rejected, Unsaved
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.format import load
from podfit.kubelet.disk.writer import Threads
from support.allocating import Allocating
from support.placed import placed
from support.pods import container, needs, pod


def make(name: str, cpu: str, **more: Any) -> Pod:
    return placed(pod(container("c1", {"cpu": cpu}), name=name, **more))


@pytest.fixture
async def node(tmp_path: Path) -> Allocating:
    return Allocating(tmp_path)


@pytest.mark.row("R-094", "R-095", "R-121", "R-146")
async def test_room_is_granted_at_once(node: Allocating) -> None:
    web = make("web", "1")
    await node.start(web)
    await node.wants(web, c1=needs({"cpu": "2"}))
    assert node.cpu(web) == 2000
    condition = node.condition(web, "PodResizeInProgress")
    assert condition is not None
    assert (condition.reason, condition.message, condition.observed_generation) == ("", "", 2)
    body = '{"containers":[{"name":"c1","resources":{"requests":{"cpu":"2"}}}],"generation":2}'
    assert node.events == [f"web Normal ResizeStarted Pod resize started: {body}"]
    assert node.synced == ["web pod_updated"]
    await node.settles(web)
    assert node.manager.conditions("web") == ()
    assert node.events[1:] == [f"web Normal ResizeCompleted Pod resize completed: {body}"]


@pytest.mark.row("R-096", "R-097", "R-098", "R-119", "R-122")
async def test_no_room_defers_and_says_so_once(node: Allocating) -> None:
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    await node.wants(web, c1=needs({"cpu": "2"}))
    text = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
    first = node.condition(web)
    assert first is not None
    assert (first.reason, first.message, first.observed_generation) == ("Deferred", text, 2)
    assert first.last_probe_time == first.last_transition_time
    assert node.cpu(web) == 500
    assert len(node.events) == 1
    assert node.events[0].startswith("web Warning ResizeDeferred Pod resize OutOfcpu: {")
    assert node.events[0].endswith(f'"generation":2,"error":"{text}"}}')
    await node.clock.advance(200)
    again = node.condition(web)
    assert again is not None
    assert again.last_transition_time == first.last_transition_time
    assert again.last_probe_time != first.last_probe_time
    assert len(node.events) == 1


@pytest.mark.row("R-099", "R-100", "R-101", "R-102", "R-103", "R-190")
@pytest.mark.parametrize("trigger", ["pods_removed", "pod_terminated", "pod_resized", "periodic_retry"])
async def test_whatever_makes_room_helps(node: Allocating, trigger: str) -> None:
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    await node.wants(web, c1=needs({"cpu": "2"}))
    match trigger:
        case "pods_removed":
            await node.manager.remove(["hog"])
        case "pod_terminated":
            await node.ends(hog)
        case "pod_resized":
            await node.wants(hog, c1=needs({"cpu": "1"}))
            assert node.cpu(web) == 500  # still held: the hog has not reported the smaller size
            await node.settles(hog)
        case _:
            node.view = replace(node.view, allocatable={**node.view.allocatable, "cpu": Quantity.of(8)})
            await node.clock.advance(179)
            assert node.cpu(web) == 500
            await node.clock.advance(1)
            await node.clock.settle()
            assert node.synced[-1] == "web periodic_retry"
    assert node.cpu(web) == 2000
    assert node.synced[-1] == f"web {trigger}"
    assert node.metric(f'kubelet_pod_deferred_accepted_resizes_total{{retry_trigger="{trigger}"}}') == 1


@pytest.mark.row("R-104", "R-105", "R-106", "R-107", "R-118")
async def test_those_that_wait_are_tried_in_order(node: Allocating) -> None:
    """Whatever the order in which they came."""
    amounts = {"cpu": "100m", "memory": "1Mi"}
    pods = {
        "newest": make("newest", "100m"),
        "oldest": make("oldest", "100m"),
        "guaranteed": placed(pod(container("c1", amounts, amounts), name="guaranteed")),
        "important": make("important", "100m", priority=10),
        "modest": make("modest", "100m"),
    }
    await node.start(*pods.values())
    node.view = replace(node.view, pressure=("DiskPressure",))
    larger = {"cpu": "200m", "memory": "1Mi"}
    for name in ("oldest", "modest", "guaranteed", "important", "newest"):
        to = needs({"cpu": "50m"}) if name == "modest" else needs({"cpu": "200m"})
        await node.wants(pods[name], c1=needs(larger, larger) if name == "guaranteed" else to)
        pending = node.condition(pods[name])
        assert pending is not None
        assert (pending.reason, pending.message) == ("Deferred", "The node had condition: [DiskPressure]. ")
        await node.clock.advance(1)
    node.view = replace(node.view, pressure=())
    await node.manager.retry("periodic_retry")
    granted = [line.split()[0] for line in node.events if " ResizeStarted " in line]
    assert granted == ["modest", "important", "guaranteed", "oldest", "newest"]


@pytest.mark.row("R-109")
async def test_all_containers_or_none(node: Allocating) -> None:
    web = placed(pod(container("c1", {"cpu": "500m"}), container("c2", {"cpu": "500m"}), name="web"))
    await node.start(web)
    wanted = await node.wants(web, c1=needs({"cpu": "1"}), c2=needs({"cpu": "4"}))
    promised = node.manager.allocated(wanted)
    assert [str(container.resources.requests["cpu"]) for container in promised.spec.containers] == ["500m", "500m"]
    assert node.condition(web) is not None


@pytest.mark.row("R-105", "R-108")
async def test_blocked_first_does_not_block_the_next(node: Allocating) -> None:
    first, second, hog = make("first", "100m", priority=9), make("second", "100m"), make("hog", "3800m")
    await node.start(first, second, hog)
    await node.wants(first, c1=needs({"cpu": "3900m"}))
    await node.wants(second, c1=needs({"cpu": "2"}))
    assert (node.cpu(first), node.cpu(second)) == (100, 100)
    await node.manager.remove(["hog"])
    assert (node.cpu(first), node.cpu(second)) == (3900, 100)  # the higher priority took it
    await node.wants(second, c1=needs({"cpu": "50m"}))
    assert node.cpu(second) == 50


@pytest.mark.row("R-110", "R-111")
async def test_newer_desire_replaces_the_waiting_one(node: Allocating) -> None:
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    await node.wants(web, c1=needs({"cpu": "2"}))
    await node.wants(web, c1=needs({"cpu": "1"}))
    assert node.cpu(web) == 1000
    assert node.condition(web) is None
    await node.wants(web, c1=needs({"cpu": "3"}))
    assert node.condition(web) is not None
    told = len(node.events)
    await node.wants(web, c1=needs({"cpu": "1"}))
    assert node.condition(web) is None
    assert len(node.events) == told


@pytest.mark.row("R-112", "R-189")
async def test_infeasible_rests_until_the_spec_changes(node: Allocating) -> None:
    both = {"cpu": "1", "memory": "1Gi"}
    web = placed(pod(container("c1", both, both)))
    node.view = replace(node.view, cpu_manager="static")
    await node.start(web)
    more = {**both, "cpu": "2"}
    await node.wants(web, c1=needs(more, more))
    condition = node.condition(web)
    assert condition is not None
    assert condition.reason == "Infeasible"
    assert node.events[-1].startswith("web Warning ResizeInfeasible Pod resize Infeasible: {")
    assert node.metric('kubelet_pod_pending_resizes{reason="infeasible"}') == 1
    detail = 'kubelet_pod_infeasible_resizes_total{reason_detail="guaranteed_pod_cpu_manager_static_policy"}'
    await node.manager.retry("periodic_retry")
    assert node.metric(detail) == 1
    bigger = {**both, "memory": "2Gi"}
    await node.wants(web, c1=needs(bigger, bigger))
    assert node.condition(web) is None
    assert node.metric('kubelet_pod_pending_resizes{reason="infeasible"}') == 0


@pytest.mark.row("R-120", "R-141", "R-142")
async def test_pending_beside_a_failing_one(node: Allocating) -> None:
    web, hog = make("web", "500m"), make("hog", "2")
    await node.start(web, hog)
    first = await node.wants(web, c1=needs({"cpu": "1"}))
    await drive(node.manager, node.manager, on.ActuationEnded(first, "runtime says no"))
    await drive(node.manager, node.manager, on.ActuationEnded(first, "runtime says no"))
    second = await node.wants(web, c1=needs({"cpu": "3"}))
    assert [
        (condition.type, condition.reason, condition.observed_generation)
        for condition in node.manager.conditions("web")
    ] == [("PodResizePending", "Deferred", 3), ("PodResizeInProgress", "Error", 2)]
    assert [line.split(" ")[2] for line in node.events] == ["ResizeStarted", "ResizeError", "ResizeDeferred"]
    await drive(node.manager, node.manager, on.ActuationEnded(second, ""))
    await node.settles(web)
    assert node.condition(web, "PodResizeInProgress") is None


async def test_failure_outlives_agreeing_records(node: Allocating) -> None:
    web = make("web", "1")
    await node.start(web)
    new = await node.wants(web, c1=needs({"cpu": "2"}))
    await drive(node.manager, node.manager, on.ActuationEnded(new, "cgroup: EINVAL"))
    await node.settles(web)
    assert node.condition(web, "PodResizeInProgress") is not None
    await drive(node.manager, node.manager, on.ActuationEnded(new, ""))
    await node.settles(web)
    assert node.condition(web, "PodResizeInProgress") is None


async def test_failed_save_keeps_the_resize_queued(tmp_path: Path) -> None:
    disk = Disk()
    node = Allocating(tmp_path, write=disk.write)
    web = make("web", "1")
    await node.start(web)
    disk.full = True
    await node.wants(web, c1=needs({"cpu": "2"}))
    assert node.cpu(web) == 1000
    pending = node.condition(web)
    assert pending is not None
    assert (pending.reason, pending.message) == (
        "Deferred",
        f"could not write {tmp_path}/allocated_pods_state: No space left on device",
    )
    (event,) = node.events
    assert event.startswith("web Warning ResizeDeferred Pod resize CheckpointUnwritable: ")
    disk.full = False
    await node.clock.advance(10)
    await node.clock.settle()
    assert node.condition(web) is None
    assert node.cpu(web) == 2000


async def test_what_has_no_room_says_so_while_nothing_can_be_saved(tmp_path: Path) -> None:
    """The text counts what was promised, not what would have been."""
    disk = Disk()
    node = Allocating(tmp_path, write=disk.write)
    web, other = make("web", "1"), make("other", "1")
    await node.start(web, other)
    disk.full = True
    await node.wants(web, c1=needs({"cpu": "2"}))
    await node.wants(other, c1=needs({"cpu": "3500m"}))
    refused = node.condition(other)
    assert refused is not None
    assert refused.message == "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000"


async def test_a_promise_that_was_taken_back_needs_no_disk(tmp_path: Path) -> None:
    disk = Disk()
    node = Allocating(tmp_path, write=disk.write)
    web = make("web", "1")
    await node.start(web)
    disk.full = True
    await node.wants(web, c1=needs({"cpu": "2"}))
    await node.wants(web, c1=needs({"cpu": "1"}))
    assert node.manager.conditions("web") == ()


@pytest.mark.row("R-089")
async def test_new_pod_is_not_started_without_a_promise_on_disk(tmp_path: Path) -> None:
    disk = Disk()
    disk.full = True
    node = Allocating(tmp_path, write=disk.write)
    (unsaved,) = await node.add(make("web", "1"))
    assert isinstance(unsaved, Unsaved)
    assert "No space left on device" in unsaved.message
    assert node.allocated.get("web") is None
    disk.full = False
    (answer,) = await node.add(make("web", "1"))
    assert isinstance(answer, Admitted)
    assert node.allocated.get("web") is not None


async def test_new_pod_without_room_is_rejected(node: Allocating) -> None:
    await node.start(make("hog", "3"))
    (answer,) = await node.add(make("web", "2"))
    assert isinstance(answer, Rejected)
    assert (answer.reason, answer.message) == (
        "OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
    )
    (other,) = await node.add(make("small", "1"))
    assert isinstance(other, Admitted)


@pytest.mark.row("R-169", "R-172", "R-173")
async def test_restart_keeps_allocations_and_waits_for_sources(node: Allocating) -> None:
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    wanted = await node.wants(web, c1=needs({"cpu": "2"}))
    held = msgspec.structs.replace(
        wanted, status=msgspec.structs.replace(wanted.status, conditions=node.manager.conditions("web"))
    )
    after = Allocating(node.folder)
    newcomer = make("a-newcomer", "1")
    answers = await after.add(held, node.desired["hog"], newcomer)
    assert [type(answer) for answer in answers] == [Rejected, Admitted, Admitted]  # promises come before newcomers
    assert after.cpu(wanted) == 500
    condition = after.condition(wanted)
    assert condition is not None
    assert (condition.reason, condition.observed_generation) == ("Deferred", 2)
    await after.manager.remove(["hog"])
    assert after.cpu(wanted) == 500
    await after.manager.sources_ready()
    assert after.cpu(wanted) == 2000


@pytest.mark.row("R-170", "R-171")
async def test_restart_between_allocation_and_actuation(node: Allocating) -> None:
    web = make("web", "1")
    await node.start(web)
    wanted = await node.wants(web, c1=needs({"cpu": "2"}))
    after = Allocating(node.folder)
    await after.add(wanted)
    assert (await after.manager.begin_sync(lambda: wanted, ["c1"])).pod is wanted
    assert after.condition(wanted, "PodResizeInProgress") is not None
    await after.settles(wanted)
    assert after.condition(wanted, "PodResizeInProgress") is None


@pytest.mark.row("R-146", "R-165")
async def test_a_sync_during_a_decision_sees_all_of_it_or_nothing(tmp_path: Path) -> None:
    """The promise is on disk, and readable, a moment before its condition is set."""
    node = Allocating(tmp_path, threads=Threads())
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    await node.wants(web, c1=needs({"cpu": "2"}))
    deciding = asyncio.create_task(node.wants(web, c1=needs({"cpu": "1"})))
    seen: list[tuple[str, list[tuple[str, int]]]] = []
    while not deciding.done():
        look = await node.manager.begin_sync(lambda: node.desired["web"], ["c1"])
        conditions = [(condition.type, condition.observed_generation) for condition in look.conditions]
        seen.append((str(look.pod.spec.containers[0].resources.requests["cpu"]), conditions))
        await asyncio.sleep(0)
    states = [state for number, state in enumerate(seen) if state not in seen[:number]]
    assert states == [("500m", [("PodResizePending", 2)]), ("1", [("PodResizeInProgress", 3)])]


@pytest.mark.row("R-146")
async def test_what_is_actuated_while_a_step_is_saved_is_not_lost(tmp_path: Path) -> None:
    """Whoever actuates does not wait for a step of another pod, and the next sync knows of it all the same."""
    node = Allocating(tmp_path, threads=Threads())
    web, hog = make("web", "500m"), make("hog", "1")
    await node.start(web, hog)
    new = await node.wants(web, c1=needs({"cpu": "1"}))
    resources = PodResources({"c1": new.spec.containers[0].resources}, needs())
    deciding = asyncio.create_task(node.wants(hog, c1=needs({"cpu": "2"})))
    await asyncio.sleep(0)
    assert node.cpu(hog) == 1000, "the step is being saved"
    await asyncio.gather(node.actuated.put({"web": resources}), deciding)
    assert node.cpu(hog) == 2000
    look = await node.manager.begin_sync(lambda: new, ["c1"])
    assert look.conditions == ()
    assert node.events[-1].startswith("web Normal ResizeCompleted")


@pytest.mark.row("R-172")
async def test_pods_with_a_promise_are_admitted_while_nothing_can_be_saved(tmp_path: Path) -> None:
    disk = Disk()
    before = Allocating(tmp_path, write=disk.write)
    old, new = make("old", "1"), make("new", "1")
    await before.start(old)
    disk.full = True
    after = Allocating(tmp_path, write=disk.write)
    answers = await after.add(old, new)
    assert {answer.pod.metadata.name: type(answer) for answer in answers} == {"old": Admitted, "new": Unsaved}


@pytest.mark.row("R-172")
async def test_a_status_that_could_not_be_written_before_a_restart_costs_no_pod_its_place(tmp_path: Path) -> None:
    """One had shrunk and the other grown into the room, and the API still shows the first at its old size."""
    before = Allocating(tmp_path)
    first, second = make("first", "3"), make("second", "1")
    await before.start(first, second)
    stale = before.reported["first"]
    shrunk = await before.wants(first, c1=needs({"cpu": "1"}))
    await before.settles(shrunk)
    grown = await before.wants(second, c1=needs({"cpu": "3"}))
    after = Allocating(tmp_path)
    answers = await after.add(msgspec.structs.replace(shrunk, status=stale), grown)
    assert [type(answer) for answer in answers] == [Admitted, Admitted]
    (new,) = await after.add(make("new", "500m"))
    assert isinstance(new, Rejected), "a new pod is measured against what may still be held"


@pytest.mark.row("R-091")
async def test_damaged_checkpoints_are_rebuilt_from_the_status(node: Allocating) -> None:
    web, hog = make("web", "500m"), make("hog", "3")
    await node.start(web, hog)
    wanted = await node.wants(web, c1=needs({"cpu": "2"}))
    for file in (node.allocated.path, node.actuated.path):
        file.write_bytes(b"x")
    after = Allocating(node.folder)
    status = node.reported["web"]
    pods = msgspec.structs.replace(wanted, status=status), hog
    await after.manager.rebuild(pods, {})
    await after.add(*pods)
    assert after.cpu(wanted) == 500
    assert load(after.allocated.path.read_bytes()).keys() == {"web", "hog"}, "written at once"
    record = after.actuated.get("web")
    assert record is not None
    assert record.containers == {"c1": needs({"cpu": "500m"})}


@pytest.mark.row("R-176")
async def test_finished_pod_has_no_conditions(node: Allocating) -> None:
    web = make("web", "1")
    await node.start(web)
    await node.wants(web, c1=needs({"cpu": "2"}))
    await node.ends(web)
    assert node.manager.conditions("web") == ()
    await node.wants(web, c1=needs({"cpu": "1500m"}))
    assert node.manager.conditions("web") == ()


@pytest.mark.row("R-176", "R-187")
async def test_a_finished_pod_neither_waits_nor_takes_room(node: Allocating) -> None:
    web, other = make("web", "1"), make("other", "1")
    await node.start(web, other)
    await node.ends(web)
    await node.wants(web, c1=needs({"cpu": "9"}))
    assert node.events[-1].startswith("web Warning ResizeDeferred ")
    assert node.manager.conditions("web") == ()
    assert node.metric('kubelet_pod_pending_resizes{reason="deferred"}') == 0
    await node.wants(web, c1=needs({"cpu": "3"}))
    await node.wants(other, c1=needs({"cpu": "4"}))
    assert node.cpu(other) == 4000


@pytest.mark.row("R-186", "R-187")
async def test_requested_resizes_are_counted(node: Allocating) -> None:
    web = placed(pod(container("c1", {"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}), container("c2", {"cpu": "1"})))
    await node.start(web)
    await node.wants(web, c1=needs({"cpu": "2", "memory": "512Mi"}, {"memory": "2Gi", "cpu": "3"}))
    for resource, requirement, operation in (
        ("cpu", "requests", "increase"),
        ("memory", "requests", "decrease"),
        ("cpu", "limits", "add"),
    ):
        labels = f'operation="{operation}",requirement="{requirement}",resource="{resource}"'
        assert node.metric(f"kubelet_container_requested_resizes_total{{{labels}}}") == 1
    assert node.metric("kubelet_pod_in_progress_resizes") == 1
    await node.settles(web)
    assert node.metric("kubelet_pod_in_progress_resizes") == 0


async def test_growth_of_many_comes_before_anything_else_is_told_of_them(node: Allocating) -> None:
    """Once it is on disk; less is the runtime's."""
    node.view = replace(node.view, machine=replace(node.view.machine, kernel_first=True))
    pods = [make(name, "500m") for name in ("a", "b", "c")]
    await node.start(*pods)
    seen: list[tuple[int, int]] = []
    node.manager._grow = lambda pod: seen.append((len(node.events), node.cpu(pod)))
    larger = [replace(pod, spec=make(pod.metadata.name, "1").spec) for pod in pods]
    await node.manager.update(larger)
    assert seen == [(0, 1000)] * 3
    assert len(node.events) == 3


async def test_many_at_once_share_a_write_and_never_promise_too_much(tmp_path: Path) -> None:
    writes = 0

    def write(path: Path, data: bytes) -> None:
        nonlocal writes
        writes += path.name == "allocated_pods_state"

    node = Allocating(tmp_path, write=write)
    pods = [make(f"p{n}", "100m") for n in range(20)]
    await node.start(*pods)
    writes = 0
    await asyncio.gather(*(node.wants(pod, c1=needs({"cpu": "1"})) for pod in pods))
    assert writes <= 3
    granted = [node.cpu(pod) for pod in pods]
    assert sum(granted) <= 4000
    assert granted.count(1000) == 2


class Disk:
    full = False

    def write(self, path: Path, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        path.write_bytes(data)
