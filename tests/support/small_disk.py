"""A disk that can be filled: a tmpfs of a few MiB."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podfit.kubelet.disk.mounter import TmpfsMounter

_UNMOUNT = 'cat >/dev/null; exec umount --lazy "$0"'


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[None]:
    """`size` bytes on the directory `place`. A process of a session of its own unmounts it at the end of this one, also
    when that is killed. Skips where nothing can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    TmpfsMounter().tmpfs(place, size=size)
    with subprocess.Popen(["sh", "-c", _UNMOUNT, str(place)], stdin=subprocess.PIPE, start_new_session=True) as guard:
        try:
            yield
        finally:
            guard.communicate()
    assert not place.is_mount()
