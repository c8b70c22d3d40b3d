"""Spec 5.1: the two files, byte for byte, and what happens when they cannot be written or read."""

import asyncio
import json
from pathlib import Path

import pytest

from podfit.decide.overlay import PodResources
from podfit.kubelet.allocation.checkpoint import Checkpoint, CheckpointError, Damaged, checksum, dump, load
from support.pods import needs

VECTOR = '{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}'
FILE = json.dumps({"data": VECTOR, "checksum": 1178570812}).encode()
SMALL = PodResources({"c1": needs({"cpu": "100m"})})
LARGE = PodResources({"c1": needs({"cpu": "200m"}, {"memory": "1Gi", "cpu": "1"})}, needs({"cpu": "1"}))


def test_upstream_vector() -> None:
    assert checksum(VECTOR.encode()) == 1178570812
    assert load(FILE) == {"pod1": PodResources({"container1": needs({"cpu": "1Ki", "memory": "1Ki"})})}


def test_what_is_written() -> None:
    document = json.loads(dump({"b": LARGE, "a": SMALL}))
    assert document["data"] == (
        '{"entries":{"a":{"ContainerResources":{"c1":{"requests":{"cpu":"100m"}}},"PodLevelResources":null},'
        '"b":{"ContainerResources":{"c1":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"200m"}}},'
        '"PodLevelResources":{"requests":{"cpu":"1"}}}}}'
    )
    assert document["checksum"] == checksum(document["data"].encode())
    assert load(dump({"b": LARGE, "a": SMALL})) == {"a": SMALL, "b": LARGE}


@pytest.mark.parametrize("content", [
    b"", b"null", b"{}", b'{"data":"{}","checksum":1}', FILE.replace(b"pod1", b"pod2"), FILE[:-20],
    json.dumps({"data": '{"entries":{"p":7}}', "checksum": 0}).encode(),
])  # fmt: skip
def test_damage_is_recognised(content: bytes) -> None:
    with pytest.raises(Damaged):
        load(content)


def test_damaged_file_is_set_aside(tmp_path: Path) -> None:  # R-091, as decided for podfit
    path = tmp_path / "state"
    path.write_bytes(b"rubbish")
    checkpoint = Checkpoint(path)
    assert not checkpoint.uids
    assert checkpoint.set_aside is not None
    assert checkpoint.set_aside.read_bytes() == b"rubbish"
    assert not path.exists()


async def test_survives_and_is_not_written_twice(tmp_path: Path) -> None:
    path, writes = tmp_path / "state", list[bytes]()

    def write(to: Path, data: bytes) -> None:
        writes.append(data)
        to.write_bytes(data)

    checkpoint = Checkpoint(path, write=write)
    await checkpoint.put({"a": SMALL})
    await checkpoint.put({"a": SMALL})
    assert len(writes) == 1
    assert Checkpoint(path).get("a") == SMALL
    checkpoint.forget("a")
    await checkpoint.put({"b": LARGE})
    assert load(path.read_bytes()) == {"b": LARGE}


async def test_changes_share_a_write(tmp_path: Path) -> None:
    writes: list[bytes] = []
    checkpoint = Checkpoint(tmp_path / "state", write=lambda _, data: writes.append(data))
    await asyncio.gather(*(checkpoint.put({f"pod{n}": SMALL}) for n in range(50)))
    assert len(writes) <= 2
    assert len(checkpoint.uids) == 50


async def test_failed_write_leaves_no_trace(tmp_path: Path) -> None:  # pitfall 30
    full = True

    def write(to: Path, data: bytes) -> None:
        if full:
            raise OSError(28, "No space left on device")
        to.write_bytes(data)

    checkpoint = Checkpoint(tmp_path / "state", write=write)
    with pytest.raises(CheckpointError, match="No space left"):
        await checkpoint.put({"a": SMALL})
    assert checkpoint.get("a") is None
    full = False
    await checkpoint.put({"b": SMALL})
    assert load((tmp_path / "state").read_bytes()) == {"b": SMALL}
