"""The two files, byte for byte, and what happens when they cannot be written or read."""

import asyncio
import json
import threading
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.checkpoints.checkpoint import Checkpoint, CheckpointError
from podfit.kubelet.checkpoints.format import Damaged, EntryEncoder, checksum, dump, fnv32a, fold, load, whole
from podfit.kubelet.disk.writer import DiskWriter, Threads
from support.clock import FakeClock
from support.eventually import PATIENCE
from support.pods import needs

VECTOR = '{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}'
FILE = json.dumps({"data": VECTOR, "checksum": 1178570812}).encode()
SMALL = PodResources({"c1": needs({"cpu": "100m"})})
LARGE = PodResources({"c1": needs({"cpu": "200m"}, {"memory": "1Gi", "cpu": "1"})}, needs({"cpu": "1"}))


@pytest.mark.row("R-090")
def test_upstream_vector() -> None:
    assert checksum(VECTOR.encode()) == 1178570812
    assert load(FILE) == {"pod1": PodResources({"container1": needs({"cpu": "1Ki", "memory": "1Ki"})})}


@pytest.mark.row("R-090")
def test_what_is_written() -> None:
    document = json.loads(dump({"b": LARGE, "a": SMALL}))
    assert document["data"] == (
        '{"entries":{"a":{"ContainerResources":{"c1":{"requests":{"cpu":"100m"}}},"PodLevelResources":null},'
        '"b":{"ContainerResources":{"c1":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"200m"}}},'
        '"PodLevelResources":{"requests":{"cpu":"1"}}}}}'
    )
    assert document["checksum"] == checksum(document["data"].encode())
    assert load(dump({"b": LARGE, "a": SMALL})) == {"a": SMALL, "b": LARGE}


def test_what_is_stopped_to_be_started_anew_is_written_beside_upstreams_fields() -> None:
    stopped = replace(SMALL, restarting={"c2": "i7", "c1": "i5"})
    text = json.loads(dump({"a": stopped}))["data"]
    assert text.endswith('"PodLevelResources":null,"RestartingContainers":{"c1":"i5","c2":"i7"}}}}')
    assert load(dump({"a": stopped})) == {"a": stopped}
    with pytest.raises(Damaged):
        load(dump({"a": stopped}).replace(b'\\"i5\\"', b"5"))


@pytest.mark.row("R-090")
@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(0, 2**32 - 1))
def test_a_sum_by_pieces_is_the_sum_of_the_whole(pieces: list[bytes], start: int) -> None:
    assert reduce(fold, pieces, start) == fnv32a(b"".join(pieces), start)


def test_texts_that_are_known_are_written_again_as_they_were() -> None:
    texter = EntryEncoder()
    first = whole(texter.texts({"a": SMALL, "b": LARGE}))
    assert whole(texter.texts({"b": SMALL, "a": SMALL})) == dump({"a": SMALL, "b": SMALL})
    assert whole(texter.texts({})) == dump({})
    assert whole(texter.texts({"a": SMALL, "b": LARGE})) == first


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"{}",
        b'{"data":"{}","checksum":1}',
        FILE.replace(b"pod1", b"pod2"),
        FILE[:-20],
        json.dumps({"data": '{"entries":{"p":7}}', "checksum": 0}).encode(),
    ],
)
def test_damage_is_recognised(content: bytes) -> None:
    with pytest.raises(Damaged):
        load(content)


@pytest.mark.row("R-091")
def test_damaged_file_is_set_aside(tmp_path: Path) -> None:
    """As decided for podfit: upstream stops."""
    path = tmp_path / "state"
    path.write_bytes(b"rubbish")
    checkpoint = Checkpoint(path, DiskWriter(FakeClock()))
    assert not checkpoint.uids
    assert checkpoint.set_aside is not None
    assert checkpoint.set_aside.read_bytes() == b"rubbish"
    assert "not a checkpoint" in checkpoint.damage
    assert not path.exists()


def test_earlier_evidence_is_kept(tmp_path: Path) -> None:
    for content in (b"first", b"second", b"third"):
        (tmp_path / "state").write_bytes(content)
        Checkpoint(tmp_path / "state", DiskWriter(FakeClock()))
    assert sorted((path.name, path.read_bytes()) for path in tmp_path.iterdir()) == [
        ("state.damaged", b"first"),
        ("state.damaged.2", b"second"),
        ("state.damaged.3", b"third"),
    ]


def test_a_file_that_cannot_be_read_is_set_aside_too(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    checkpoint = Checkpoint(tmp_path / "state", DiskWriter(FakeClock()))
    assert "Is a directory" in checkpoint.damage
    assert checkpoint.set_aside == tmp_path / "state.damaged"


async def test_a_damaged_file_that_cannot_be_renamed_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"rubbish")
    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "replace", _refuse)
        checkpoint = Checkpoint(path, DiskWriter(FakeClock()))
        assert (checkpoint.set_aside, bool(checkpoint.damage)) == (None, True)
        with pytest.raises(CheckpointError, match="Read-only file system"):
            await checkpoint.put({"a": SMALL})
    assert path.read_bytes() == b"rubbish"
    await checkpoint.put({"a": SMALL})
    assert (tmp_path / "state.damaged").read_bytes() == b"rubbish"
    assert load(path.read_bytes()) == {"a": SMALL}


async def test_what_was_rebuilt_is_written_by_the_next_put(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"rubbish")
    checkpoint = Checkpoint(path, DiskWriter(FakeClock()))
    checkpoint.restore({"a": SMALL})
    await checkpoint.put({})
    assert load(path.read_bytes()) == {"a": SMALL}


def _refuse(self: Path, target: Path) -> Path:
    raise OSError(30, "Read-only file system")


@pytest.mark.row("R-092")
async def test_survives_and_is_not_written_twice(tmp_path: Path) -> None:
    path, writes = tmp_path / "state", list[bytes]()

    def write(to: Path, data: bytes) -> None:
        writes.append(data)
        to.write_bytes(data)

    checkpoint = Checkpoint(path, DiskWriter(FakeClock()), write=write)
    await checkpoint.put({"a": SMALL})
    await checkpoint.put({"a": SMALL})
    assert len(writes) == 1
    assert Checkpoint(path, DiskWriter(FakeClock())).get("a") == SMALL
    checkpoint.forget("a")
    await checkpoint.put({"b": LARGE})
    assert load(path.read_bytes()) == {"b": LARGE}


async def test_changes_share_a_write(tmp_path: Path) -> None:
    writes: list[bytes] = []
    writer = DiskWriter(FakeClock(), Threads())
    checkpoint = Checkpoint(tmp_path / "state", writer, write=lambda _, data: writes.append(data))
    await asyncio.gather(*(checkpoint.put({f"pod{n}": SMALL}) for n in range(50)))
    assert len(writes) <= 2
    assert len(checkpoint.uids) == 50


async def test_what_is_taken_back_while_it_is_written_is_taken_back(tmp_path: Path) -> None:
    slow, writing = threading.Event(), threading.Event()

    def write(to: Path, data: bytes) -> None:
        writing.set()
        slow.wait(10 * PATIENCE)
        to.write_bytes(data)

    checkpoint = Checkpoint(tmp_path / "state", DiskWriter(FakeClock(), Threads()), write=write)
    slow.set()
    await checkpoint.put({"a": SMALL})
    for event in (slow, writing):
        event.clear()
    first = asyncio.create_task(checkpoint.put({"a": LARGE}))
    await asyncio.to_thread(writing.wait, 10)
    second = asyncio.create_task(checkpoint.put({"a": SMALL}))
    await asyncio.sleep(0)
    slow.set()
    await asyncio.gather(first, second)
    assert checkpoint.get("a") == SMALL
    assert Checkpoint(tmp_path / "state", DiskWriter(FakeClock())).get("a") == SMALL


async def test_failed_write_leaves_no_trace(tmp_path: Path) -> None:
    full = True

    def write(to: Path, data: bytes) -> None:
        if full:
            raise OSError(28, "No space left on device")
        to.write_bytes(data)

    checkpoint = Checkpoint(tmp_path / "state", DiskWriter(FakeClock()), write=write)
    with pytest.raises(CheckpointError, match="No space left"):
        await checkpoint.put({"a": SMALL})
    assert checkpoint.get("a") is None
    full = False
    await checkpoint.put({"b": SMALL})
    assert load((tmp_path / "state").read_bytes()) == {"b": SMALL}
