"""Changes of a checkpoint that go into a journal: nothing promised is lost, and nothing else is found, wherever a crash
comes.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.checkpoint import IDLE_SECONDS, Checkpoint, CheckpointError
from podfit.kubelet.checkpoints.file import journal_of, read
from podfit.kubelet.checkpoints.format import load
from podfit.kubelet.checkpoints.journal import SIZE, Journal
from podfit.kubelet.disk.writer import DiskWriter
from podfit.net.files import write_whole
from support.clock import FakeClock
from support.pods import needs

Entries = dict[str, PodResources]
SMALL = 400  # bytes of a journal, for three records


def size(milli: int) -> PodResources:
    return PodResources({"c1": needs({"cpu": f"{milli}m"})})


def found(path: Path) -> Entries:
    """What the next process finds."""
    checkpoint = Checkpoint(path, DiskWriter(FakeClock()), journaled=True)
    assert not checkpoint.damage
    return {uid: entry for uid in checkpoint.uids if (entry := checkpoint.get(uid)) is not None}


def own(path: Path) -> Entries:
    """What the file alone holds."""
    return load(path.read_bytes())


async def ready(path: Path, clock: FakeClock, entries: Mapping[str, PodResources]) -> Checkpoint:
    """A checkpoint that holds these, and has its journal ready."""
    checkpoint = Checkpoint(path, DiskWriter(clock), journaled=True)
    await checkpoint.put({uid: size(1) for uid in entries})
    await checkpoint.put(entries)
    await idle(checkpoint, clock)
    assert journal_of(path).path.stat().st_size == SIZE
    return checkpoint


async def idle(checkpoint: Checkpoint, clock: FakeClock) -> None:
    await clock.advance(IDLE_SECONDS)
    await checkpoint.supervisor.finish()


@pytest.mark.row("R-090", "R-092")
async def test_a_change_is_durable_at_once_and_in_the_file_a_second_later(tmp_path: Path) -> None:
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = await ready(path, clock, {"a": size(100), "b": size(100)})
    await checkpoint.put({"a": size(200)})
    assert found(path) == {"a": size(200), "b": size(100)}
    assert own(path) == {"a": size(100), "b": size(100)}
    await idle(checkpoint, clock)
    assert own(path) == found(path) == {"a": size(200), "b": size(100)}
    assert not journal_of(path).path.read_bytes().strip(b"\0")


async def test_the_end_leaves_a_file_that_an_earlier_version_can_read(tmp_path: Path) -> None:
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = await ready(path, clock, {"a": size(100)})
    await checkpoint.put({"a": size(200)})
    await checkpoint.close()
    assert own(path) == {"a": size(200)}


async def test_closing_what_was_never_written_makes_no_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state", DiskWriter(FakeClock()), journaled=True)
    await checkpoint.put({})
    await checkpoint.close()
    assert not os.listdir(tmp_path)


@pytest.mark.row("R-092")
async def test_who_is_gone_is_gone_with_the_next_change(tmp_path: Path) -> None:
    path = tmp_path / "state"
    checkpoint = await ready(path, FakeClock(), {"a": size(100), "b": size(100)})
    checkpoint.forget("a")
    await checkpoint.put({"b": size(200)})
    assert found(path) == {"b": size(200)}
    assert own(path).keys() == {"a", "b"}


@pytest.mark.row("R-089")
async def test_a_new_pod_is_in_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "state"
    checkpoint = await ready(path, FakeClock(), {"a": size(100)})
    await checkpoint.put({"a": size(200)})
    await checkpoint.put({"b": size(100)})
    assert own(path) == found(path) == {"a": size(200), "b": size(100)}


async def test_a_full_journal_is_folded_into_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal.__init__, "__kwdefaults__", {"durable": True, "size": SMALL})
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = Checkpoint(path, DiskWriter(clock), journaled=True)
    await checkpoint.put({"a": size(100)})
    seen = set[str]()
    for milli in range(101, 121):
        await checkpoint.put({"a": size(milli)})
        assert found(path) == {"a": size(milli)}
        seen.add(str(own(path)["a"]))
        if milli % 5 == 0:
            await idle(checkpoint, clock)
    assert 4 < len(seen) < 20, "some of them went into the file on the way"


async def test_a_file_that_is_as_it_was_before_does_not_bring_old_changes_back(tmp_path: Path) -> None:
    """Up, down, idle: the file has the same bytes, and the records of before would fit it."""
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = await ready(path, clock, {"a": size(100)})
    before = path.read_bytes()
    for milli in (200, 300, 100):
        await checkpoint.put({"a": size(milli)})
    await idle(checkpoint, clock)
    assert path.read_bytes() == before
    assert found(path) == {"a": size(100)}
    await checkpoint.put({"a": size(400)})
    assert found(path) == {"a": size(400)}


async def test_the_records_of_another_file_mean_nothing(tmp_path: Path) -> None:
    """An earlier version went on with the file and knows of no journal."""
    path = tmp_path / "state"
    checkpoint = await ready(path, FakeClock(), {"a": size(100)})
    await checkpoint.put({"a": size(200)})
    await Checkpoint(path, DiskWriter(FakeClock())).put({"a": size(300)})
    assert found(path) == {"a": size(300)}
    path.unlink()
    assert found(path) == {}


@pytest.mark.row("R-091")
async def test_what_lies_before_a_whole_record_cannot_be_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "state"
    checkpoint = await ready(path, FakeClock(), {"a": size(100)})
    await checkpoint.put({"a": size(200)})
    await checkpoint.put({"a": size(300)})
    beside = journal_of(path).path
    content = beside.read_bytes()
    beside.write_bytes(content.replace(b"200m", b"250m"))
    again = Checkpoint(path, DiskWriter(FakeClock()), journaled=True)
    assert again.damage == "record 1 of the journal is damaged, and others follow it"
    assert sorted(entry.name for entry in os.scandir(tmp_path)) == ["state.damaged", "state.damaged.journal"]
    assert not again.uids


# ------------------------------------------------------------------ wherever it is cut


class Killed(BaseException):
    """The process is killed in the middle of a write."""


class Machine:
    """Kills after so many bytes have been written, wherever they go, counting a rename and a new file as one each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.written = 1 << 30, 0
        pwrite, replace = os.pwrite, os.replace

        def cut(handle: int, data: bytes, at: int) -> int:
            allowed = min(len(data), self.left)
            done = pwrite(handle, data[:allowed], at) if allowed else 0
            self._spend(len(data))
            return done

        def moved(source: str, target: str) -> None:
            self._spend(1)
            replace(source, target)

        monkeypatch.setattr(os, "pwrite", cut)
        monkeypatch.setattr(os, "replace", moved)

    def _spend(self, amount: int) -> None:
        self.written += amount
        self.left -= amount
        if self.left < 0:
            self.left = 0
            raise Killed


LIFE = (200, 300, 400, 100, 0, 300, 100, 0, 500)
"""Sizes; at 0 nothing happens for a second. The first 100 does not fit the journal, and makes the file what it was."""


async def live(path: Path, promised: list[int]) -> None:
    """`promised` has what was promised, and at its end, negative, what was under way."""
    checkpoint = Checkpoint(path, DiskWriter(FakeClock()), journaled=True, durable=False, write=write_whole)
    await checkpoint._fold(prepare=True)
    for milli in LIFE:
        if not milli:
            await checkpoint._fold(prepare=True)
            continue
        promised.append(-milli)
        await checkpoint.put({"a": size(milli)})
        promised[-1] = milli


@pytest.mark.row("R-092")
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.campaign), 13])
async def test_a_kill_at_every_byte_leaves_the_last_promise_or_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A process that promises sizes through a journal is killed at every byte that it writes, in a full journal and in
    a fold that leaves the file as it was before. What the next one finds is the last promise, or the one under way.
    """

    async def here(function: Callable[..., None], *given: object) -> None:
        function(*given)

    monkeypatch.setattr(asyncio, "to_thread", here)
    monkeypatch.setattr(Journal.__init__, "__kwdefaults__", {"durable": False, "size": SMALL})
    path = tmp_path / "start" / "state"
    await Checkpoint(path, DiskWriter(FakeClock())).put({"a": size(100), "b": size(100)})
    machine, promised = Machine(monkeypatch), [100]
    await live(_copied(path, tmp_path / "whole"), promised)
    total = machine.written
    assert promised == [100, *filter(None, LIFE)]
    for cut in range(0, total, step):
        promised, copy = [100], _copied(path, tmp_path / "cut")
        machine.left = cut
        with pytest.raises(Killed):
            await live(copy, promised)
        machine.left = 1 << 30
        kept = next(amount for amount in reversed(promised) if amount > 0)
        held = read(copy, journal_of(copy))
        assert held == {"a": held["a"], "b": size(100)}
        assert held["a"] in [size(kept), size(abs(promised[-1]))], (cut, promised)


def _copied(path: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(path.parent, target)
    return target / path.name


# ------------------------------------------------------------------ a disk that fails


@pytest.mark.row("R-092")
async def test_a_change_that_the_journal_does_not_take_goes_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    checkpoint = await ready(path, FakeClock(), {"a": size(100)})
    journal_of(path).path.unlink()
    await checkpoint.put({"a": size(200)})
    assert own(path) == found(path) == {"a": size(200)}


async def test_a_change_that_nothing_takes_was_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = await ready(path, clock, {"a": size(100), "b": size(100)})
    await checkpoint.put({"a": size(200)})
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", _fail)
        broken.setattr(checkpoint._disk, "_write", _fail)
        with pytest.raises(CheckpointError, match="Input/output error"):
            await checkpoint.put({"a": size(300)})
    assert checkpoint.get("a") == size(200)
    assert found(path) == {"a": size(200), "b": size(100)}
    await checkpoint.put({"b": size(300)})
    await idle(checkpoint, clock)
    await checkpoint.put({"a": size(400)})
    assert found(path) == {"a": size(400), "b": size(300)}


async def test_after_a_file_that_was_perhaps_written_no_record_follows_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file is there and its directory could not be synced: the write failed, and the file is another."""
    path, clock = tmp_path / "state", FakeClock()
    checkpoint = await ready(path, clock, {"a": size(100)})

    def half(path: Path, content: bytes) -> None:
        write_whole(path, content)
        _fail()

    with monkeypatch.context() as broken:
        broken.setattr(checkpoint._disk, "_write", half)
        with pytest.raises(CheckpointError):
            await checkpoint.put({"new": size(100)})
    await checkpoint.put({"a": size(200)})
    assert found(path) == {"a": size(200)}


def _fail(*_: object) -> int:
    raise OSError(5, "Input/output error")
