"""What a container can do to the paths that it shares with the kubelet: nothing outside of them is read or written."""

import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.disk.mounter import mount_points
from podfit.kubelet.runtime import images
from support.eventually import eventually_async
from support.real_node import LOOK, SECONDS, RealNode, real_node, running, status

pytestmark = pytest.mark.node
VICTIMS = 8
SECRET = "only the host knows this"
TURN = (
    "cd /s; trap 'exit 0' TERM; n=0; "
    "while :; do ln -s {host} a; rm a; mkdir a; n=$((n+1)); mv a old$n; done 2>/dev/null"
)
READ = "cat /x/secret > /dev/termination-log; mkdir /x/made; echo written > /x/written-$NAME; exit 0"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path) as made:
        yield made


def container(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": images.BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", script], **more}


@dataclass
class Tally:
    """What came of the containers that mounted a sub-path while another exchanged it."""

    started: int = 0
    refused: int = 0
    escaped: int = 0

    def count(self, pod: Pod) -> None:
        for shown in pod.status.container_statuses:
            if shown.name == "turn":
                continue
            over = shown.state.terminated
            self.started += over is not None
            self.refused += over is None
            self.escaped += over is not None and SECRET in over.message


def restarted(pod: Pod) -> bool:
    return any(status.restart_count for status in pod.status.container_statuses)


def over(pod: Pod) -> bool:
    """Every container that looks has looked, or was refused."""
    found = [status for status in pod.status.container_statuses if status.name != "turn"]
    return len(found) == VICTIMS and all(
        status.state.terminated or (status.state.waiting and status.state.waiting.reason.endswith("Error"))
        for status in found
    )


async def gone(directory: Path) -> None:
    async def look() -> bool:
        return directory.name not in os.listdir(directory.parent)

    await eventually_async(look, within=SECONDS, what=f"{directory} is gone", every=LOOK)


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=[pytest.mark.campaign, pytest.mark.timeout(240)])])
async def test_no_container_leaves_a_volume_while_another_exchanges_the_sub_path(
    node: RealNode, tmp_path: Path, seconds: int, figure: Callable[[str, object], None]
) -> None:
    """On containerd one container exchanges a directory for a link to the host while others mount it, and what is below
    it, as their sub-path, read there and write there. None gets at a file of the host, and the host gets none.
    """
    host = tmp_path / "host"
    host.mkdir(mode=0o777)
    (host / "secret").write_text(SECRET)
    turns = container("turn", TURN.format(host=host), volumeMounts=[{"name": "v", "mountPath": "/s"}])
    victims = [
        container(
            f"look{number}",
            READ.replace("$NAME", str(number)),
            volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": ("a", f"a/below{number}")[number % 2]}],
        )
        for number in range(VICTIMS)
    ]
    tally, until, pods = Tally(), time.monotonic() + seconds, 0
    while tally.started <= VICTIMS or time.monotonic() < until:
        name, pods = f"race{pods}", pods + 1
        await node.create(name, turns, *victims, restartPolicy="Never", volumes=[{"name": "v", "emptyDir": {}}])
        tally.count(await node.until(over, name))
        await node.delete(name)
    figure("containers that mounted an exchanged sub-path", tally)
    assert os.listdir(host) == ["secret"]
    assert tally.escaped == 0
    assert tally.started > VICTIMS


async def test_sub_paths_of_every_kind_are_mounted_and_gone_with_the_pod(node: RealNode, tmp_path: Path) -> None:
    """A file and a directory, read-only and not, of a volume of keys (whose files are links) and of the host's."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").write_text("of the host")
    (tmp_path / "shared" / "now").symlink_to(tmp_path / "shared" / "file")
    script = (
        "echo new > /e/new; (echo no > /r/new) 2>/dev/null && exit 1; (echo no > /keys/own) 2>/dev/null && exit 2;"
        "cat /label /h > /dev/termination-log; ls /r >> /dev/termination-log; "
        "stat -c %a /e >> /dev/termination-log; exit 0"
    )
    mounts: list[dict[str, Any]] = [
        {"name": "v", "mountPath": "/e", "subPath": "a/b"},
        {"name": "v", "mountPath": "/r", "subPath": "a/b", "readOnly": True},
        {"name": "labels", "mountPath": "/label", "subPath": "deep/name"},
        {"name": "labels", "mountPath": "/keys"},
        {"name": "shared", "mountPath": "/h", "subPath": "now"},
    ]
    await node.create(
        "kinds",
        container("c", script, volumeMounts=mounts),
        restartPolicy="Never",
        volumes=[
            {"name": "v", "emptyDir": {}},
            {"name": "shared", "hostPath": {"path": str(tmp_path / "shared")}},
            {
                "name": "labels",
                "downwardAPI": {"items": [{"path": "deep/name", "fieldRef": {"fieldPath": "metadata.name"}}]},
            },
        ],
    )
    pod = await node.until(lambda pod: pod.status.phase in ("Succeeded", "Failed"), "kinds")
    ended = status(pod, "c").state.terminated
    assert ended is not None
    assert ended.message == "kindsof the hostnew\n777\n"
    pods = node.root / "kubelet" / "pods"
    await node.delete("kinds")
    await gone(pods / pod.metadata.uid)
    assert not mount_points(pods)
    assert (tmp_path / "shared" / "file").read_text() == "of the host"


async def test_what_a_killed_kubelet_left_mounted_is_gone_after_the_next_start(node: RealNode) -> None:
    stay = container(
        "c",
        "trap 'exit 0' TERM; while :; do sleep 1; done",
        volumeMounts=[{"name": "v", "mountPath": "/e", "subPath": "a"}],
    )
    pod = await node.runs("left", stay, volumes=[{"name": "v", "emptyDir": {}}])
    pods = node.root / "kubelet" / "pods"
    assert mount_points(pods)
    await node.kubelet.stop(stop_pods=False)
    await node.server.client.delete(Pod, "left", "default", grace=0)
    node.kubelet = node.new_kubelet()
    await node.kubelet.start()
    await gone(pods / pod.metadata.uid)
    assert not mount_points(pods)


async def test_a_container_that_is_restarted_gets_its_sub_path_again(node: RealNode) -> None:
    once = container(
        "c",
        "n=$(cat /e/n 2>/dev/null || echo 0); echo $((n+1)) > /e/n; [ $n = 2 ]",
        volumeMounts=[{"name": "v", "mountPath": "/e", "subPath": "a"}],
    )
    await node.create("again", once, restartPolicy="OnFailure", volumes=[{"name": "v", "emptyDir": {}}])
    pod = await node.until(lambda pod: restarted(pod) and not running(pod), "again")
    [count] = (node.root / "kubelet" / "pods" / pod.metadata.uid).glob("volumes/*/v/a/n")
    assert int(count.read_text()) >= 2
