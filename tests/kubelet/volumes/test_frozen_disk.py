"""A disk that does not answer: what a pod's paths lead to is waited for beside the event loop, and not for ever."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubelet.harness import IDENTITY
from kubelet.node_api import NodeApi
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.quantity import Quantity
from podfit.kubelet.disk.mounter import DirectoryMounter
from podfit.kubelet.disk.writer import LIMIT_SECONDS, DiskWriter, Hung
from podfit.kubelet.sources.lookup import Lookup
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.manager import MountError, Volumes
from podfit.kubelet.volumes.payloads import Payloads
from podfit.kubelet.volumes.tokens import TokenSource
from support.clock import FakeClock
from support.hanging import being_written


class Frozen(Executor):
    """What is given to it never ends."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        return Future()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def volumes(tmp_path: Path, clock: FakeClock) -> Volumes:
    client = Client(Local(NodeApi(), IDENTITY))
    payloads = Payloads(Lookup(client, clock), {"cpu": Quantity.of(4)}, TokenSource(client, clock))
    return Volumes(
        tmp_path / "root", payloads, DirectoryMounter(), DiskWriter(clock, Frozen()), clock.now, ClaimedVolumes(client)
    )


def pod(path: Path) -> Pod:
    mounts = [{"name": "v", "mountPath": "/v", "subPath": "a"}]
    volume = {"name": "v", "hostPath": {"path": str(path), "type": "Directory"}}
    spec = {"volumes": [volume], "containers": [{"name": "c", "volumeMounts": mounts}]}
    return codec.convert({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": spec}, Pod)


async def given_up(volumes: Volumes, clock: FakeClock, path: Path, work: Awaitable[object]) -> BaseException:
    clock.hanging = partial(being_written, volumes.writer, path)
    task = asyncio.ensure_future(work)
    await clock.advance(LIMIT_SECONDS - 1)
    assert not task.done()
    await clock.advance(1)
    (error,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(error, BaseException)
    return error


async def test_the_check_of_a_host_path_is_given_up(volumes: Volumes, clock: FakeClock, tmp_path: Path) -> None:
    error = await given_up(volumes, clock, tmp_path, volumes.mount(pod(tmp_path)))
    assert isinstance(error, MountError)
    assert f"{tmp_path}: the disk does not answer within 10 s" in str(error)


async def test_the_search_for_a_sub_path_is_given_up(volumes: Volumes, clock: FakeClock, tmp_path: Path) -> None:
    web = pod(tmp_path)
    place = volumes.pod_directory("u") / "volume-subpaths/v/c/0"
    mounts = volumes.container_mounts(web, web.spec.containers[0], {"v": tmp_path}, {}, images={}, recursive=False)
    error = await given_up(volumes, clock, place, mounts)
    assert isinstance(error, Hung)
    assert f"{place}: the disk does not answer" in str(error)
