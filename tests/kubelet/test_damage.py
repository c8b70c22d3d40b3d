"""A node whose checkpoints were damaged, or whose disk takes nothing: it says so, goes on, and makes up for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node
from kubelet.test_resize import done, sized
from podfit.kubelet.checkpoints.journal import Journal
from podfit.net.files import write_atomic

FILES = "allocated_pods_state", "actuated_pods_state"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> "Disk":
    """Set before the node is made: a checkpoint keeps the writer that it was given."""
    made = Disk()
    monkeypatch.setattr("podfit.kubelet.composition.write_atomic", made.wrap(write_atomic))
    monkeypatch.setattr(Journal, "_write", made.wrap(Journal._write))
    return made


class Disk:
    full = False

    def wrap(self, real: Callable[..., None]) -> Callable[..., None]:
        def write(*given: Any, **named: Any) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            real(*given, **named)

        return write


def damage(node: Node, content: bytes) -> None:
    for name in FILES:
        (node.config.root / name).write_bytes(content)


@pytest.mark.row("R-091")
@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b'{"data":"{}","checksum":1}'])
async def test_damaged_files_are_set_aside_with_an_event_and_rebuilt(node: Node, content: bytes) -> None:
    node.add(containers=[sized("1")])
    node.add("big", containers=[sized("2")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("3")])
    await node.until(lambda: node.condition("PodResizePending"))
    ids, calls = node.state()["containerID"], len(node.runtime.calls)
    await node.crash(lambda: damage(node, content))
    await node.start()
    await node.rest()
    told = [event for event in node.api.events() if event.startswith("CheckpointSetAside")]
    assert len(told) == 2
    assert "allocated_pods_state.damaged" in told[0]
    assert [(node.config.root / f"{name}.damaged").read_bytes() for name in FILES] == [content, content]
    assert node.state()["allocatedResources"]["cpu"] == "1", "the pending resize did not slip through"
    assert (node.condition("PodResizePending") or {})["reason"] == "Deferred"
    assert node.runtime.calls[calls:] == [], "nothing was restarted or told again"
    assert node.state()["containerID"] == ids
    node.api.remove("pods", "big")
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "3")


@pytest.mark.row("R-091")
async def test_a_resize_that_was_under_way_when_both_files_were_lost_is_completed(node: Node) -> None:
    node.add(containers=[sized("1"), sized("500m", name="c2")])
    await node.runs()
    node.runtime.fail["update"] = "busy"
    node.api.change("web", containers=[sized("2"), sized("1", name="c2")])
    await node.until(lambda: (node.condition("PodResizeInProgress") or {}).get("reason") == "Error")
    await node.crash(lambda: damage(node, b"rubbish"))
    node.runtime.fail.clear()
    await node.start()
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "2")
    assert [node.state(which=name)["restartCount"] for name in ("c1", "c2")] == [0, 0]


async def test_a_full_disk_defers_resizes_with_the_reason_and_keeps_everything_else(disk: Disk, tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    await node.start()
    node.add(containers=[sized("1")])
    await node.runs()
    disk.full = True
    node.api.change("web", containers=[sized("2")])
    node.add("late")
    await node.until(lambda: node.condition("PodResizePending"))
    pending = node.condition("PodResizePending") or {}
    assert pending["reason"] == "Deferred"
    assert pending["message"].endswith("allocated_pods_state: No space left on device")
    assert node.state()["allocatedResources"]["cpu"] == "1"
    assert node.cgroups.read_cpu("/kubepods/burstable/podweb").quota == 100_000, "not half done"
    await node.until(lambda: any(event.startswith("FailedSaveAllocation") for event in node.api.events()))
    assert "sandbox late" not in node.runtime.calls
    node.runtime.exit("c1", 1)
    await node.advance(1)
    await node.until(lambda: node.state()["restartCount"] == 1 and node.state()["state"].get("running"))
    assert node.state()["resources"]["limits"]["cpu"] == "1", "with what was promised, which needs no writing"
    disk.full = False
    await node.advance(20)
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "2")
    await node.runs("late")
    assert node.cgroups.read_cpu("/kubepods/burstable/podweb").quota == 200_000
    await node.kubelet.stop(stop_pods=False)


async def test_a_pod_that_cannot_be_saved_can_be_deleted_and_holds_up_nobody(disk: Disk, tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    await node.start()
    node.add(containers=[sized("1")])
    await node.runs()
    disk.full = True
    node.add("late")
    await node.advance(3)
    node.api.remove("pods", "late")
    node.api.delete("web", 1)
    await node.until(lambda: node.api.get("pods", "web") is None)
    disk.full = False
    await node.advance(20)
    assert not node.runtime.boxes
    await node.kubelet.stop(stop_pods=False)
