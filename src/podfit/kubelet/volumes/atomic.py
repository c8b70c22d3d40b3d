"""Files that change all at once, for ConfigMap, Secret, downward API and projected volumes.

    volume/..2026_11_21_03_55_07.123456/key     the content
    volume/..data -> ..2026_…                   replaced by one rename: readers see the old set or the new one
    volume/key -> ..data/key

The layout is upstream's, because programs watch `..data` to learn of changes.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

DATA = "..data"


class Owner(NamedTuple):
    """User and group of a file; None leaves it with whoever writes it."""

    user: int | None
    group: int | None


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = 0o644
    owner: Owner | None = field(default=None, compare=False)


Own = Callable[[Path, int, int], None]
"""Gives a file to a user and a group, -1 for the one that it has. Raises OSError."""


Payload = Mapping[str, File]
"""Relative paths and what is in them."""


def write_payload(volume: Path, payload: Payload, *, now: datetime, own: Own) -> bool:
    """Make the volume show exactly the payload. False when it did already."""
    current = volume / DATA
    if current.is_symlink() and _read(current) == dict(payload):
        return False
    fresh = volume / now.strftime("..%Y_%m_%d_%H_%M_%S.%f")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o755)
    for name, file in payload.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode)
        if file.owner is not None:
            own(path, *(-1 if each is None else each for each in file.owner))
    old = Path(os.readlink(current)) if current.is_symlink() else None
    _point(volume, DATA, fresh.name)
    _link(volume, {Path(name).parts[0] for name in payload})
    if old is not None and old.name != fresh.name:
        shutil.rmtree(volume / old.name, ignore_errors=True)
    return True


def _read(directory: Path, below: str = "") -> dict[str, File]:
    """What is there; without pathlib, because every pod's volumes are compared once a minute."""
    files: dict[str, File] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            name = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                files |= _read(Path(entry.path), f"{name}/")
            elif entry.is_file():
                with open(entry.path, "rb", buffering=0) as file:
                    files[name] = File(file.read(), os.fstat(file.fileno()).st_mode & 0o7777)
    return files


def _point(volume: Path, name: str, target: str) -> None:
    neighbour = volume / f"{DATA}_tmp"
    neighbour.unlink(missing_ok=True)
    neighbour.symlink_to(target)
    neighbour.rename(volume / name)


def _link(volume: Path, names: set[str]) -> None:
    for name in names:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"{DATA}/{name}")
    for entry in volume.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
