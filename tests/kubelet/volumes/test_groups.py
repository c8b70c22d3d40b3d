"""fsGroup on a volume that was used before: all of it belongs to the group then, and nothing else does."""

import os
from pathlib import Path

import pytest

from podfit.kubelet.disk.walk import MOST_LEVELS
from podfit.kubelet.volumes.groups import give_all_to_group

GROUP = 2000


class Given:
    """Who was given what; a test may not be root."""

    def __init__(self) -> None:
        self.paths: dict[str, int] = {}

    def __call__(self, descriptor: int, user: int, group: int) -> None:
        assert user == -1
        self.paths[os.readlink(f"/proc/self/fd/{descriptor}")] = group


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    root = tmp_path / "volume"
    (root / "below").mkdir(parents=True)
    (root / "below" / "file").touch(mode=0o600)
    (root / "below").chmod(0o700)
    root.chmod(0o700)
    return root


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_what_is_there_is_the_groups_to_read_and_write(volume: Path) -> None:
    given = Given()
    give_all_to_group(volume, GROUP, "Always", own=given)
    assert given.paths == dict.fromkeys(map(str, (volume, volume / "below", volume / "below" / "file")), GROUP)
    assert [mode(path) for path in (volume, volume / "below", volume / "below" / "file")] == [0o2770, 0o2770, 0o660]


def test_others_get_no_more_than_they_had(volume: Path) -> None:
    (volume / "below" / "file").chmod(0o755)
    give_all_to_group(volume, GROUP, "Always", own=Given())
    assert mode(volume / "below" / "file") == 0o775
    assert mode(volume) == 0o2770, "a database refuses a directory that everybody may enter"


def test_no_link_is_followed(volume: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    (theirs / "file").touch(mode=0o600)
    (volume / "directory").symlink_to(theirs)
    (volume / "link").symlink_to(theirs / "file")
    os.mkfifo(volume / "fifo", mode=0o600)
    given = Given()
    give_all_to_group(volume, GROUP, "Always", own=given)
    assert not any("theirs" in path or "fifo" in path for path in given.paths)
    assert (mode(theirs), mode(theirs / "file")) == (0o700, 0o600)


def test_on_root_mismatch_a_volume_of_the_group_is_left_alone(volume: Path) -> None:
    mine = volume.stat().st_gid
    given = Given()
    give_all_to_group(volume, mine, "OnRootMismatch", own=given)
    assert mode(volume) == 0o2770, "its bits were others'"
    (volume / "below" / "file").chmod(0o600)
    give_all_to_group(volume, mine, "OnRootMismatch", own=given)
    assert mode(volume / "below" / "file") == 0o600
    give_all_to_group(volume, mine, "Always", own=given)
    assert mode(volume / "below" / "file") == 0o660


def test_what_is_too_deep_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(MOST_LEVELS + 10):
        os.mkdir("d", mode=0o700, dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    given, open_before = Given(), len(os.listdir("/proc/self/fd"))
    give_all_to_group(tmp_path, GROUP, "Always", own=given)
    assert len(given.paths) == MOST_LEVELS + 1
    assert len(os.listdir("/proc/self/fd")) == open_before
