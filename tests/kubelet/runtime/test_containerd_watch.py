"""What is done when the private containerd dies."""

import asyncio
from pathlib import Path

import pytest

from podfit.kubelet.runtime.containerd import RESTART_SECONDS, Containerd, ContainerdFailed
from support.clock import FakeClock


async def test_one_that_cannot_be_started_again_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as while the disk is full; the first failure once ended the watch for good."""
    clock, tries = (
        FakeClock(),
        list[Exception]([ContainerdFailed("it does not answer"), OSError(28, "No space left on device")]),
    )
    containerd, restarted = Containerd(tmp_path, sandbox_image="pause", clock=clock), list[int]()
    pids = iter((1, 1, 1, 2, 2, 2, 2))

    async def revive(_self: Containerd) -> None:
        if tries:
            raise tries.pop(0)

    monkeypatch.setattr(Containerd, "revive", revive)
    monkeypatch.setattr(Containerd, "pid", property(lambda _self: next(pids)))
    watching = asyncio.create_task(containerd.watch(lambda: restarted.append(1)))
    for _ in range(3):
        await clock.advance(RESTART_SECONDS)
    assert not watching.done()
    assert (tries, restarted) == ([], [1])
    watching.cancel()
