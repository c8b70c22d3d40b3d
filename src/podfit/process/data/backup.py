"""Backups of a data directory: the store at one moment, and the keys that its clients rely on.

A backup is a tar archive of mode 0600:

    backup.json                what it is: format, version of podfit, revision, sizes and SHA-256 of the rest
    store.db                   the objects
    pki/ca.crt, pki/ca.key     the authority: without it kubeconfigs of before are not good after a restore
    pki/service-accounts.key   the key of service accounts' tokens
"""

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from podfit import __version__
from podfit.core.errors import plainly
from podfit.core.times import format_time
from podfit.net.files import sync_directory
from podfit.process.data import state as data_state
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import exclusive
from podfit.process.errors import MachineError, UsageError
from podfit.store.protocol import StoreError
from podfit.store.sqlite.backup import check_store, copy_store, forget_history

FORMAT = 1
MANIFEST, STORE = "backup.json", "store.db"
KEYS = ("pki/ca.crt", "pki/ca.key", "pki/service-accounts.key")
CHUNK = 2**20


class Part(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    format: int
    podfit: str  # the version that wrote it
    taken: str
    revision: int
    objects: int
    parts: dict[str, Part]

    @property
    def has_keys(self) -> bool:
        return any(name in KEYS for name in self.parts)


class Restored(msgspec.Struct, frozen=True):
    manifest: Manifest
    revision: int
    aside: Path | None  # where what was there before is kept


def back_up(data: DataDir, target: Path, *, keys: bool, now: datetime) -> Manifest:
    """Copy what the data directory holds now, whether or not a cluster runs on it. Raises ClusterError."""
    if not data.store.exists():
        fix = ("a store on etcd is backed up by etcd's own means:  etcdctl snapshot save",)
        raise MachineError(f"there is no store in {data.root}", fix=fix)
    try:
        with tempfile.TemporaryDirectory(prefix=".podfit-backup-", dir=target.absolute().parent) as scratch:
            copy = Path(scratch) / STORE
            facts = copy_store(data.store, copy)
            files = {STORE: copy} | {name: data.root / name for name in KEYS if keys and (data.root / name).exists()}
            parts = {name: _part(path) for name, path in files.items()}
            manifest = Manifest(FORMAT, __version__, format_time(now), facts.revision, facts.objects, parts)
            _write(target, manifest, files)
            return manifest
    except (StoreError, OSError) as error:
        raise MachineError(f"no backup was made: {plainly(error)}") from error


def restore(data: DataDir, source: Path, *, replace: bool, now: datetime) -> Restored:
    """Put a backup into a data directory on which nothing runs. Raises ClusterError, and then nothing was changed."""
    with exclusive(data), _unpacked(source, data.root) as (manifest, folder):
        present = [name for name in (STORE, *KEYS) if (data.root / name).exists()]
        if STORE in present and not replace:
            again = data.command("restore", "--replace", str(source))
            fix = (f"keep what is there aside and restore:  {again}", "or choose another --data")
            raise MachineError(f"{data.root} has a store already", fix=fix)
        try:
            before = _revision_of(data) if STORE in present else 0
            revision = forget_history(folder / STORE, at_least=before)
            aside = data.root / f"replaced-{now:%Y%m%dT%H%M%S%f}" if present else None
            _change_places(data, folder, aside, manifest)
        except (StoreError, OSError) as error:
            raise MachineError(f"not restored: {plainly(error)}") from error
    return Restored(manifest, revision, aside)


def _revision_of(data: DataDir) -> int:
    """The revision of the store that is to be replaced: its clients may have seen it, so it is not given out again."""
    try:
        return check_store(data.store).revision
    except StoreError:
        return 0  # it cannot be read, which may be why it is replaced


def _still_to_make(data: DataDir, manifest: Manifest) -> data_state.Setup:
    """What the next start may make: the parts that are in no backup, or not in this one, and that are not here."""
    pairs = (data_state.AUTHORITY, data_state.FRONT_PROXY, (data_state.SIGNING_KEY,))
    return data_state.Setup(
        tuple(
            part
            for pair in pairs
            if not any(part in manifest.parts or (data.root / part).exists() for part in pair)
            for part in pair
        )
    )


def _change_places(data: DataDir, folder: Path, aside: Path | None, manifest: Manifest) -> None:
    """What is there goes aside, what is in `folder` takes its place. All of it durably, or none: raises OSError."""
    with ExitStack() as undo:
        touched = {data.root}

        def move(old: Path, new: Path) -> None:
            new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.replace(old, new)
            undo.callback(os.replace, new, old)
            touched.update((old.parent, new.parent))

        if aside is not None:
            undo.callback(_remove_empty, aside)
            for name in (STORE, f"{STORE}-wal", f"{STORE}-shm", *(KEYS if manifest.has_keys else ())):
                if (data.root / name).exists():
                    move(data.root / name, aside / name)
        missing = _still_to_make(data, manifest)
        if missing.may_make:
            data_state.write_setup(folder, missing)
            move(folder / data.setup.name, data.setup)
        for name in manifest.parts:
            move(folder / name, data.root / name)
        for path in touched:
            sync_directory(path)
        undo.pop_all()


def _remove_empty(aside: Path) -> None:
    """Removes those with nothing in them."""
    for folder in (aside / "pki", aside):
        with suppress(OSError):
            folder.rmdir()


def _part(path: Path) -> Part:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return Part(path.stat().st_size, digest.hexdigest())


def _write(target: Path, manifest: Manifest, files: dict[str, Path]) -> None:
    """Whole or not at all: into a neighbour that is renamed."""
    handle, neighbour = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
                _add(archive, MANIFEST, len(text), io.BytesIO(text))
                for name, path in files.items():
                    with path.open("rb") as content:
                        _add(archive, name, path.stat().st_size, content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(neighbour, target)
    except BaseException:
        os.unlink(neighbour)
        raise
    sync_directory(target.absolute().parent)


def _add(archive: tarfile.TarFile, name: str, size: int, content: "io.BufferedIOBase") -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    archive.addfile(entry, content)


@contextmanager
def _unpacked(source: Path, beside: Path) -> Iterator[tuple[Manifest, Path]]:
    """The parts of a backup, each as the manifest says, in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=beside) as scratch:
        folder = Path(scratch)
        try:
            with tarfile.open(source, mode="r:") as archive:
                manifest = _manifest(archive, source)
                for name in manifest.parts:
                    _extract(archive, name, folder / name)
        except (tarfile.TarError, EOFError, KeyError) as error:
            raise MachineError(f"{source} is not a whole backup: {error}") from error
        except OSError as error:
            raise MachineError(f"{source}: {plainly(error, about=str(source))}") from error
        for name, part in manifest.parts.items():
            if _part(folder / name) != part:
                raise MachineError(f"{source} is damaged: {name} is not what was backed up")
        try:
            facts = check_store(folder / STORE)
        except StoreError as error:
            raise MachineError(f"{source} cannot be restored: {error}") from error
        if facts.revision != manifest.revision:
            raise MachineError(f"{source} is damaged: its store is at revision {facts.revision}")
        yield manifest, folder


def _manifest(archive: tarfile.TarFile, source: Path) -> Manifest:
    try:
        entry = archive.extractfile(MANIFEST)
        manifest = msgspec.json.decode(entry.read() if entry else b"", type=Manifest)
    except (KeyError, msgspec.DecodeError) as error:
        raise MachineError(f"{source} is not a backup of podfit: {error}") from error
    if manifest.format > FORMAT:
        raise MachineError(f"{source} was written by podfit {manifest.podfit}, in a format that this one does not know")
    if STORE not in manifest.parts or not set(manifest.parts) <= {STORE, *KEYS}:
        raise MachineError(f"{source} is not a backup of podfit: it has parts {', '.join(manifest.parts)}")
    return manifest


def _extract(archive: tarfile.TarFile, name: str, target: Path) -> None:
    content = archive.extractfile(name)
    if content is None:
        raise KeyError(name)
    target.parent.mkdir(exist_ok=True, mode=0o700)
    handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        while chunk := content.read(CHUNK):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def check_target(target: Path, *, overwrite: bool) -> None:
    """UsageError when a backup must not or cannot go there."""
    if target.is_dir():
        raise UsageError(f"{target} is a directory; name a file")
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is not a regular file, and would be replaced by one")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already (--overwrite replaces it)")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no directory {target.absolute().parent}")
