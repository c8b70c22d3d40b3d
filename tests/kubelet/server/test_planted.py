"""Links, FIFOs and devices in the place of logs and termination messages; logs of any size."""

import os
import tracemalloc
from pathlib import Path

import pytest

from kubelet.harness import Node
from podfit.kubelet.pods.runtime_facts import FILE_BYTES, read_message
from podfit.kubelet.runtime import logs
from podfit.kubelet.runtime.logs import LogOptions, stream, tail_text
from support.clock import FakeClock

RECORD = b"2026-01-01T00:00:00.5Z stdout F secret\n"


async def ended() -> bool:
    return True


async def read(path: Path, options: LogOptions) -> int:
    body = stream(path, options, ended=ended, sleep=FakeClock().sleep)
    return sum([len(chunk) async for chunk in body])


def plant(kind: str, path: Path, elsewhere: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    match kind:
        case "link":
            path.symlink_to(elsewhere)
        case "directory link":
            path.parent.rmdir()
            path.parent.symlink_to(elsewhere.parent)
        case "fifo":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "device":
            os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


KINDS = [
    "link",
    "directory link",
    "fifo",
    "directory",
    pytest.param("device", marks=pytest.mark.skipif(os.geteuid() != 0, reason="devices need root")),
]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_log_is_a_file_and_nothing_else(node: Node, tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere" / "0.log"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(RECORD)
    node.add()
    await node.runs()
    plant(kind, Path(node.runtime.running("c1").log_path), elsewhere)
    status, text = await node.ask("/containerLogs/default/web/c1")
    assert status == 500
    assert text.startswith("failed to open log file: ")
    status, text = await node.ask("/containerLogs/default/web/c1", tailLines="5")
    assert status == 500
    node.runtime.exit("c1", 1)
    await node.advance(0.5)
    if kind == "directory link":
        waiting = node.state()["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        return
    await node.until(lambda: node.state()["restartCount"] == 1)
    status, text = await node.ask("/containerLogs/default/web/c1", previous="true")
    assert status == 500


@pytest.mark.parametrize("kind", KINDS)
def test_a_termination_message_is_a_file_and_nothing_else(tmp_path: Path, kind: str) -> None:
    elsewhere, file = tmp_path / "elsewhere" / "m", tmp_path / "pod" / "c" / "m"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(RECORD)
    plant(kind, file, elsewhere)
    assert read_message(file, "FallbackToLogsOnError", log=file, failed=True) == ""
    assert read_message(elsewhere, "FallbackToLogsOnError", log=elsewhere, failed=True) == RECORD.decode()


def test_of_a_large_termination_message_the_end_is_read(tmp_path: Path) -> None:
    file = tmp_path / "m"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
        stream.seek(-3, os.SEEK_END)
        stream.write(b"end")
    assert read_message(file, "File", log=tmp_path / "none", failed=True) == "\0" * (FILE_BYTES - 3) + "end"


async def test_a_log_without_line_ends_is_not_held_in_memory(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    with log.open("wb") as stream:
        stream.write(RECORD)
        stream.truncate(256 << 20)
    tracemalloc.start()
    try:
        assert await read(log, LogOptions()) == len(b"secret\n")
        assert await read(log, LogOptions(tail=3)) == len(b"secret\n")
        assert tail_text(log, lines=80, limit=2048) == "", "it is further back than is looked for"
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


async def test_a_line_of_many_pieces_is_not_held_in_memory(tmp_path: Path) -> None:
    log, piece = tmp_path / "0.log", b"2026-01-01T00:00:00.5Z stdout P " + b"x" * 16_000 + b"\n"
    log.write_bytes(RECORD + piece * 4000 + RECORD)
    tracemalloc.start()
    try:
        assert await read(log, LogOptions(tail=1)) == 4000 * 16_000 + len(b"secret\n")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_blocks_do_not_tear_the_time_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(b"".join(RECORD.replace(b"secret", b"%d" % number) for number in range(50)))
    for block in range(1, 120):
        monkeypatch.setattr(logs, "BLOCK", block)
        assert tail_text(log, lines=3, limit=2048) == "47\n48\n49\n"
