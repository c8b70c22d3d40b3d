"""Versions of a data directory: older ones are taken over, newer ones refused, and nothing is lost on the way."""

from pathlib import Path

import msgspec
import pytest

from podfit.process.data.data_dir import DataDir
from podfit.process.data.release import described
from podfit.process.data.version import STEPS, DataVersion, read_version, take_over
from podfit.process.errors import MachineError


class Killed(BaseException):
    """The process ends here."""


def test_a_directory_without_versions_is_taken_over(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    assert read_version(data).parts == {}
    take_over(data)
    assert read_version(data) == DataVersion({"directory": 1, "checkpoints": 1}, described())
    assert data.version.stat().st_mode & 0o777 == 0o600


def test_steps_are_taken_once_and_in_order(tmp_path: Path) -> None:
    data, taken = DataDir(tmp_path), list[str]()
    take_over(data)
    more = {**STEPS, "checkpoints": (*STEPS["checkpoints"], lambda _: taken.append("2"), lambda _: taken.append("3"))}
    take_over(data, more)
    take_over(data, more)
    assert taken == ["2", "3"]
    assert read_version(data).parts == {"directory": 1, "checkpoints": 3}


def test_a_start_that_is_killed_takes_the_steps_again(tmp_path: Path) -> None:
    data, taken = DataDir(tmp_path), list[str]()
    take_over(data)

    def killed(_: DataDir) -> None:
        raise Killed

    first = {**STEPS, "directory": (*STEPS["directory"], lambda _: taken.append("2"), killed)}
    with pytest.raises(Killed):
        take_over(data, first)
    assert read_version(data).parts == {"directory": 1, "checkpoints": 1}
    again = {**STEPS, "directory": (*STEPS["directory"], lambda _: taken.append("2"), lambda _: taken.append("3"))}
    take_over(data, again)
    assert taken == ["2", "2", "3"]


@pytest.mark.parametrize(
    "parts", [{"directory": 2, "checkpoints": 1}, {"directory": 1, "checkpoints": 9}, {"other": 1}]
)
def test_what_is_newer_is_refused_in_a_line_and_left_alone(tmp_path: Path, parts: dict[str, int]) -> None:
    data = DataDir(tmp_path)
    content = msgspec.json.encode(DataVersion(parts, "podfit 9.0 (commit 0123456789ab)"))
    data.version.write_bytes(content)
    with pytest.raises(MachineError, match=r"written by podfit 9\.0 .* this podfit reads [01]$") as refused:
        take_over(data)
    assert refused.value.fix
    assert data.version.read_bytes() == content


def test_versions_that_cannot_be_read_are_no_reason_to_go_on(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.version.write_text("{")
    with pytest.raises(MachineError, match="cannot be read"):
        take_over(data)
