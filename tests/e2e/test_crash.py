"""SIGKILL of `podfit up`, alone or with its containerd, while resizes are in flight (spec 5.10).

Afterwards every pod has the size it was asked for, no container restarted that should not, and no write that was
acknowledged is gone. The long form is in the campaign.
"""

import asyncio
import os
import random
import signal
from typing import Any

import pytest

from podfit.api.core.pods import Pod
from podfit.client.kubeconfig import load
from podfit.core.errors import ApiError
from support.up import Up, manifest, resources, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]

PODS = 10
RESIZES = 4  # of each pod in one storm, so 20 and more are in flight
SHORT, LONG = 5, 50


@pytest.mark.timeout(300)
def test_resizes_survive_sigkill(cluster_dir: Up) -> None:
    _rounds(cluster_dir, SHORT, seed=36)


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_resizes_survive_sigkill_many_times(cluster_dir: Up) -> None:
    _rounds(cluster_dir, LONG, seed=1287)


def _rounds(up: Up, rounds: int, *, seed: int) -> None:
    moments = random.Random(seed)
    up.start()
    names = [f"p{number}" for number in range(PODS)]
    up.apply(*(manifest(name, {"name": "app", "resources": resources("20m", "16Mi")}) for name in names))
    first = {name: _identity(up.pod_when(name, running, "ran")) for name in names}
    for number in range(rounds):
        acknowledged = asyncio.run(_storm(up, names, moments, with_containerd=number % 2 == 1))
        up.start()
        for name in names:
            pod = up.pod_when(name, settled, f"settled after kill {number}", seconds=60)
            _check(pod, acknowledged.get(name), first[name])


def _identity(pod: dict[str, Any]) -> tuple[str, str, int]:
    status = pod["status"]["containerStatuses"][0]
    return pod["metadata"]["uid"], status["containerID"], status["restartCount"]


def _check(pod: dict[str, Any], acknowledged: int | None, first: tuple[str, str, int]) -> None:
    desired = pod["spec"]["containers"][0]["resources"]
    status = pod["status"]["containerStatuses"][0]
    assert _identity(pod) == first, "same pod, same container, no restart"
    assert status["resources"] == desired
    assert status["allocatedResources"] == desired["requests"]
    if acknowledged is not None:
        assert pod["metadata"]["generation"] >= acknowledged, "an acknowledged resize is gone"


async def _storm(up: Up, names: list[str], moments: random.Random, *, with_containerd: bool) -> dict[str, int]:
    """Resize everything at once and kill in the middle; the generation of each pod's last acknowledged resize."""
    client = load([up.kubeconfig]).client()
    state = up.state()
    acknowledged: dict[str, int] = {}

    async def resize(name: str) -> None:
        for _ in range(RESIZES):
            size = resources(f"{moments.randrange(20, 60)}m", f"{moments.randrange(16, 48)}Mi")
            patch = {"spec": {"containers": [{"name": "app", "resources": size}]}}
            pod = await client.patch(Pod, name, "default", patch, subresource="resize")
            acknowledged[name] = pod.metadata.generation

    storm = asyncio.gather(*(resize(name) for name in names for _ in range(2)), return_exceptions=True)
    await asyncio.sleep(moments.uniform(0.01, 0.4))  # the random moment of the kill
    os.kill(state["pid"], signal.SIGKILL)
    if with_containerd:
        os.kill(state["nodes"][0]["containerd_pid"], signal.SIGKILL)
    for result in await storm:
        assert result is None or isinstance(result, ConnectionError | ApiError), result
    await client.close()
    return acknowledged
