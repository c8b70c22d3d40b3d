"""A disk that does not answer: what needs it is refused with the reason, the node says so, everything else goes on."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node
from kubelet.test_resize import done, sized
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.checkpoint import Checkpoint, CheckpointError
from podfit.kubelet.checkpoints.format import load
from podfit.kubelet.checkpoints.journal import SIZE
from podfit.kubelet.disk.writer import LIMIT_SECONDS, DiskWriter, Threads
from support.clock import FakeClock
from support.hanging import Hanging, being_written
from support.pods import needs

TEXT = "the disk does not answer within 10 s"
SMALL, LARGE = (PodResources({"c1": needs({"cpu": cpu})}) for cpu in ("1", "2"))


class HangingFile:
    """One of the node's two checkpoints, whose journal hangs from the next change of a size on."""

    def __init__(self, node: Node, which: str) -> None:
        self._node = node
        self._hanging = Hanging(node.config.root / f"{which}.journal")
        node.clock.hanging = lambda: being_written(node.kubelet._node.writer, node.config.root / which)

    async def answer(self) -> None:
        """From now on the clock waits for the thread that hung, too."""
        self._node.clock.hanging = tuple
        self._hanging.answer()
        await self._node.rest()
        assert not self._node.kubelet._node.writer.problem

    def close(self) -> None:
        self._hanging.close()


@pytest.fixture
def hanging() -> Iterator[list[HangingFile]]:
    held: list[HangingFile] = []
    yield held
    for file in held:
        file.close()


def pending(node: Node, name: str) -> Any:
    return node.condition("PodResizePending", name) or {}


def disk(node: Node) -> Any:
    conditions = (node.api.get("nodes", "n1", "") or {})["status"]["conditions"]
    return next(
        (
            (condition["status"], condition["reason"])
            for condition in conditions
            if condition["type"] == "UnresponsiveDisk"
        ),
        None,
    )


async def hang(node: Node, which: str) -> HangingFile:
    """After the first change of a size, changes go into the journal."""
    node.api.change("web", containers=[sized("150m", name="web")])
    await node.until(lambda: done(node, "web"))
    await node.advance(2)
    assert (node.config.root / f"{which}.journal").stat().st_size == SIZE
    return HangingFile(node, which)


@pytest.mark.row("R-090", "R-092", "R-096")
async def test_a_resize_waits_with_the_reason_and_other_pods_go_on(node: Node, hanging: list[HangingFile]) -> None:
    for name in ("web", "other"):
        node.add(name, containers=[sized("100m", name=name)])
        await node.runs(name)
    before = node.state("web", "web")["containerID"]
    hanging.append(await hang(node, "allocated_pods_state"))
    assert disk(node) is None

    node.api.change("web", containers=[sized("200m", name="web")])
    await node.advance(LIMIT_SECONDS)
    await node.until(lambda: pending(node, "web"), "the resize was not refused")
    assert pending(node, "web")["reason"] == "Deferred"
    assert pending(node, "web")["message"].endswith(f"allocated_pods_state: {TEXT}")
    assert node.state("web", "web")["allocatedResources"]["cpu"] == "150m"
    await node.until(lambda: disk(node) == ("True", "DiskDoesNotAnswer"), "the node does not say so")
    assert any(event.startswith("DiskDoesNotAnswer") and event.endswith(TEXT) for event in node.api.events())

    now = node.clock.monotonic()
    node.api.change("other", containers=[sized("300m", name="other")])
    await node.until(lambda: pending(node, "other"), "the next resize waits for the disk")
    assert node.clock.monotonic() == now, "it is refused at once"
    node.add("new", containers=[sized("100m", name="new")])
    await node.until(lambda: any(event.startswith("FailedSaveAllocation") for event in node.api.events()))
    node.runtime.exit("other", 1)
    await node.advance(1)
    await node.until(lambda: node.state("other", "other").get("restartCount") == 1, "a container that ended stays so")

    await hanging[0].answer()
    await node.until(lambda: done(node, "web") and done(node, "other"), "the resizes were not done")
    await node.runs("new")
    assert node.state("web", "web")["resources"]["limits"]["cpu"] == "200m"
    assert node.state("other", "other")["resources"]["limits"]["cpu"] == "300m"
    assert (node.state("web", "web")["containerID"], node.state("web", "web")["restartCount"]) == (before, 0)
    await node.until(lambda: disk(node) == ("False", "DiskAnswers"), "the node does not say that it is over")
    await node.advance(2)
    assert load((node.config.root / "allocated_pods_state").read_bytes()).keys() == {"web", "other", "new"}


@pytest.mark.row("R-170")
async def test_actuation_that_cannot_be_recorded_is_tried_again_for_that_pod_alone(
    node: Node, hanging: list[HangingFile]
) -> None:
    for name in ("web", "other"):
        node.add(name, containers=[sized("100m", name=name)])
        await node.runs(name)
    hanging.append(await hang(node, "actuated_pods_state"))
    node.api.change("web", containers=[sized("200m", name="web")])
    await node.advance(LIMIT_SECONDS)
    await node.until(lambda: disk(node) == ("True", "DiskDoesNotAnswer"), "the node does not say so")
    assert not done(node, "web")
    node.runtime.exit("other", 1)
    await node.advance(1)
    await node.until(lambda: node.state("other", "other").get("restartCount") == 1, "a container that ended stays so")
    await hanging[0].answer()
    await node.until(lambda: done(node, "web"), "the resize was not done")
    assert node.state("web", "web")["restartCount"] == 0


async def test_a_kubelet_whose_disk_hangs_can_be_stopped(node: Node, hanging: list[HangingFile]) -> None:
    node.add("web", containers=[sized("100m", name="web")])
    await node.runs("web")
    hanging.append(await hang(node, "allocated_pods_state"))
    node.api.change("web", containers=[sized("200m", name="web")])
    await node.rest()
    stopping = asyncio.create_task(node.kubelet.stop(stop_pods=False))
    await node.advance(2 * LIMIT_SECONDS)
    assert stopping.done(), "it waits for the disk"
    await stopping


async def test_nobody_knows_what_a_write_that_was_given_up_has_left(tmp_path: Path) -> None:
    """It reaches the file in the end. The pods that it was about are written again, even as they were before."""
    answer, clock, hangs = threading.Event(), FakeClock(), False

    def write(to: Path, data: bytes) -> None:
        if hangs:
            answer.wait()
        to.write_bytes(data)

    path, writer = tmp_path / "state", DiskWriter(clock, Threads())
    clock.hanging = lambda: being_written(writer, path) if hangs else ()
    checkpoint = Checkpoint(path, writer, write=write)
    await checkpoint.put({"a": SMALL, "b": SMALL})
    hangs = True
    given_up = asyncio.create_task(checkpoint.put({"a": LARGE}))
    await clock.advance(LIMIT_SECONDS)
    with pytest.raises(CheckpointError, match=TEXT):
        await given_up
    assert checkpoint.get("a") == SMALL
    await checkpoint.put({"b": SMALL})
    with pytest.raises(CheckpointError, match=TEXT):
        await checkpoint.put({"a": SMALL})
    hangs = False
    answer.set()
    while (await writer.changes.get()).hangs:
        pass
    assert load(path.read_bytes())["a"] == LARGE, "the write that was given up"
    await checkpoint.catch_up()
    assert load(path.read_bytes()) == {"a": SMALL, "b": SMALL}
