"""Whether a data directory holds a whole cluster, an incomplete one, or a damaged one.

Objects and keys cannot be made a second time: an empty store beside the keys of a cluster would be an empty cluster,
and a new authority would turn away everybody who trusts the old one. So they are made once. `setup.json` names the
parts that may still be made. It is written before the first of them and removed, durably, when all of them are there,
before the server listens; a first start that was killed goes on where it was. Without the file every part has to be
there.
"""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from podfit.net.certificates import Damaged, new_key, read_key
from podfit.net.files import sync_directory, write_atomic
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError
from podfit.store.protocol import StoreError
from podfit.store.sqlite import StoreDamaged

STORE = "store.db"
SIGNING_KEY = "pki/service-accounts.key"
AUTHORITY = ("pki/ca.crt", "pki/ca.key")
FRONT_PROXY = ("pki/front-proxy/ca.crt", "pki/front-proxy/ca.key")
PARTS = (STORE, *AUTHORITY, SIGNING_KEY, *FRONT_PROXY)
ELSEWHERE = "or choose another directory with --data"
_TRACES = ("store.db-wal", "pki/**/*", "kubelet/*", "admin.kubeconfig")  # of a cluster that was there


class Setup(msgspec.Struct, frozen=True):
    """The parts that may be made."""

    may_make: tuple[str, ...] = ()

    def allows(self, *parts: str) -> bool:
        return all(part in self.may_make for part in parts)


WHOLE = Setup()


def begin(data: DataDir, *, store: bool, signing_key: bool = True) -> Setup:
    """What may be made on this start. `store` and `signing_key` say whether they are kept in this directory at all.

    Raises MachineError for a cluster of which a part is missing or empty.
    """
    needed = [part for part in PARTS if (part != STORE or store) and (part != SIGNING_KEY or signing_key)]
    setup = _read(data)
    if setup is None and not _traces(data):
        setup = Setup(PARTS)
        write_setup(data.root, setup)
    setup = setup or WHOLE
    lost = {part: state for part in needed if not setup.allows(part) and (state := _lost(data.root / part))}
    if lost:
        raise damaged(data, lost)
    return setup


def complete(data: DataDir, setup: Setup) -> None:
    """Everything that had to be made is there, and on the disk."""
    if setup.may_make:
        data.setup.unlink(missing_ok=True)
        sync_directory(data.root)


def write_setup(folder: Path, setup: Setup) -> None:
    write_atomic(folder / DataDir(folder).setup.name, msgspec.json.encode(setup))


def signing_key(data: DataDir, setup: Setup) -> Path:
    """The file with the key of service accounts' tokens, checked. Raises Damaged."""
    path = data.root / SIGNING_KEY
    try:
        read_key(path)
    except Damaged:
        if not setup.allows(SIGNING_KEY):
            raise
        new_key(path)
    return path


@contextlib.contextmanager
def telling_of_damage(data: DataDir) -> Iterator[None]:
    """A key or certificate that is damaged ends a start."""
    try:
        yield
    except Damaged as damage:
        raise damaged(data, {str(damage.path.relative_to(data.root)): damage.reason}) from damage


def damaged(data: DataDir, lost: dict[str, str], revisions: Collection[int] = ()) -> MachineError:
    """`revisions` are those of records of the store that can be given up by themselves."""
    there = [part for part in PARTS if part not in lost and _lost(data.root / part) is None]
    others = sorted({trace.relative_to(data.root).parts[0] for trace in _traces(data)} - {"pki", *PARTS})
    fix = [f"restore a backup:  podfit restore FILE --replace --data {data.root}"]
    if lost.keys() == {SIGNING_KEY}:
        key = data.root / SIGNING_KEY
        fix.append(f"or end all tokens with a new key:  openssl ecparam -name prime256v1 -genkey -noout -out {key}")
    if revisions:
        listed, store = ", ".join(map(str, revisions)), data.root / STORE
        sql = " ".join(f"DELETE FROM {table} WHERE rev IN ({listed});" for table in ("log", "sums"))
        fix.append(f"or give these records up, and have what was before them:  sqlite3 {store} '{sql}'")
    fix += [f"or give the cluster up:  rm -r {data.root}", ELSEWHERE]
    return MachineError(
        f"{data.root} holds a damaged cluster: " + ", ".join(f"{part} {state}" for part, state in lost.items()),
        evidence=(f"still there: {', '.join([*there, *others]) or 'nothing else'}",),
        fix=tuple(fix),
    )


def unopened(data: DataDir, error: StoreError) -> MachineError:
    """The store could not be opened."""
    if isinstance(error, StoreDamaged):
        return damaged(data, {STORE: f"cannot be used ({error})"}, error.revisions)
    return MachineError(str(error), fix=(ELSEWHERE,))


def _read(data: DataDir) -> Setup | None:
    try:
        return msgspec.json.decode(data.setup.read_bytes(), type=Setup)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise damaged(data, {data.setup.name: f"is not understood ({error})"}) from error


def _traces(data: DataDir) -> list[Path]:
    found = (path for pattern in (*PARTS, *_TRACES) for path in data.root.glob(pattern))
    return [path for path in found if not path.is_dir() or path.parent.name == "kubelet"]


def _lost(path: Path) -> str | None:
    try:
        return None if path.stat().st_size else "is empty"
    except FileNotFoundError:
        return "is missing"
