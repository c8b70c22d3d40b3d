"""A pod's life on a node, from its placement to its end."""

from pathlib import Path

import pytest

from kubelet.harness import Node, container
from podfit.decide.lifecycle.facts import ContainerState


def calls(node: Node, *kinds: str) -> list[str]:
    return [call for call in node.runtime.calls if call.split()[0] in kinds]


async def test_a_pod_runs(node: Node) -> None:
    node.add()
    await node.runs()
    assert node.runtime.calls == ["sandbox web", "create c1", "start c1"]
    assert node.state()["ready"]
    assert node.state()["containerID"].startswith("fake://")
    assert node.api.status("web")["podIP"] == "10.0.0.1"
    assert node.api.events("Pod") == [
        'Pulled Container image "app:1" already present on machine and can be accessed by the pod',
        "Created Container created",
        "Started Container started",
    ]


async def test_a_running_pod_that_nothing_happens_to_costs_no_writes(node: Node) -> None:
    node.add()
    await node.runs()
    before = len(node.api.patches)
    await node.advance(300)
    assert [patch for patch in node.api.patches[before:] if "status" in patch] == []


@pytest.mark.parametrize(
    ("policy", "code", "phase"), [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")]
)
async def test_a_pod_ends_by_itself(node: Node, policy: str, code: int, phase: str) -> None:
    node.add(restartPolicy=policy)
    await node.runs()
    node.runtime.exit("c1", code)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == phase)
    assert node.state()["state"]["terminated"]["exitCode"] == code
    assert node.cgroups.list_pods() == ()
    assert node.api.get("pods", "web") is not None
    assert node.runtime.instances, "logs of an ended pod can be read until it is deleted"


async def test_a_container_that_keeps_ending_waits_longer_each_time(node: Node) -> None:
    node.add()
    await node.runs()
    starts = []
    for wait in (0.5, 10.5, 20.5):
        node.runtime.exit("c1", 1)
        await node.advance(wait)
        await node.until(lambda: node.state()["state"].get("running"))
        starts.append(node.state()["restartCount"])
    assert starts == [1, 2, 3]
    node.runtime.exit("c1", 1)
    await node.advance(1)
    waiting = node.state()["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"] == "back-off 40s restarting failed container=c1 pod=web_default(web)"
    assert "BackOff Back-off restarting failed container c1 in pod web_default(web)" in node.api.events()
    assert len(node.runtime.instances) == 2, "only the last ended instance is kept"


async def test_init_containers_and_sidecars_come_up_in_order(node: Node) -> None:
    node.add(initContainers=[container("i1"), container("s1", restartPolicy="Always"), container("i2")])
    await node.until(lambda: node.runtime.calls[-1:] == ["start i1"])
    await node.rest()
    assert node.state(which="c1")["state"]["waiting"]["reason"] == "PodInitializing"
    node.runtime.exit("i1", 0)
    await node.advance(0.5)
    await node.until(lambda: "start i2" in node.runtime.calls)
    node.runtime.exit("i2", 0)
    await node.advance(0.5)
    await node.runs()
    assert calls(node, "start") == ["start i1", "start s1", "start i2", "start c1"]
    node.runtime.exit("s1", 1)
    await node.advance(0.5)
    await node.until(lambda: node.state(which="s1")["restartCount"] == 1)
    assert node.state()["restartCount"] == 0


async def test_a_sidecar_does_not_keep_a_finished_job_alive(node: Node) -> None:
    node.add(restartPolicy="Never", initContainers=[container("s1", restartPolicy="Always")])
    await node.runs()
    node.runtime.exit("c1", 0)
    await node.advance(0.5)
    await node.until(lambda: node.phase() == "Succeeded")
    assert calls(node, "stop") == ["stop s1 30s"]


async def test_deleting_a_pod_stops_it_and_leaves_nothing(node: Node) -> None:
    node.add(initContainers=[container("s1", restartPolicy="Always"), container("s2", restartPolicy="Always")])
    await node.runs()
    node.api.delete("web", 5)
    await node.until(lambda: node.api.get("pods", "web") is None)
    await node.rest()
    assert calls(node, "stop") == ["stop c1 5s", "stop s2 5s", "stop s1 5s"]
    assert not node.runtime.boxes
    assert not node.runtime.instances
    assert node.cgroups.list_pods() == ()
    assert list((node.config.root / "pods").iterdir()) == []
    assert list(node.config.log_root.iterdir()) == []


async def test_shortening_the_grace_period_cuts_the_wait(node: Node) -> None:
    node.runtime.stubborn.add("c1")
    node.add()
    await node.runs()
    node.api.delete("web", 30)
    await node.until(lambda: "stop c1 30s" in node.runtime.calls)
    node.api.delete("web", 1)
    await node.until(lambda: "stop c1 1s" in node.runtime.calls)
    await node.advance(1)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert node.clock.monotonic() < 5


async def test_a_pod_deleted_by_force_is_stopped_all_the_same(node: Node) -> None:
    node.add()
    await node.runs()
    node.api.remove("pods", "web")
    await node.until(lambda: not node.runtime.boxes)
    assert calls(node, "stop") == ["stop c1 1s"]


async def test_a_pod_deleted_by_force_counts_no_more_while_its_container_ends(node: Node) -> None:
    """Else the next pod, which the scheduler has bound already, would be Failed for good (OutOfcpu)."""
    node.runtime.stubborn.add("c1")
    large = {"requests": {"cpu": "3"}}
    node.add(containers=[container("c1", resources=large)])
    await node.runs()
    node.api.remove("pods", "web")
    node.add("next", containers=[container("c2", resources=large)])
    await node.runs("next")
    assert node.runtime.running("c1").state is ContainerState.RUNNING, "the first one's container still ends"
    node.runtime.stubborn.clear()


async def test_a_finalizer_holds_the_object_but_not_the_room(node: Node) -> None:
    pod = node.add()
    await node.runs()
    node.api.put("pods", {**pod, "metadata": {**pod["metadata"], "finalizers": ["x/y"]}})
    node.api.delete("web", 1)
    await node.until(lambda: not node.runtime.boxes)
    await node.rest()
    assert node.api.get("pods", "web") is not None
    assert node.phase() == "Succeeded"


async def test_a_pod_without_room_fails_with_the_reason(node: Node) -> None:
    node.add(containers=[container("c1", resources={"requests": {"cpu": "50"}})])
    await node.until(lambda: node.phase() == "Failed")
    text = "Node didn't have enough resource: cpu, requested: 50000, used: 0, capacity: 4000"
    assert node.api.status("web")["reason"] == "OutOfcpu"
    assert node.api.status("web")["message"] == f"Pod was rejected: {text}"
    await node.until(lambda: node.api.events("Pod") == [f"OutOfcpu {text}"])
    assert not node.runtime.boxes


async def test_another_image_restarts_that_container_only(node: Node) -> None:
    node.runtime.images["app:2"] = node.runtime.images["app:1"]
    node.add(containers=[container("c1"), container("c2")])
    await node.runs()
    kept = node.state(which="c2")["containerID"]
    node.api.change("web", containers=[{**container("c1"), "image": "app:2"}, container("c2")])
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert node.state(which="c2")["containerID"] == kept
    assert "Killing Container c1 definition changed, will be restarted" in node.api.events()


async def test_a_sandbox_that_dies_is_replaced(node: Node) -> None:
    node.add()
    await node.runs()
    node.runtime.kill_box("web")
    await node.advance(0.5)
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert [box.attempt for box, _ in node.runtime.boxes.values()][-1] == 1


async def test_a_pod_cgroup_that_vanished_brings_the_pod_down_and_up_again(node: Node) -> None:
    """Its containers run outside of their limits."""
    node.add()
    await node.runs()
    for pod in node.cgroups.list_pods():
        node.cgroups.remove(pod.path)
    await node.advance(100)
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert len(node.cgroups.list_pods()) == 1


async def test_a_volume_follows_its_config_map_within_minutes(node: Node, tmp_path: Path) -> None:
    def put(text: str) -> None:
        node.api.put("configmaps", {"metadata": {"name": "cm", "namespace": "default"}, "data": {"a": text}})

    def shown() -> str:
        return next(tmp_path.glob("**/kubernetes.io~configmap/v/a")).read_text()

    put("old")
    node.add(volumes=[{"name": "v", "configMap": {"name": "cm"}}])
    await node.runs()
    assert shown() == "old"
    put("new")
    await node.advance(130)
    await node.until(lambda: shown() == "new")
