"""The kubelet dies and comes back: nothing is restarted, nothing is forgotten, nothing is left over."""

import asyncio
import random
from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.kubelet.cgroup.protocol import CgroupConfig
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.runtime.configs import SandboxConfig
from podfit.kubelet.runtime.errors import CRIError


async def test_surviving_containers_keep_their_ids(node: Node) -> None:
    node.add(containers=[container("c1"), container("c2")])
    await node.runs()
    before, calls = node.api.status("web"), list(node.runtime.calls)
    await node.crash()
    await node.advance(100)
    await node.start()
    await node.rest()
    assert node.runtime.calls == calls
    assert node.api.status("web") == before


async def test_a_container_that_ended_meanwhile_is_restarted_once(node: Node) -> None:
    node.add()
    await node.runs()
    await node.crash()
    node.runtime.exit("c1", 5)
    await node.start()
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert node.state()["lastState"]["terminated"]["exitCode"] == 5


async def test_a_container_that_was_created_and_never_started_counts_no_restart(node: Node) -> None:
    node.runtime.fail["start"] = "killed in the middle"
    node.add()
    await node.until(lambda: "start c1" in node.runtime.calls)
    await node.crash()
    node.runtime.fail.clear()
    for container_id in node.runtime.instances:
        node.runtime.undo_start(container_id)
    await node.start()
    await node.runs()
    assert node.state()["restartCount"] == 0
    assert len(node.runtime.instances) == 1


@pytest.mark.parametrize("policy", ["Always", "Never"])
async def test_a_container_of_unknown_state_is_stopped_and_started_anew(node: Node, policy: str) -> None:
    """Whatever the policy, as upstream: it has not ended by itself. Its pod was stuck for good once."""
    node.add(restartPolicy=policy)
    await node.runs()
    await node.crash()
    (before,) = node.runtime.instances
    node.runtime.lose("c1")
    await node.start()
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert before not in node.state()["containerID"]
    assert {pod["status"]["phase"] for _, pod in node.api.history("pods")} == {"Pending", "Running"}


async def test_everything_lost_comes_up_again(node: Node) -> None:
    """The runtime's state directory is gone, or the machine was restarted."""
    node.add()
    await node.runs()
    await node.crash()
    node.runtime.boxes.clear()
    node.runtime.instances.clear()
    node.cgroups.groups.clear()
    await node.start()
    await node.until(lambda: node.state().get("restartCount") == 1 and node.state()["state"].get("running"))


async def test_a_pod_deleted_meanwhile_is_cleaned_up(node: Node) -> None:
    node.add("web")
    node.add("other")
    await node.runs("web")
    await node.runs("other")
    await node.crash()
    node.api.remove("pods", "web")
    await node.start()
    await node.until(lambda: len(node.runtime.boxes) == 1)
    await node.rest()
    assert [pod.uid for pod in node.cgroups.list_pods()] == ["other"]
    assert [path.name for path in (node.config.root / "pods").iterdir()] == ["other"]
    assert [path.name for path in node.config.log_root.iterdir()] == ["default_other_other"]


async def test_pods_deleted_by_force_while_the_kubelet_starts_are_cleaned_up(node: Node) -> None:
    """Half of them in the turn of the loop in which their workers may begin, the others right after it."""
    chance, names = random.Random(1109), [f"web-{number}" for number in range(12)]
    for name in (*names, "stays"):
        node.add(name)
    await node.runs("stays")
    await node.crash()
    chance.shuffle(names)
    allocation = node.kubelet._allocation_parts.allocation
    ready = allocation.sources_ready

    async def deleted_meanwhile() -> None:
        for name in names[:6]:
            node.api.remove("pods", name)
        await node.rest()
        await ready()

    allocation.sources_ready = deleted_meanwhile  # type: ignore[method-assign]  # a moment made to last
    await node.start()
    for name in names[6:]:
        node.api.remove("pods", name)
    await node.until(lambda: node.kubelet._allocation_parts.known.uids() == {"stays"})
    assert [box.uid for box, _ in node.runtime.boxes.values()] == ["stays"]
    assert [pod.uid for pod in node.cgroups.list_pods()] == ["stays"]
    assert [path.name for path in (node.config.root / "pods").iterdir()] == ["stays"]


async def test_sandboxes_of_another_node_on_the_same_runtime_are_left_alone(node: Node) -> None:
    await node.runtime.run_sandbox(SandboxConfig(name="x", namespace="y", uid="z", labels={"podfit.dev/node": "n2"}))
    await node.advance(61)
    assert [box.uid for box, _ in node.runtime.boxes.values()] == ["z"]


async def test_processes_that_the_runtime_forgot_go_with_their_deleted_pod(node: Node) -> None:
    """A containerd that is killed while it makes a sandbox knows nothing of the process that it has started for it."""
    node.add("web")
    node.add("stays")
    await node.runs("web")
    await node.runs("stays")
    forgotten = {pod.uid: f"{pod.path}/forgotten" for pod in node.cgroups.list_pods()}
    await node.crash()
    for number, path in enumerate(forgotten.values()):
        node.cgroups.create(path, CgroupConfig())
        node.cgroups.processes[path] = 1000 + number
    node.api.remove("pods", "web")
    sandbox = next(name for name, (box, _) in node.runtime.boxes.items() if box.uid == "web")
    await node.runtime.remove_sandbox(sandbox)
    await node.start()
    await node.until(lambda: [pod.uid for pod in node.cgroups.list_pods()] == ["stays"])
    assert list(node.cgroups.processes) == [forgotten["stays"]]


async def test_processes_of_a_sandbox_that_the_runtime_cannot_remove_are_not_killed(node: Node) -> None:
    node.add("web")
    await node.runs("web")
    (pod,) = node.cgroups.list_pods()
    await node.crash()
    node.cgroups.processes[pod.path] = 1000
    node.api.remove("pods", "web")
    node.runtime.fail["stop_sandbox"] = "not now"
    await node.start()
    await node.advance(10)
    assert node.cgroups.list_pods() == (pod,)
    assert node.cgroups.processes == {pod.path: 1000}
    del node.runtime.fail["stop_sandbox"]
    node.cgroups.processes.clear()
    await node.advance(61)
    assert node.cgroups.list_pods() == ()


async def test_what_a_pod_has_that_comes_during_a_sweep_stays(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removals take time: who is wanted is asked after each listing."""
    node.add("old")
    await node.runs("old")
    await node.crash()
    node.api.remove("pods", "old")
    removed = node.runtime.remove_sandbox

    async def slow(sandbox_id: str) -> None:
        node.add("new")
        await node.clock.sleep(5)
        await removed(sandbox_id)

    monkeypatch.setattr(node.runtime, "remove_sandbox", slow)
    await node.start()
    await node.runs("new")
    await node.advance(6)
    assert [pod.uid for pod in node.cgroups.list_pods()] == ["new"]
    assert [path.name for path in (node.config.root / "pods").iterdir()] == ["new"]
    assert [path.name for path in node.config.log_root.iterdir()] == ["default_new_new"]


async def test_a_deletion_that_was_asked_for_meanwhile_is_carried_out(node: Node) -> None:
    node.add()
    await node.runs()
    await node.crash()
    node.api.delete("web", 3)
    await node.start()
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert not node.runtime.boxes


async def test_an_ended_pod_stays_as_it_ended(node: Node) -> None:
    node.add(restartPolicy="Never")
    await node.runs()
    node.runtime.exit("c1", 4)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == "Failed")
    before = node.api.status("web")
    await node.crash()
    await node.start()
    await node.rest()
    assert node.api.status("web") == before
    node.api.delete("web", 0)
    await node.until(lambda: node.api.get("pods", "web") is None)


async def test_stopping_with_the_pods_leaves_nothing_on_the_machine(node: Node) -> None:
    node.add()
    await node.runs()
    await node.kubelet.stop(stop_pods=True)
    assert not node.runtime.boxes
    assert not node.cgroups.groups
    assert node.phase() == "Running", "the objects are the API's"


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "nothing found"])
async def test_a_removal_that_is_still_under_way_is_waited_for(
    node: Node, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Of a worker that was told to go in the middle of it. Until it is done the runtime refuses a second one, or says
    that it has removed what it did not find.
    """
    node.add()
    await node.runs()
    refusals, remove = 3, node.runtime.remove_sandbox

    async def refuses(sandbox_id: str) -> None:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0 and refused:
            raise CRIError("container is already in removing state")
        if refusals < 0:
            await remove(sandbox_id)

    monkeypatch.setattr(node.runtime, "remove_sandbox", refuses)
    stopping = asyncio.create_task(node.kubelet.stop(stop_pods=True))
    while not stopping.done():
        await node.advance(0.1)
    await stopping
    assert not node.runtime.boxes


async def test_the_api_is_away_for_a_while(node: Node) -> None:
    node.api.put("configmaps", {"metadata": {"name": "cm", "namespace": "default"}, "data": {"k": "v"}})
    node.add(volumes=[{"name": "v", "configMap": {"name": "cm"}}])
    await node.runs()
    node.api.down = True
    await node.advance(100)
    node.runtime.exit("c1", 1)
    await node.advance(30)
    assert node.runtime.running("c1").attempt == 1, "containers do not need the API"
    node.api.down = False
    await node.advance(30)
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))


async def test_a_job_whose_containers_were_lost_fails_and_is_not_done_twice(node: Node) -> None:
    node.add(restartPolicy="Never")
    await node.runs()
    await node.crash()
    node.runtime.boxes.clear()
    node.runtime.instances.clear()
    calls = len(node.runtime.calls)
    await node.start()
    await node.until(lambda: node.phase() == "Failed")
    assert node.state()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert not [call for call in node.runtime.calls[calls:] if call.startswith("start")]


async def test_a_runtime_that_returns_is_used_at_once(node: Node) -> None:
    node.runtime.fail |= {"list": "connection refused", "sandbox": "connection refused"}
    node.add()
    await node.advance(1)
    node.runtime.fail.clear()
    await node.advance(0.5)
    await node.runs()


# ------------------------------------------------------------------ what is stopped to be started anew


RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
CALLS = ("stop_container", "remove_container", "create_container", "start_container", "update_container_resources")


async def _killed_at(node: Node, place: int, *, done: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The kubelet is killed at this call of the runtime that changes something, before or after it is `done`. False
    when there is none.
    """
    calls, reached = 0, asyncio.Event()
    with monkeypatch.context() as patched:
        for name in CALLS:
            real = getattr(node.runtime, name)

            async def call(*given: Any, real: Any = real, **named: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == place and not done:
                    reached.set()
                    await asyncio.Event().wait()
                answer = await real(*given, **named)
                if calls == place:
                    reached.set()
                    await asyncio.Event().wait()
                return answer

            patched.setattr(node.runtime, name, call)
        node.api.change("web", containers=_restarting("200m"))
        await node.rest()
    if reached.is_set():
        await node.crash()
        await node.start()
    return reached.is_set()


def _restarting(cpu: str) -> list[Document]:
    sized = container("c1", resources={"limits": {"cpu": cpu}}, restartPolicy="Never", resizePolicy=RESTARTS)
    return [sized, container("c2")]


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", range(1, 5))
async def test_a_resize_that_restarts_is_carried_on_after_a_kill_at_every_call(
    node: Node, place: int, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container would not start again after an end of its own, and ends with exit code 0 when it is stopped."""
    node.add(restartPolicy="OnFailure", containers=_restarting("100m"))
    await node.runs()
    killed = await _killed_at(node, place, done=done, monkeypatch=monkeypatch)
    assert killed is (place <= 3), "stop, create, start"
    await node.advance(15)
    await node.until(lambda: "running" in node.state()["state"], f"c1 is {node.state()}")
    resources = node.runtime.config("c1").resources
    assert resources is not None
    assert (resources.cpu_quota, node.state()["restartCount"]) == (20_000, 1)
    assert node.state()["resources"]["limits"] == {"cpu": "200m"}
    node.runtime.exit("c1", 1)
    await node.advance(15)
    assert node.state()["state"]["terminated"]["exitCode"] == 1, "of an end of its own nothing was noted"


async def test_nothing_is_stopped_that_was_not_noted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full: after a kill nobody would know that the container is to start again."""
    node.add(containers=_restarting("100m"))
    await node.runs()
    actuated = node.kubelet._allocation_parts.checkpoints[1]

    async def full(_changes: object) -> None:
        raise CheckpointError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(actuated, "put", full)
        node.api.change("web", containers=_restarting("200m"))
        await node.advance(25)
        assert "stop c1 30s" not in node.runtime.calls
    await node.advance(15)
    assert node.state()["restartCount"] == 1
