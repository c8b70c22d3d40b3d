"""A log that has grown on a real containerd: set aside, begun anew by the runtime, and nothing of it is lost."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.runtime.configs import ContainerConfig
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.log_rotation import MOST_BYTES, LogRotation, rotated
from support.clock import FakeClock
from support.containerd import private_containerd
from support.eventually import eventually_async

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]
LINES = 150_000
SECONDS = 30.0
SCRIPT = f"""
yes 'before, and before, and before, and before' | head -n {LINES}
echo full
while ! [ -e /tmp/go ]; do sleep 0.1; done
echo after
exec sleep 1000
"""


def ends_with(path: Path, end: bytes) -> bool:
    return path.exists() and path.read_bytes().endswith(end)


def begun_anew(path: Path) -> bool:
    return path.exists() and bool(list(rotated(path)))


async def until(holds: Callable[[], bool], what: str) -> None:
    async def look() -> bool:
        return holds()

    await eventually_async(look, within=SECONDS, what=what)


async def touch(runtime: CRIRuntime, container_id: str) -> None:
    done = await runtime.exec_sync(container_id, ["touch", "/tmp/go"], timeout_seconds=10)
    assert done.exit_code == 0, done.stderr


async def test_containerd_begins_a_log_anew(tmp_path: Path) -> None:
    async with private_containerd(tmp_path) as machine:
        runtime = await machine.start()
        sandbox_id, _ = await machine.run(runtime)
        (tmp_path / "d_p_u1/c2").mkdir(parents=True)
        config = ContainerConfig(
            name="c2", image="busybox:1.36", command=("sh", "-c", SCRIPT), log_path="d_p_u1/c2/0.log"
        )
        container_id = await runtime.create_container(sandbox_id, config, machine.sandbox)
        await runtime.start_container(container_id)
        log = tmp_path / "d_p_u1/c2/0.log"
        await until(lambda: ends_with(log, b"stdout F full\n"), "the log is full")
        assert log.stat().st_size > MOST_BYTES

        clock = FakeClock()
        rotating = asyncio.create_task(LogRotation(runtime, tmp_path, DiskWriter(clock), clock).run())
        await clock.advance(10)
        await until(lambda: begun_anew(log), "the log is begun anew")
        await touch(runtime, container_id)
        await until(lambda: ends_with(log, b"stdout F after\n"), "the container goes on writing")
        rotating.cancel()
        await asyncio.gather(rotating, return_exceptions=True)
        (aside,) = rotated(log)
        assert len(aside.read_bytes().splitlines()) == LINES + 1
        assert len(log.read_bytes().splitlines()) == 1
        await runtime.close()
