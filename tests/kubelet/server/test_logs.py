"""Container logs: what comes out of CRI's format, checked against reading the whole file."""

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.kubelet.runtime import logs
from podfit.kubelet.runtime.logs import BLOCK, LogOptions, offset_of_tail, stream, tail_text
from support.clock import FakeClock

TIME = "2026-11-21T03:55:07.{:09d}Z"


def record(number: int, text: str, tag: str = "F", stream_name: str = "stdout") -> str:
    return f"{TIME.format(number)} {stream_name} {tag} {text}\n"


def written(path: Path, *records: str) -> Path:
    path.write_text("".join(records))
    return path


async def ended() -> bool:
    return True


async def read(path: Path, **options: object) -> str:
    body = stream(path, LogOptions(**options), ended=ended, sleep=FakeClock().sleep)  # type: ignore[arg-type]  # keywords of several types
    return b"".join([chunk async for chunk in body]).decode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(
        tmp_path / "0.log", record(1, "one"), record(2, "tw", "P"), record(3, "o"), record(4, "three", "F", "stderr")
    )


async def test_pieces_of_a_line_are_joined(log: Path) -> None:
    assert await read(log) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tail": 2}, "two\nthree\n"),
        ({"tail": 0}, ""),
        ({"tail": 99}, "one\ntwo\nthree\n"),
        ({"limit": 5}, "one\nt"),
        ({"since": TIME.format(3)}, "o\nthree\n"),
        ({"since": "2026-11-21T03:55:07Z", "tail": 1}, "three\n"),
        ({"tail": 1, "timestamps": True}, TIME.format(4) + " three\n"),
    ],
)
async def test_options(log: Path, options: dict[str, object], expected: str) -> None:
    assert await read(log, **options) == expected


async def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "0.log", record(1, "one"), "garbage\n", record(2, "two"), "2026-11-21T03:55")
    assert await read(path) == "one\ntwo\n"


async def test_following_ends_after_the_last_line_of_the_container(tmp_path: Path) -> None:
    path, clock, rounds = written(tmp_path / "0.log", record(1, "one")), FakeClock(), iter("abc")

    async def stops_after_three_looks() -> bool:
        step = next(rounds, None)
        with path.open("a") as file:
            file.write(record(2, step or "last"))
        return step is None

    async def sleep(_: float) -> None:
        await clock.settle()

    body = stream(path, LogOptions(follow=True), ended=stops_after_three_looks, sleep=sleep)
    assert b"".join([chunk async for chunk in body]) == b"one\na\nb\nc\nlast\n"


@given(
    st.lists(st.tuples(st.text("abc", max_size=5), st.booleans()), max_size=12), st.integers(0, 8), st.integers(1, 99)
)
def test_the_tail_is_the_end_of_the_whole(pieces: list[tuple[str, bool]], lines: int, block: int) -> None:
    """Read backwards in blocks of any size, across partial records."""
    expected: list[str] = []
    inside = False
    for text, partial in pieces:
        expected += [] if inside else [""]
        expected[-1] += text + ("" if partial else "\n")
        inside = partial
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "BLOCK", block)
        records = (record(n, text, "P" if partial else "F") for n, (text, partial) in enumerate(pieces))
        path = written(Path(home) / "log", *records)
        last = expected[max(0, len(expected) - lines) :]
        assert tail_text(path, lines=lines, limit=10_000) == "".join(last)


class Counting(io.BytesIO):
    """A file that counts what is read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.count += size or 0
        return super().read(size)


@pytest.mark.parametrize(
    ("piece", "times"), [(record(1, "x" * 1000, "P").encode(), 20_000), (b"no record", 2_000_000)], ids=["P", "none"]
)
def test_no_more_is_searched_for_a_tail_than_its_bound(piece: bytes, times: int) -> None:
    """A container that writes no line end: each record is a piece of one line."""
    content = piece * times
    file, most = Counting(content), 1 << 20
    offset = offset_of_tail(file, 80, most)
    assert file.count <= most + 2 * BLOCK
    assert len(content) - offset <= most + BLOCK
    assert content[offset:].startswith(record(1, "x" * 1000, "P").encode()) or offset == len(content)
