"""Files, metrics, the machine's clock."""

import asyncio
import os
from datetime import UTC
from pathlib import Path

import pytest

from podfit.net.files import write_atomic
from podfit.net.metrics import Metrics
from podfit.net.system import POOL, SystemClock, SystemRandom


def test_a_write_replaces_the_whole_and_sets_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomic(path, b"old and long")
    write_atomic(path, b"new", mode=0o640)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["file"]


def test_a_write_that_fails_leaves_the_old_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_each_instance_counts_for_itself() -> None:
    first, second = Metrics(), Metrics()
    for metrics in (first, second):
        resizes = metrics.counter("kubelet_pod_resizes_total", "Resizes.", ("resource",))
        metrics.histogram("kubelet_pod_resize_duration_seconds", "Time.", buckets=(0.1, 1)).observe(0.5)
        resizes.labels("cpu").inc()
    first.gauge("kubelet_running_pods", "Pods.").set(3)
    text = first.exposition().decode()
    assert 'kubelet_pod_resizes_total{resource="cpu"} 1.0' in text
    assert 'kubelet_pod_resize_duration_seconds_bucket{le="1.0"} 1.0' in text
    assert "kubelet_running_pods 3.0" in text
    assert b"kubelet_running_pods" not in second.exposition()


async def test_the_machines_clock() -> None:
    clock, fired = SystemClock(), asyncio.Event()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    clock.call_later(0.0, fired.set)
    clock.call_later(60.0, lambda: None).cancel()
    await clock.sleep(0.001)
    await asyncio.wait_for(fired.wait(), 1)
    assert clock.monotonic() > before


def test_random_numbers_are_below_their_bound_and_come_anew_from_the_machine() -> None:
    random = SystemRandom()
    for bound in (1, 2, 3, 255, 256, 257, 27**5, 2**53):
        drawn = {random.below(bound) for _ in range(200)}
        assert min(drawn) >= 0
        assert max(drawn) < bound
        assert len(drawn) > min(bound, 100) // 2, "each is as likely"
    uuids = {random.uuid() for _ in range(POOL)}
    assert len(uuids) == POOL, "far more than one piece of the machine's randomness"
    assert all(uuid[14] == "4" and uuid[19] in "89ab" for uuid in uuids)
