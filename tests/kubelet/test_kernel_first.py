"""Growth that is in the kernel before the runtime has been asked: what is written, when, and what becomes of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubelet.faulty import KINDS, FaultyNode, Kind
from kubelet.harness import MACHINE, container
from kubelet.node_api import Document
from podfit.decide.lifecycle.effects import Passing
from podfit.kubelet.cgroup.protocol import CgroupError
from podfit.kubelet.status.writer import StatusWriter

MI = 1 << 20
SMALL, LARGE = (100_000, 64 * MI), (200_000, 96 * MI)
"""Quota and memory limit of a pod with one CPU, and of one with two."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[FaultyNode]:
    """Its runtime does not hear of pods' cgroups, which the kubelet knows by now: a resize is over."""
    made = FaultyNode(tmp_path / "node", machine=replace(MACHINE, kernel_first=True))
    await made.start()
    made.give("web", "500m")
    await made.runs("web")
    made.give("web", "1")
    await made.rest()
    yield made
    await made.kubelet.stop(stop_pods=False)


def kernel(node: FaultyNode) -> tuple[int | None, int | None]:
    """What holds for the container: its quota and memory limit."""
    path = _path(node)
    return node.cgroups.read_cpu(path).quota, node.cgroups.read_memory(path)


def told(node: FaultyNode) -> tuple[int, int]:
    """What the runtime holds for it."""
    live = node.live()
    assert live is not None
    assert live.resources is not None
    return live.resources.cpu_quota, live.resources.memory_limit


def _path(node: FaultyNode) -> str:
    live = node.live()
    assert live is not None
    return f"{node.cgroups.layout.pod(node.uid('web'), 'Burstable')}/{live.id}"


def _progress(node: FaultyNode) -> Document:
    return node.condition("PodResizeInProgress") or {}


async def test_growth_is_there_while_the_runtime_still_thinks(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "2")
    await node.rest()
    assert kernel(node) == (200_000, 64 * MI)
    assert told(node) == SMALL
    assert _progress(node), "complete only when the runtime has agreed"
    assert node.state()["resources"]["limits"]["cpu"] == "1"
    await node.advance(6)
    assert told(node) == (200_000, 64 * MI)
    assert not node.problems()


async def test_a_resize_waits_for_no_look_at_the_runtime(node: FaultyNode) -> None:
    """What ran at the last look is known, and the allocation is durable: nothing else has to be."""
    node.runtime.kinds.update(list_containers="hung", list_sandboxes="hung", container_status="hung")
    node.give("web", "2", "96Mi")
    await node.rest()
    assert kernel(node) == told(node) == LARGE
    assert _progress(node), "complete only when the runtime has shown it"
    await node.settle()
    assert not node.problems()


async def test_a_container_that_has_ended_since_the_last_look_is_started_at_the_new_size(node: FaultyNode) -> None:
    """Asking the runtime for its new size fails; that it has ended is listed soon."""
    assert node.end("web")
    node.give("web", "2", "96Mi")
    await node.runs("web")
    await node.settle()
    assert kernel(node) == told(node) == LARGE
    assert not node.problems()


async def test_a_runtime_that_hears_of_pods_is_asked_before_they_grow(tmp_path: Path) -> None:
    """It may object, so growth waits for it, and so for the pod's turn."""
    node = FaultyNode(tmp_path / "node", machine=replace(MACHINE, kernel_first=True))
    await node.start()
    node.give("web", "1")
    await node.runs("web")
    asked: list[object] = []

    async def hears(*_: Any, **__: Any) -> None:
        asked.append(kernel(node))

    node.runtime.real.update_sandbox_resources = hears
    node.give("web", "2", "96Mi")
    await node.rest()
    assert asked[0] == SMALL
    assert kernel(node) == told(node) == LARGE
    await node.kubelet.stop(stop_pods=False)


@pytest.mark.parametrize("answer", ["prompt", "late"])
async def test_a_resize_costs_one_write_of_the_status_unless_it_lasts(tmp_path: Path, answer: str) -> None:
    """What is in progress is told when it lasts."""
    node = FaultyNode(tmp_path / "node", machine=replace(MACHINE, kernel_first=True))
    node.config = replace(node.config, passing_seconds={Passing.RESIZE: 0.5})
    node.restarted()
    await node.start()
    node.give("web", "1")
    await node.runs("web")
    if answer == "late":
        node.runtime.kinds["update_container_resources"] = "late"
    before = len(node.api.patches)
    node.give("web", "2")
    await node.rest()
    assert len(node.api.patches) - before == (answer == "prompt")
    await node.advance(1)
    assert len(node.api.patches) - before == 1
    assert bool(_progress(node)) == (answer == "late")
    await node.advance(5)
    assert not node.problems()
    await node.kubelet.stop(stop_pods=False)


async def test_what_has_grown_never_falls_meanwhile(node: FaultyNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime is told of memory first, and writes all that it is told."""
    real, quotas = node.cgroups.set_cpu_limit, list[int]()

    def seen(path: str, *, quota: int, period: int) -> None:
        if path == _path(node):
            quotas.append(quota)
        real(path, quota=quota, period=period)

    monkeypatch.setattr(node.cgroups, "set_cpu_limit", seen)
    node.give("web", "2", "96Mi")
    await node.rest()
    assert kernel(node) == told(node) == LARGE
    assert set(quotas) == {200_000}


async def test_nothing_grows_before_memory_was_checked(node: FaultyNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.cgroups, "usage", {_path(node): 60 * MI})
    node.give("web", "2", "32Mi")
    await node.rest()
    assert kernel(node) == SMALL
    assert _progress(node)["reason"] == "Error"
    monkeypatch.undo()
    await node.settle()


async def test_nothing_grows_before_a_container_that_restarts_has_stopped(node: FaultyNode) -> None:
    amounts = {"cpu": "2", "memory": "64Mi"}
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    node.runtime.kinds["stop_container"] = "late"
    node.api.change(
        "web", containers=[container("c1", resources={"requests": amounts, "limits": amounts}, resizePolicy=policy)]
    )
    await node.rest()
    assert kernel(node) == SMALL
    await node.advance(60)
    assert kernel(node) == (200_000, 64 * MI)


async def test_what_is_being_actuated_is_left_to_that(node: FaultyNode) -> None:
    """Two never write the same cgroup: a size that is allocated meanwhile grows with the next turn."""
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "500m")
    await node.rest()
    node.give("web", "2")
    await node.rest()
    assert kernel(node) == SMALL
    await node.settle()
    assert kernel(node) == told(node) == (200_000, 64 * MI)


async def test_what_a_kubelet_that_died_has_raised_goes_back_when_refused(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "hung"
    node.give("web", "2", "96Mi")
    await node.rest()
    assert kernel(node) == LARGE
    await node.crash()
    node.runtime.kinds["update_container_resources"] = "refused"
    await node.start()
    await node.rest()
    assert kernel(node) == SMALL
    await node.settle()
    assert kernel(node) == told(node) == LARGE


async def test_less_is_never_written_by_the_kubelet(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "500m", "32Mi")
    await node.rest()
    assert kernel(node) == SMALL
    await node.settle()


async def test_the_runtime_refuses(node: FaultyNode) -> None:
    """The kernel's value goes back, and the resize is in error as ever; the next try begins anew."""
    node.runtime.kinds["update_container_resources"] = "refused"
    node.give("web", "2", "96Mi")
    await node.rest()
    assert kernel(node) == SMALL
    assert _progress(node)["reason"] == "Error"
    assert _progress(node)["message"] == "update_container_resources refused"
    await node.settle()
    assert kernel(node) == told(node) == LARGE


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_what_is_in_use_by_then_is_not_taken_back(
    node: FaultyNode, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit below usage would kill on v2; on v1 the kernel would refuse it."""
    monkeypatch.setattr(node.cgroups, "_version", version)
    monkeypatch.setattr(node.cgroups, "usage", {_path(node): 80 * MI})
    node.runtime.kinds["update_container_resources"] = "refused"
    node.give("web", "1", "96Mi")
    await node.rest()
    assert kernel(node) == (100_000, 96 * MI)
    assert _progress(node)["reason"] == "Error"
    await node.settle()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_crash_before_the_runtime_has_agreed(node: FaultyNode, kind: Kind) -> None:
    """The record is still the old one, so the next kubelet asks the runtime again."""
    node.runtime.kinds["update_container_resources"] = kind
    node.give("web", "2", "96Mi")
    await node.rest()
    await node.crash()
    node.runtime.kinds.clear()
    await node.start()
    await node.settle()
    assert kernel(node) == told(node) == LARGE


@pytest.mark.parametrize("moment", range(6))
async def test_a_crash_between_any_two_writes(node: FaultyNode, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet dies before it has written the kernel's n-th value; those before stay."""
    _die_at(node, moment, monkeypatch)
    node.give("web", "2", "96Mi")
    await node.rest()
    await node.crash()
    monkeypatch.undo()
    await node.start()
    await node.settle()
    assert kernel(node) == told(node) == LARGE


def _die_at(node: FaultyNode, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the n-th write on nothing arrives any more, neither in the kernel nor at the runtime."""
    written: list[str] = []

    def dying(real: Any) -> Any:
        def write(path: str, *values: Any, **named: Any) -> None:
            if len(written) >= moment:
                node.runtime.kinds["update_container_resources"] = "gone"
                raise CgroupError("the kubelet is dead")
            written.append(path)
            real(path, *values, **named)

        return write

    for name in ("set_cpu_limit", "set_cpu_shares", "set_memory_limit"):
        monkeypatch.setattr(node.cgroups, name, dying(getattr(node.cgroups, name)))


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("kind", ["hung", "gone", "lost"])
async def test_growth_that_is_asked_back_before_an_answer_came(node: FaultyNode, kind: Kind, crash: bool) -> None:
    """The record never said more than the old size, so no resize is left; the kernel's value goes all the same."""
    node.runtime.kinds["update_container_resources"] = kind
    node.give("web", "2", "96Mi")
    await node.rest()
    node.give("web", "1", "64Mi")
    await node.rest()
    if crash:
        await node.crash()
    node.runtime.kinds.clear()
    if crash:
        await node.start()
    await node.settle()
    assert kernel(node) == told(node) == SMALL


async def test_a_value_that_somebody_else_set_is_left_to_the_runtime(node: FaultyNode) -> None:
    """As one that a runtime's plugin chose, which the kubelet knows nothing of."""
    node.cgroups.set_cpu_limit(_path(node), quota=120_000, period=100_000)
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "2")
    await node.rest()
    assert kernel(node) == (120_000, 64 * MI)
    await node.advance(6)
    assert not node.problems()


async def test_a_runtime_that_changes_the_value_itself_is_the_record(
    node: FaultyNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = node.runtime.real
    update = real.update_container_resources

    async def less(container_id: str, resources: Any) -> None:
        await update(container_id, replace(resources, cpu_quota=150_000))

    monkeypatch.setattr(real, "update_container_resources", less)
    node.give("web", "2")
    await node.rest()
    assert kernel(node)[0] == told(node)[0] == 150_000
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "3")
    await node.rest()
    assert kernel(node)[0] == 150_000, "the kernel does not hold what was actuated"
    await node.advance(6)


async def test_another_runtime_class_goes_by_the_runtime_alone(node: FaultyNode) -> None:
    node.api.change("web", runtimeClassName="kata")
    await node.rest()
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "2")
    await node.rest()
    assert kernel(node) == SMALL


async def test_containers_that_hold_what_was_actuated_are_not_read_again(
    node: FaultyNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a pod that was never resized."""
    await node.settle()
    path, read, real = _path(node), list[str](), node.cgroups.read_memory

    def reading(path: str) -> int | None:
        read.append(path)
        return int(amount) if (amount := real(path)) is not None else None

    monkeypatch.setattr(node.cgroups, "read_memory", reading)
    await node.advance(120)
    assert node.cgroups.layout.pod(node.uid("web"), "Burstable") in read, "there were syncs"
    assert path not in read


async def test_events_follow_the_status_that_they_tell_of(node: FaultyNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost the API server as much as the status does."""
    gate, real, before = asyncio.Event(), StatusWriter._write, len(node.api.events())

    async def slow(writer: StatusWriter) -> None:
        await gate.wait()
        await real(writer)

    monkeypatch.setattr(StatusWriter, "_write", slow)
    node.give("web", "2")
    await node.rest()
    assert kernel(node) == (200_000, 64 * MI)
    assert len(node.api.events()) == before
    gate.set()
    await node.rest()
    assert not _progress(node)
    assert len(node.api.events()) == before + 2
