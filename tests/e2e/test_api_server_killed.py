"""The API server is killed during a storm of resizes while the kubelet lives on in another process, as on a real node.

The server is `podfit up --node none`, on its durable store and always on the same port. The node is `podfit kubelet` on
a simulated runtime.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from support.eventually import eventually_async
from support.kubelet import joined
from support.up import Up, manifest, resources

NODE, NAMES = "n1", [f"p{number}" for number in range(10)]
RESIZES, SECONDS = 8, 60.0
LATEST = 40  # of the 80 resizes: the server is killed when so many or fewer were acknowledged
Figure = Callable[[str, object], None]


class Storm:
    def __init__(self, up: Up, seed: int) -> None:
        self.up = up
        self.acknowledged = 0
        self._random = random.Random(seed)
        self._newest: dict[str, int] = {}
        self._enough, self._reached = 0, asyncio.Event()

    async def blow(self, client: Client) -> None:
        """All pods at once, and the server dies after some of the answers."""
        self._enough, self._reached = self.acknowledged + self._random.randrange(LATEST), asyncio.Event()
        writers = asyncio.gather(*(self._write(client, name) for name in NAMES), return_exceptions=True)
        await asyncio.wait_for(self._reached.wait(), SECONDS)
        os.kill(self.up.state()["pid"], signal.SIGKILL)
        for result in await writers:
            assert result is None or isinstance(result, ConnectionError | ApiError), result

    async def _write(self, client: Client, name: str) -> None:
        for _ in range(RESIZES):
            size = resources(f"{self._random.randrange(20, 60)}m", f"{self._random.randrange(16, 48)}Mi")
            patch = {"spec": {"containers": [{"name": "app", "resources": size}]}}
            pod = await client.patch(Pod, name, "default", patch, subresource="resize")
            self.acknowledged += 1
            if self.acknowledged > self._enough:
                self._reached.set()
            self._newest[name] = max(self._newest.get(name, 0), pod.metadata.generation)

    async def check(self, client: Client) -> None:
        for name in NAMES:
            pod = await _when_settled(client, name)
            status, desired = pod.status.container_statuses[0], pod.spec.containers[0].resources
            assert status.restart_count == 0
            assert (status.allocated_resources, status.resources) == (desired.requests, desired)
            assert pod.metadata.generation >= self._newest.get(name, 0), "an acknowledged resize is gone"


async def _when_settled(client: Client, name: str) -> Pod:
    what = f"{name} is settled"
    return await eventually_async(lambda: client.get(Pod, name, "default"), _settled, within=SECONDS, what=what)


def _settled(pod: Pod) -> bool:
    waiting = any(condition.type.startswith("PodResize") for condition in pod.status.conditions)
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
    return ready and not waiting and pod.status.observed_generation >= pod.metadata.generation


async def _killed(up: Up, directory: Path, seed: int, rounds: int) -> Storm:
    storm, port = Storm(up, seed), urlsplit(up.state()["server"]).port or 0
    with joined(directory, up.kubeconfig, NODE):
        client = load([up.kubeconfig]).client()
        try:
            for name in NAMES:
                await asyncio.to_thread(up.apply, _pod(name))
            await storm.check(client)
            for _ in range(rounds):
                await storm.blow(client)
                await asyncio.to_thread(up.start, node="none", port=port)
                await storm.check(client)
        finally:
            await client.close()
    return storm


def _pod(name: str) -> dict[str, Any]:
    return manifest(name, {"name": "app", "resources": resources("50m", "32Mi")}, nodeName=NODE)


@pytest.mark.kubectl
def test_the_api_server_is_killed_during_resizes(cluster_dir: Up, tmp_path: Path) -> None:
    cluster_dir.start(node="none")
    assert asyncio.run(_killed(cluster_dir, tmp_path / "node", 36, 2)).acknowledged > 0


@pytest.mark.kubectl
@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_the_api_server_is_killed_again_and_again(cluster_dir: Up, tmp_path: Path, figure: Figure) -> None:
    """20 rounds: 80 resizes of 10 pods, the API server alone is killed in between and started again."""
    cluster_dir.start(node="none")
    storm = asyncio.run(_killed(cluster_dir, tmp_path / "node", 1287, 20))
    figure("rounds", 20)
    figure("acknowledged resizes", storm.acknowledged)
