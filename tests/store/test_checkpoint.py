"""The write-ahead log is copied back in time, and begins afresh even when the writer never pauses."""

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from podfit.store.protocol import Change, Record
from podfit.store.sqlite import checkpoint
from podfit.store.sqlite.checkpoint import Checkpointer
from podfit.store.sqlite.file import StoreFile, open_file
from podfit.store.sqlite.log import SqliteLog
from podfit.store.sqlite.reserve import PLENTY, Reserve
from support.eventually import PATIENCE

NEVER = 10**6  # seconds
T = TypeVar("T")


@pytest.fixture
def file(path: Path) -> Iterator[StoreFile]:
    file = open_file(path)
    yield file
    file.close()


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set by the checkpointer where it would copy."""
    event = threading.Event()
    monkeypatch.setattr(Checkpointer, "_copy", lambda self: event.set())
    return event


def test_it_copies_when_writing_pauses(
    file: StoreFile, copied: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "PAUSE", 0.001)
    checkpointer = Checkpointer(file, threading.Lock(), Reserve(file.path), left=0)
    checkpointer.wrote(1)
    assert copied.wait(5 * PATIENCE)
    checkpointer.close()


def test_it_copies_when_the_log_has_grown_large(
    file: StoreFile, copied: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LARGE", 1000)
    monkeypatch.setattr(checkpoint, "PAUSE", NEVER)
    waiting = threading.Event()

    class Condition(threading.Condition):
        def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
            if timeout == NEVER:
                waiting.set()  # with the lock held: the next `wrote` finds the thread asleep
            return super().wait_for(predicate, timeout)

    monkeypatch.setattr(threading, "Condition", Condition)
    checkpointer = Checkpointer(file, threading.Lock(), Reserve(file.path), left=0)
    checkpointer.wrote(999)
    assert waiting.wait(5 * PATIENCE)
    assert not copied.is_set()
    checkpointer.wrote(1)
    assert copied.wait(5 * PATIENCE)
    checkpointer.close()


def test_what_an_earlier_process_left_is_copied(
    file: StoreFile, copied: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "PAUSE", 0.001)
    checkpointer = Checkpointer(file, threading.Lock(), Reserve(file.path), left=1)
    assert copied.wait(5 * PATIENCE)
    checkpointer.close()


def test_the_last_pass_holds_back_a_writer_that_never_pauses(file: StoreFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PAUSE", NEVER)
    writing = threading.Lock()
    checkpointer = Checkpointer(file, writing, Reserve(file.path), left=0)
    held: list[bool] = []
    real = Checkpointer._pass

    def outrun(self: Checkpointer) -> None:
        held.append(writing.locked())
        real(self)
        if not writing.locked():
            checkpointer.wrote(checkpoint.SHORT + 1)

    monkeypatch.setattr(Checkpointer, "_pass", outrun)
    checkpointer._copy()
    assert held == [False] * checkpoint.PASSES + [True]
    checkpointer.close()


def test_after_a_copy_the_log_begins_afresh(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PAUSE", NEVER)
    log = SqliteLog(open_file(path))
    wal = path.with_name("store.db-wal")
    sizes = []
    for revision in range(2, 6):
        record = Record(f"/{revision}", bytes(2**20), revision, revision)
        log.append([Change(False, record, None)])
        log._checkpointer._copy()
        sizes.append(wal.stat().st_size)
    assert max(sizes) < 1.2 * 2**20
    log.close()
    assert not wal.exists()


def test_once_copied_the_log_is_long_enough_for_the_commits_that_follow(path: Path, tmp_path: Path) -> None:
    log = SqliteLog(open_file(path))
    wal = path.with_name("store.db-wal")
    log.append([Change(False, Record("/1", b"copied", 2, 2), None)])
    log._checkpointer._copy()
    log._checkpointer._lengthen()
    blocks = wal.stat().st_blocks
    for revision in range(3, 40):
        log.append([Change(False, Record(f"/{revision}", bytes(2**10), revision, revision), None)])
    assert (wal.stat().st_size, wal.stat().st_blocks) == (checkpoint.AHEAD, blocks)
    killed = tmp_path / "killed"
    killed.mkdir()
    for part in (path, wal):
        shutil.copy(part, killed / part.name)
    log.close()
    found = SqliteLog(open_file(killed / path.name))
    assert [record.mod_revision for record in found.load().records] == [*range(2, 40)]
    found.close()


def test_on_a_disk_with_little_room_the_log_is_not_made_longer(
    file: StoreFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reserve, "free", lambda self: PLENTY)
    checkpointer = Checkpointer(file, threading.Lock(), Reserve(file.path), left=0)
    before = file.log_size()
    checkpointer._lengthen()
    assert file.log_size() == before
    checkpointer.close()


def test_a_copy_that_fails_is_said_and_the_next_one_tried(
    file: StoreFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "LARGE", 1)
    tried = threading.Semaphore(0)

    def fail(self: Checkpointer) -> None:
        self._written = 0
        tried.release()
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Checkpointer, "_copy", fail)
    checkpointer = Checkpointer(file, threading.Lock(), Reserve(file.path), left=0)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            checkpointer.wrote(1)
            assert tried.acquire(timeout=5 * PATIENCE)
    checkpointer.close()
    assert "checkpoint failed error=disk I/O error" in caplog.text
