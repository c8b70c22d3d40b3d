"""subPath mounts: found by descriptor, and bound where no container can reach.

    <pod>/volume-subpaths/<volume>/<container>/<index>     what the runtime is told to mount, as upstream has it

A container that shares the volume may exchange directories for links at any time. So the runtime is not given a path
inside the volume: what the walk found is bind-mounted, by its descriptor, onto a file or directory of the kubelet's.
"""

import os
import stat
from pathlib import Path

from podfit.kubelet.disk.mounter import Mounter
from podfit.kubelet.disk.safe_paths import Outside, component, make_directory, opened
from podfit.kubelet.sources.downward import Unsupported
from podfit.net import files

DIRECTORY = "volume-subpaths"


def bind(volume: Path, sub_path: str, *, home: Path, place: tuple[str, ...], mounter: Mounter) -> Path:
    """Where the runtime finds the sub-path of a volume. What is missing is made as directories with the volume's mode.

    `home` is the pod's directory, `place` the names below it. Raises Unsupported, OSError.
    """
    try:
        mode = stat.S_IMODE(os.stat(volume).st_mode)
        with opened(volume, sub_path, make=mode) as descriptor:
            found = os.fstat(descriptor).st_mode
            if not mounter.binds:
                return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            target = _target(home, place, directory=stat.S_ISDIR(found), mounter=mounter)
            mounter.bind(descriptor, target)
            return target
    except Outside as error:
        raise Unsupported(f"subPath {sub_path!r} is outside of its volume") from error


def _target(home: Path, place: tuple[str, ...], *, directory: bool, mounter: Mounter) -> Path:
    """An empty file or directory of the kubelet's own. What an earlier instance of the container had there is gone."""
    *above, name = (component(part) for part in place)
    parent = make_directory(home, "/".join((DIRECTORY, *above)), mode=0o750)
    target = parent / name
    _remove(target, mounter)
    if directory:
        target.mkdir(mode=0o750)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640))
    return target


def remove_all(home: Path, mounter: Mounter) -> None:
    """Unmount and remove the sub-paths of a pod. Never recursively below a target: should a mount still be there, its
    files are not the pod's. Raises OSError.
    """
    root = home / DIRECTORY
    if not root.exists():
        return
    for volume in root.iterdir():
        for container in volume.iterdir():
            for target in container.iterdir():
                _remove(target, mounter)
            container.rmdir()
        volume.rmdir()
    root.rmdir()


def _remove(target: Path, mounter: Mounter) -> None:
    if not os.path.lexists(target):
        return
    mounter.unmount(target)
    if target.is_dir() and not target.is_symlink():
        target.rmdir()
    else:
        target.unlink()


def remove_tree(home: Path, mounter: Mounter) -> None:
    """A pod's directory, once nothing is mounted below it any more. Raises OSError."""
    remove_all(home, mounter)
    mounter.unmount_below(home)
    files.remove_tree(home)
