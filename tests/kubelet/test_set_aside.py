"""A pod that ends the kubelet is tried alone, then set aside; everyone else runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import Node, container
from podfit.decide.pod.attempts import AttemptVerdict, Mark
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.pods.attempts import SIZE, Attempts
from podfit.kubelet.pods.guarded_start import MESSAGE, TRIAL_SECONDS
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from support.clock import FakeClock

TOLD = f"SetAside {MESSAGE}"


class Killing:
    """Containers of the names in `held` are never created: the kubelet is killed while it works on them."""

    def __init__(self, node: Node, *names: str) -> None:
        self._node, self.held = node, set(names)
        self._create = node.runtime.create_container
        node.runtime.create_container = self._held_up  # type: ignore[method-assign]  # a fault put in
        self.begun: list[str] = []

    async def _held_up(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        self.begun.append(config.name)
        if config.name in self.held:
            await asyncio.Event().wait()
        return await self._create(sandbox_id, config, sandbox)

    async def until_begun(self, *names: str) -> None:
        await self._node.until(lambda: set(names) <= set(self.begun), f"{names} not begun: {self.begun}")
        self.begun.clear()

    async def kill(self) -> None:
        """What SIGKILL leaves: the file as it is now."""
        path = self._node.config.root / "unfinished_pods"
        left = path.read_bytes()
        await self._node.crash(lambda: path.write_bytes(left))
        await self._node.start()


def add(node: Node, name: str, **more: Any) -> None:
    node.add(name, containers=[container(name)], **more)


def set_aside(node: Node) -> list[str]:
    return [name for name in ("web", "also", "bomb") if node.api.status(name).get("reason") == "SetAside"]


async def test_the_guilty_pod_is_found_and_the_others_run(node: Node) -> None:
    killing = Killing(node, "bomb", "also")
    for name in ("web", "also", "bomb"):
        add(node, name)
    await node.runs("web")
    await killing.until_begun("also", "bomb")
    killing.held.discard("also")
    await killing.kill()
    await killing.until_begun("bomb")
    await node.runs("also")  # it was only beside the bomb
    assert set_aside(node) == []
    await killing.kill()
    await node.until(lambda: set_aside(node) == ["bomb"])
    assert node.api.status("bomb")["message"] == MESSAGE
    assert TOLD in node.api.events()
    assert killing.begun == []
    add(node, "new")
    await node.runs("new")


async def found_guilty(node: Node) -> Killing:
    killing = Killing(node, "bomb")
    add(node, "web")
    add(node, "bomb")
    await killing.until_begun("bomb")
    await killing.kill()
    await killing.until_begun("bomb")
    await killing.kill()
    await node.until(lambda: set_aside(node) == ["bomb"])
    return killing


@pytest.fixture(autouse=True)
def no_other(node: Node) -> None:
    """`set_aside` asks about it in every test."""
    node.api.put(
        "pods",
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "also", "namespace": "default", "uid": "elsewhere"},
            "spec": {"nodeName": "n2"},
        },
    )


async def test_it_is_tried_again_when_it_changes(node: Node) -> None:
    killing = await found_guilty(node)
    killing.held.clear()
    pod = node.api.get("pods", "bomb")
    assert pod is not None
    node.api.put("pods", {**pod, "metadata": {**pod["metadata"], "generation": 2}})
    await node.runs("bomb")
    assert set_aside(node) == []
    await killing.kill()
    await node.rest()
    assert set_aside(node) == []


async def test_it_stays_aside_over_a_stop_and_a_restart(node: Node) -> None:
    killing = await found_guilty(node)
    await node.crash()  # a stop: the file is closed
    await node.start()
    await node.runs("web")
    assert (set_aside(node), killing.begun) == (["bomb"], [])


async def test_it_can_be_deleted(node: Node) -> None:
    await found_guilty(node)
    node.api.delete("bomb", 1)
    await node.until(lambda: node.api.get("pods", "bomb") is None)
    node.api.put(
        "pods",
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "bomb", "namespace": "default", "uid": "another"},
            "spec": {"nodeName": "n2"},
        },
    )
    assert [box.name for box, _ in node.runtime.boxes.values()] == ["web"]


async def test_it_can_be_deleted_by_force(node: Node) -> None:
    await found_guilty(node)
    node.api.remove("pods", "bomb")
    await node.until(lambda: [box.name for box, _ in node.runtime.boxes.values()] == ["web"])


async def test_its_room_is_kept_if_it_was_admitted(node: Node) -> None:
    """What runs of it goes on, so nobody else may have its CPUs."""
    add(node, "web")
    big = container("bomb", resources={"requests": {"cpu": "3"}})
    killing = Killing(node)
    node.add("bomb", containers=[big])
    await node.runs("bomb")
    node.runtime.exit("bomb", 1)
    killing.held.add("bomb")
    killing.begun.clear()
    for _ in range(3):
        await killing.kill()
        await node.rest()
    node.runtime.calls.clear()
    await node.until(lambda: set_aside(node) == ["bomb"])
    node.add("greedy", containers=[container("greedy", resources={"requests": {"cpu": "3"}})])
    await node.until(lambda: node.phase("greedy") == "Failed")
    assert node.api.status("greedy")["reason"] == "OutOfcpu"


async def test_a_stop_in_the_middle_of_work_is_no_suspicion(node: Node) -> None:
    killing = Killing(node, "bomb")
    add(node, "bomb")
    add(node, "web")
    for _ in range(4):
        await killing.until_begun("bomb")
        await node.crash()
        await node.start()
    await killing.until_begun("bomb")
    assert set_aside(node) == []


async def test_who_is_still_at_work_after_a_while_is_not_waited_for(node: Node) -> None:
    """An image that takes minutes to pull keeps no suspect from its trial."""
    killing = Killing(node, "slow1", "slow2", "web")
    for name in ("slow1", "slow2", "web"):
        add(node, name)
    await killing.until_begun("slow1", "slow2", "web")
    killing.held.discard("web")
    await killing.kill()
    for _ in range(3):
        await node.advance(TRIAL_SECONDS + 1)
    await node.runs("web")


async def test_the_file_survives_records_that_were_cut_off_and_grows(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "unfinished_pods", DiskWriter(FakeClock()))
    await attempts.recover()
    many = [(f"uid-{number}", "1") for number in range(3000)]
    attempts.begin(many)
    await attempts.durable()
    for uid, _ in many[1:]:
        attempts.done(uid)
    await attempts.durable()
    path = tmp_path / "unfinished_pods"
    path.write_bytes(path.read_bytes().rstrip(b"\0") + b'{"uid":"uid-7","fo')
    again = Attempts(path, DiskWriter(FakeClock()))
    await again.recover()
    assert [uid for uid, form in many if again.of(uid, form) is not AttemptVerdict.RUN] == ["uid-0"]
    again.begin([("uid-0", "1")], Mark.ALONE)
    await again.durable()
    third = Attempts(path, DiskWriter(FakeClock()))
    await third.recover()
    assert third.of("uid-0", "1") is AttemptVerdict.SET_ASIDE
    for counted in (attempts, again, third):
        await counted.close()
    assert path.stat().st_size >= SIZE


async def test_a_disk_that_takes_nothing_keeps_no_pod_from_running(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    attempts = Attempts(tmp_path / "file" / "unfinished_pods", DiskWriter(FakeClock()))
    await attempts.recover()
    attempts.begin([("a", "1")])
    await attempts.durable()
    assert attempts.of("a", "1") is AttemptVerdict.RUN
    attempts.done("a")
    assert not attempts.busy
    await attempts.close()
