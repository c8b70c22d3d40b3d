"""A simulated cluster replays from its seed: every write, with names, uids, revisions and times, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.eventually import PATIENCE
from support.seeded_script import writes

TESTS = Path(__file__).parents[1]


def elsewhere(seed: int, directory: Path, minutes: float, *, hash_seed: int, vpa: bool = False) -> list[bytes]:
    """In a process of its own, in which sets of texts have another order."""
    command = [sys.executable, "-m", "support.seeded_script", str(seed), str(directory), str(minutes)]
    command += ["vpa"] if vpa else []
    environ = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    subprocess.run(command, cwd=TESTS, env=environ, timeout=300 * PATIENCE, check=True, capture_output=True)
    return (directory / "writes").read_bytes().split(b"\n")


def same(one: list[bytes], other: list[bytes]) -> None:
    """Told by the first write that differs: all of them would be a page of megabytes."""
    for number, (first, second) in enumerate(zip(one, other, strict=False)):
        assert first == second, f"write {number} differs"
    assert len(one) == len(other)


def test_a_seed_replays_in_another_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    here = writes(7, tmp_path_factory.mktemp("here"), minutes=12)
    assert len(here) > 1000
    for kind in (b"/pods/default/web-", b"/events/default/", b"nodes/simulated-2", b"/jobs/team/once", b"/leases/"):
        assert any(kind in line.split()[2] for line in here), kind
    same(here, elsewhere(7, tmp_path_factory.mktemp("there"), 12, hash_seed=1))


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_hours_with_an_autoscaler_replay(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    one, other = (
        elsewhere(seed, tmp_path_factory.mktemp("run"), 120, hash_seed=hash_seed, vpa=True) for hash_seed in (0, 5)
    )
    assert any(b"verticalpodautoscalers" in line.split()[2] for line in one)
    same(one, other)
