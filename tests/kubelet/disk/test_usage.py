"""What a directory takes of its disk is counted once, here, and without following anybody."""

import os
from pathlib import Path

import pytest

from podfit.decide.node.pod_load import Used
from podfit.kubelet.disk.usage import CLOCK_EVERY, usage
from podfit.kubelet.disk.walk import MOST_LEVELS

BYTES = b"x" * 65536


def blocks(*paths: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in paths)


def test_files_directories_and_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "large").write_bytes(BYTES * 100)
    (root / "a" / "file").write_bytes(BYTES)
    os.link(root / "a" / "file", root / "again")
    (root / "link").symlink_to(outside)
    (root / "file-link").symlink_to(outside / "large")
    found = usage(root)
    counted = (root, root / "a", root / "a" / "file", root / "link", root / "file-link")
    assert found == Used(blocks(*counted), 5)


def test_a_hole_takes_no_room(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert usage(tmp_path).bytes < 1 << 20


def test_what_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert usage(tmp_path / "no") == Used()


def test_a_root_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(NotADirectoryError):
        usage(tmp_path / "link")


def test_a_fifo_in_the_place_of_a_directory_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert usage(tmp_path).inodes == 2


def test_deep_directories_are_counted_as_far_as_there_are_descriptors(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(MOST_LEVELS + 10):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    before = len(os.listdir("/proc/self/fd"))
    assert usage(tmp_path).inodes == MOST_LEVELS + 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_ends_when_the_time_is_over(tmp_path: Path) -> None:
    for number in range(CLOCK_EVERY * 2):
        (tmp_path / str(number)).touch()
    assert usage(tmp_path, lambda: True).inodes == CLOCK_EVERY


def test_a_file_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(BYTES)
    assert usage(tmp_path / "file") == Used(blocks(tmp_path / "file"), 1)
