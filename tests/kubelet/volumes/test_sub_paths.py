"""Sub-paths: what is found, what is refused, and what is bound while somebody exchanges it."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podfit.kubelet.disk.mounter import DirectoryMounter, TmpfsMounter, mount_points
from podfit.kubelet.disk.safe_paths import MOST_LEVELS, Outside, component, opened
from podfit.kubelet.sources.downward import Unsupported
from podfit.kubelet.volumes.sub_paths import bind, remove_tree

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
SECRET = "only the host knows this"
EXCHANGE = """
import contextlib, itertools, os, sys
os.chdir(sys.argv[1])
os.mkdir("old")
print(flush=True)
for number in itertools.count():
    with contextlib.suppress(OSError):
        os.symlink(sys.argv[2], "a")
    with contextlib.suppress(OSError):
        os.unlink("a")
    with contextlib.suppress(OSError):
        os.mkdir("a")
    with contextlib.suppress(OSError):
        os.rename("a", f"old/{number % 1000}")
"""


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "volumes" / "v"
    path.mkdir(parents=True)
    path.chmod(0o777)
    return path


@pytest.fixture
def home(volume: Path) -> Iterator[Path]:
    path = volume.parent.parent
    yield path
    if os.geteuid() == 0 and path.exists():
        remove_tree(path, TmpfsMounter())


@pytest.fixture
def host(tmp_path: Path) -> Path:
    path = tmp_path / "host"
    path.mkdir(mode=0o777)
    (path / "secret").write_text(SECRET)
    return path


def found(volume: Path, path: str) -> str:
    """Where the sub-path is, seen from the volume."""
    with opened(volume, path) as descriptor:
        return os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), volume)


@pytest.mark.parametrize(
    ("links", "path", "where"),
    [
        ({}, "a/b", "a/b"),
        ({}, "./a//b/", "a/b"),
        ({"l": "a"}, "l/b", "a/b"),
        ({"a/l": "../a/b"}, "a/l", "a/b"),
        ({"l": "{volume}/a/b"}, "l", "a/b"),
        ({"l": "{volume}"}, "l/a", "a"),
        ({"l": "m", "m": "a"}, "l/b/..", "a"),
        ({"..data": "a", "key": "..data/b"}, "key", "a/b"),
    ],
)
def test_links_are_followed_inside_of_the_volume(volume: Path, links: dict[str, str], path: str, where: str) -> None:
    (volume / "a" / "b").mkdir(parents=True)
    for name, target in links.items():
        (volume / name).symlink_to(target.format(volume=volume))
    assert found(volume, path) == where


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("", ".."),
        ("", "a/../../x"),
        ("", "/etc"),
        ("/etc", "l/passwd"),
        ("../..", "l/x"),
        ("a/../../v/a", "l"),
        ("{volume}/../v/a", "l"),
        ("{volume}x", "l"),
    ],
)
def test_what_leads_out_of_the_volume_is_refused(volume: Path, home: Path, link: str, path: str) -> None:
    (volume / "a").mkdir()
    if link:
        (volume / "l").symlink_to(link.format(volume=volume))
    with pytest.raises(Outside):
        found(volume, path)
    with pytest.raises(Unsupported, match="outside of its volume"):
        bind(volume, path, home=home, place=("v", "c", "0"), mounter=DirectoryMounter())


def test_a_circle_of_links_and_a_deep_path_end(volume: Path) -> None:
    (volume / "l").symlink_to("l")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        found(volume, "l")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="directories deep"), opened(volume, "a/" * (MOST_LEVELS + 9), make=0o777):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_missing_is_made_with_the_mode_of_the_volume(volume: Path, home: Path) -> None:
    bind(volume, "a/b", home=home, place=("v", "c", "0"), mounter=DirectoryMounter())
    assert [stat.S_IMODE((volume / path).stat().st_mode) for path in ("a", "a/b")] == [0o777, 0o777]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0"])
def test_a_name_is_one_component(name: str) -> None:
    with pytest.raises(Outside):
        component(name)


@as_root
def test_files_directories_and_fifos_are_bound_and_removed(volume: Path, home: Path) -> None:
    (volume / "file").write_text("text")
    os.mkfifo(volume / "fifo")
    mounter = TmpfsMounter()
    file = bind(volume, "file", home=home, place=("v", "c", "0"), mounter=mounter)
    directory = bind(volume, "d", home=home, place=("v", "c", "1"), mounter=mounter)
    fifo = bind(volume, "fifo", home=home, place=("v", "c", "2"), mounter=mounter)
    assert (file.read_text(), directory.is_dir(), fifo.is_fifo()) == ("text", True, True)
    again = bind(volume, "d", home=home, place=("v", "c", "0"), mounter=mounter)  # a file before
    assert again == file
    assert again.is_dir()
    assert len(mount_points(home)) == 3
    kept = volume.parent.parent.parent / "kept"
    (volume / "d").rename(kept)
    (kept / "file").write_text("text")
    remove_tree(home, mounter)
    assert mount_points(home) == []
    assert (home.exists(), (kept / "file").read_text()) == (False, "text")


@as_root
def test_what_is_still_mounted_is_not_deleted(volume: Path, home: Path, host: Path) -> None:
    """Should the list of mounts not show one, what is mounted there stays as it is."""

    class Forgetful(TmpfsMounter):
        def unmount(self, target: Path) -> None:
            pass

        def unmount_below(self, path: Path) -> None:
            pass

    bind(host, "", home=home, place=("v", "c", "0"), mounter=TmpfsMounter())
    with pytest.raises(OSError, match="busy"):
        remove_tree(home, Forgetful())
    assert (host / "secret").exists()


@as_root
def test_mounts_are_found_whatever_letters_their_path_has(tmp_path: Path) -> None:
    place = tmp_path / "größe mit\tLeer zeichen\\"
    place.mkdir()
    mounter = TmpfsMounter()
    mounter.tmpfs(place, size=4096)
    try:
        assert mount_points(tmp_path) == [place]
    finally:
        mounter.unmount_below(tmp_path)
    assert mount_points(tmp_path) == []


@as_root
@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.campaign)])
def test_nothing_of_the_host_is_bound_while_the_sub_path_is_exchanged(
    volume: Path, home: Path, host: Path, seconds: int, figure: Callable[[str, object], None]
) -> None:
    """Read and written through what is bound, as a container would; until there was enough of both, however busy."""
    mounter, bound, refused = TmpfsMounter(), 0, 0
    program = [sys.executable, "-c", EXCHANGE, str(volume), str(host)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as exchanging:
        assert exchanging.stdout is not None
        exchanging.stdout.readline()
        until = time.monotonic() + seconds
        while min(bound, refused) <= 50 or time.monotonic() < until:
            for path in ("a", "a/below"):
                try:
                    target = bind(volume, path, home=home, place=("v", "c", "0"), mounter=mounter)
                except (Unsupported, OSError):
                    refused += 1
                    continue
                bound += 1
                assert not (target / "secret").exists()
                (target / "written").touch()
        exchanging.kill()
    figure("exchanged sub-paths", f"bound {bound}, refused {refused}")
    assert os.listdir(host) == ["secret"]
