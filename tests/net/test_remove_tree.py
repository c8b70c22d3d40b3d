"""The removal of directories that containers have filled."""

import os
from pathlib import Path

import pytest

from podfit.net.files import remove_tree

LEVELS = 3000


def deep(top: Path, levels: int) -> None:
    directory = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=directory)
        os.close(os.open("f", os.O_CREAT, dir_fd=directory))
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)


def test_a_tree_deeper_than_python_can_call_itself_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(3):
        (tree / f".lifted-{number}").mkdir()
        (tree / f".lifted-{number}" / "x").mkdir()
    (tree / ".lifted-3").touch()
    deep(tree, LEVELS)
    descriptors = len(os.listdir("/proc/self/fd"))
    remove_tree(tree)
    assert not tree.exists()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_many_names_and_names_that_are_no_text(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "wide").mkdir(parents=True)
    for number in range(2500):
        (tree / "wide" / str(number)).touch()
    os.mkdir(os.fsencode(tree) + b"/\xff")
    remove_tree(tree)
    assert not tree.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "kept").touch()
    (tree / "a").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "a" / "link").symlink_to(outside)
    remove_tree(tree)
    assert (outside / "kept").exists()
    (tmp_path / "top").symlink_to(outside)
    with pytest.raises(OSError, match="top"):
        remove_tree(tmp_path / "top")
    assert (outside / "kept").exists()
