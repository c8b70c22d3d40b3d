"""Pods are deleted by force in the first seconds of a kubelet, on a real node; of none is anything left.

The short form, on a fake runtime, is in `tests/kubelet/test_restart.py`.
"""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.client.kubeconfig import load
from podfit.net.system import SystemClock
from support.eventually import eventually
from support.parts import remains, separate
from support.up import Up, manifest, resources

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.campaign]
ROUNDS, MANY, SEED = 10, 50, 1109
START = 3.0  # seconds from the kubelet's start, at any moment of which a pod is deleted
SECONDS = 90.0  # one round of the Housekeeper and more


@pytest.mark.timeout(1800)
def test_five_hundred_pods_are_deleted_while_their_kubelet_starts(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """Ten times 50 pods with a volume in memory: the kubelet is killed (SIGKILL) and started, and in its first three
    seconds each pod is deleted by force, at a moment that a seed says. Nothing is left of any: no sandbox, mount,
    cgroup or directory.
    """
    chance = random.Random(SEED)
    with separate(tmp_path) as parts:
        parts.up.ok("wait", "--for=create", "serviceaccount/default", "--timeout=60s", timeout=90)
        before = remains(parts.node, parts.name)
        for number in range(ROUNDS):
            names = [f"r{number}-{pod}" for pod in range(MANY)]
            parts.up.apply(*(_pod(name) for name in names))
            parts.up.ok("wait", "--for=condition=Ready", "pods", "--all", "--timeout=120s", timeout=150)
            deleting = Thread(target=_delete, args=(parts.up, {name: chance.uniform(0, START) for name in names}))
            deleting.start()
            parts.kill("kubelet")
            deleting.join()
            assert json.loads(parts.up.ok("get", "pods", "-o", "json"))["items"] == []
            what = f"nothing is left after round {number}"
            eventually(lambda: remains(parts.node, parts.name), before.__eq__, within=SECONDS, what=what)
    figure("pods deleted by force", ROUNDS * MANY)


def _pod(name: str) -> dict[str, object]:
    volume = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    return manifest(name, {"name": "app", "resources": resources("5m", "8Mi")}, volumes=[volume], nodeName="n1")


def _delete(up: Up, moments: dict[str, float]) -> None:
    """Each pod at its moment, in seconds from now."""

    async def one(name: str, seconds: float) -> None:
        await SystemClock().sleep(seconds)
        await client.delete(Pod, name, "default", grace=0)

    async def every() -> None:
        await asyncio.gather(*(one(name, seconds) for name, seconds in moments.items()))
        await client.close()

    client = load([up.kubeconfig]).client()
    asyncio.run(every())
