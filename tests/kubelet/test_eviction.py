"""Pods that end because their node is short of memory or disk, or because they use more of it than they may."""

import asyncio
from pathlib import Path
from typing import Any

from kubelet.harness import Node, container
from kubelet.test_probes import told
from podfit.decide.node.pressure import Observation
from podfit.kubelet.runtime.types import ContainerStats, Image

MI = 1 << 20
SHORT, ENOUGH = Observation(50 * MI, 8 << 30), Observation(4 << 30, 8 << 30)


def uses(node: Node, **megabytes: int) -> None:
    """What the container of each pod uses."""
    by_pod = {status.labels["io.kubernetes.pod.name"]: status for status in node.runtime.containers()}
    node.runtime.stats = [
        ContainerStats(
            id=by_pod[name].id, name="c1", labels=by_pod[name].labels, timestamp=1, memory_working_set=n * MI
        )
        for name, n in megabytes.items()
    ]


def asks(memory: str) -> list[dict[str, object]]:
    return [container("c1", resources={"requests": {"memory": memory}})]


async def test_the_largest_beyond_its_request_goes_and_no_other(node: Node) -> None:
    node.add("modest", containers=asks("100Mi"))
    node.add("greedy", containers=asks("10Mi"))
    await node.runs("modest")
    await node.runs("greedy")
    uses(node, modest=90, greedy=80)
    node.signals["memory.available"] = SHORT
    await node.advance(10)
    await node.until(lambda: node.phase("greedy") == "Failed")
    node.signals["memory.available"] = ENOUGH
    status = node.api.status("greedy")
    assert status["reason"] == "Evicted"
    assert status["message"].startswith("The node was low on resource: memory. Threshold quantity: 100Mi, available: 5")
    target = node.condition("DisruptionTarget", "greedy") or {}
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert "stop c1 1s" in node.runtime.calls
    assert len(told(node, "Evicted")) == 1
    assert 'kubelet_evictions{eviction_signal="memory.available"} 1.0' in (await node.ask("/metrics"))[1]
    await node.advance(60)
    assert node.phase("modest") == "Running"


async def test_nobody_goes_while_there_is_enough(node: Node) -> None:
    node.add(containers=asks("10Mi"))
    await node.runs()
    uses(node, web=500)
    node.signals["memory.available"] = ENOUGH
    await node.advance(60)
    assert node.phase() == "Running"


# ---------------------------------------------------------------- disks


FULL, EMPTY = Observation(5 << 30, 100 << 30, 1), Observation(90 << 30, 100 << 30, 1)


def empty_dir(node: Node, pod: str) -> Path:
    return node.config.root / "pods" / pod / "volumes" / "kubernetes.io~empty-dir" / "v"


def with_volume(**source: str) -> dict[str, Any]:
    mounted = container("c1", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    return {"containers": [mounted], "volumes": [{"name": "v", "emptyDir": source}]}


async def test_a_full_disk_ends_who_has_most_on_it_and_images_go_before(node: Node) -> None:
    for name, size in (("light", 1), ("heavy", 3)):
        node.add(name, **with_volume())
        await node.runs(name)
        (empty_dir(node, name) / "file").write_bytes(b"x" * size * MI)
    node.runtime.images["unused"] = Image(id="sha256:unused", tags=("unused",), size=MI)
    node.runtime.images["app:1"] = Image(id="app:1", tags=("app:1",), size=MI)
    node.signals["nodefs.available"] = node.signals["imagefs.available"] = FULL
    await node.advance(10)
    await node.until(lambda: node.phase("heavy") == "Failed")
    status = node.api.status("heavy")
    assert status["message"].startswith(
        "The node was low on resource: ephemeral-storage. Threshold quantity: 15Gi, available: 5Gi. "
    )
    assert status["reason"] == "Evicted"
    assert "rmi sha256:unused" in node.runtime.calls
    assert told(node, "EvictionThresholdMet") == ["EvictionThresholdMet Attempting to reclaim ephemeral-storage"]
    node.signals["nodefs.available"] = node.signals["imagefs.available"] = EMPTY
    await node.advance(60)
    assert node.phase("light") == "Running"


def full_until_images_go(node: Node, signal: str) -> None:
    """Nobody uses one, and removing it is enough."""
    node.runtime.images["unused"] = Image(id="sha256:unused", tags=("unused",), size=MI)
    node.signals[signal] = FULL
    node.runtime.removed = lambda: node.signals.update({signal: EMPTY})


async def test_nobody_goes_when_what_nobody_uses_was_enough(node: Node) -> None:
    node.add(**with_volume())
    await node.runs()
    full_until_images_go(node, "imagefs.available")
    await node.advance(30)
    assert "rmi sha256:unused" in node.runtime.calls
    assert node.phase() == "Running"


async def test_the_containers_of_ended_pods_go_with_their_logs(node: Node) -> None:
    node.add("over", restartPolicy="Never")
    await node.runs("over")
    log = Path(node.runtime.running("c1").log_path)
    node.runtime.exit("c1", 0)
    await node.advance(1)
    await node.until(lambda: node.phase("over") == "Succeeded")
    node.signals["nodefs.available"] = FULL
    await node.advance(20)
    assert node.runtime.containers() == ()
    assert not await asyncio.to_thread(log.exists)
    assert node.phase("over") == "Succeeded"
    told = node.api.status("over")["containerStatuses"]
    await node.crash()
    await node.start()
    await node.advance(60)
    assert (node.phase("over"), node.api.status("over")["containerStatuses"]) == ("Succeeded", told)


async def test_a_volume_beyond_its_limit_ends_its_pod(node: Node) -> None:
    node.add("small", **with_volume(sizeLimit="1Mi"))
    await node.runs("small")
    (empty_dir(node, "small") / "file").write_bytes(b"x" * (MI // 2))
    await node.advance(10)
    assert node.phase("small") == "Running"
    (empty_dir(node, "small") / "file").write_bytes(b"x" * 2 * MI)
    await node.advance(10)
    await node.until(lambda: node.phase("small") == "Failed")
    status = node.api.status("small")
    assert (status["reason"], status["message"]) == (
        "Evicted",
        'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
    )
    assert node.condition("DisruptionTarget", "small") is None
    assert 'kubelet_evictions{eviction_signal="emptydirfs.limit"} 1.0' in (await node.ask("/metrics"))[1]
    assert len(told(node, "Evicted")) == 1


async def test_writable_layer_and_log_count_for_a_containers_limit(node: Node) -> None:
    limits = {"limits": {"ephemeral-storage": "3Mi"}}
    node.add(containers=[container("c1", resources=limits), container("c2", resources=limits)])
    await node.runs()
    by_pod = node.runtime.running("c1")
    await asyncio.to_thread(Path(by_pod.log_path).write_bytes, b"x" * 2 * MI)
    layer = ContainerStats(id=by_pod.id, name="c1", labels=by_pod.labels, timestamp=1, layer_bytes=2 * MI)
    node.runtime.stats = [layer]
    await node.advance(10)
    await node.until(lambda: node.phase() == "Failed")
    assert node.api.status("web")["message"] == 'Container c1 exceeded its local ephemeral storage limit "3Mi". '


async def test_what_a_container_writes_into_its_hosts_file_counts(node: Node) -> None:
    """It is a file of the kubelet's, on the node's disk like all others."""
    limited = container("c1", resources={"limits": {"ephemeral-storage": "1Mi"}})
    node.add(containers=[limited])
    await node.runs()
    hosts = next(mount for mount in node.runtime.config("c1").mounts if mount.container_path == "/etc/hosts")
    await asyncio.to_thread(Path(hosts.host_path).write_bytes, b"x" * 2 * MI)
    await node.advance(10)
    await node.until(lambda: node.phase() == "Failed")
    assert node.api.status("web")["message"].startswith("Pod ephemeral local storage usage exceeds the total limit of ")
