"""Writing kubeconfig files: a whole one of our own, or entries of ours in a file that belongs to the user.

An entry of ours is told by its owner, which stands in the context's `extensions` (where kubectl and its like keep what
is not for others): the cluster or node that wrote it, and which context was current before. An entry of anybody else
is never changed, whatever its name: then ours gets another name. A file is changed in one atomic step under kubectl's
own lock, and keeps its comments, order, owner and all fields that podfit does not know (`kubeconfig_text`).
"""

import base64
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import msgspec

from podfit.client.kubeconfig import SECTIONS, Access, Document, KubeconfigError, document_of
from podfit.client.kubeconfig_text import rewritten, whole
from podfit.net.files import misread, read_given, write_atomic

EXTENSION = "podfit.dev/owner"
CURRENT = "current-context"
_REQUIRED: Document = {"apiVersion": "v1", "kind": "Config"}
_OURS = b"podfit\n"
_NO_UNNAMED_FILES = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL}
"""What file systems (and old kernels) say that have none, as some of networks and overlays."""
_PATIENCE, _STEP = 5.0, 0.05  # seconds for somebody who holds the lock


def standalone(name: str, access: Access) -> bytes:
    """A complete kubeconfig with one context, which is current; everything is inside."""
    document = _empty() | {CURRENT: name}
    for section, entry in zip(SECTIONS, _entries(name, access), strict=True):
        document[section] = [entry]
    return whole(document)


class Merged(msgspec.Struct, frozen=True):
    """What `merge` did."""

    name: str
    """Of the context."""
    before: str = ""
    """The context that was current."""
    alone: bool = True
    """Whether the file has no other context."""


def merge(
    path: Path,
    name: str,
    access: Access,
    *,
    owner: str,
    switch: bool | None = None,
    ended: Callable[[str], bool] = lambda owner: False,
) -> Merged:
    """Add a context for `owner`, or bring it up to date. It is called `name`, or NAME-2 and so on where that is
    somebody else's. Entries of owners that have `ended` make room for it.

    `switch` makes it the current context; None: where the file names none. Raises KubeconfigError, and then the file
    is as it was.
    """
    made = Merged(name)

    def change(there: Document) -> Document:
        nonlocal made
        document: Document = (_REQUIRED if there else _empty()) | there
        chosen = _owned(document, owner, name, access.authorities) or _free_name(document, name, ended)
        context = _named(document, "contexts", chosen)
        current = str(document.get(CURRENT) or "")
        earlier = current if current != chosen else _earlier(context)
        entries = _entries(chosen, access, context.get("context"), owner, earlier)
        for section, entry in zip(SECTIONS, entries, strict=True):
            document[section] = _with(document.get(section) or [], entry)
        if switch or (switch is None and not current):
            document[CURRENT] = chosen
        made = Merged(chosen, earlier, len(document["contexts"]) == 1)
        return document

    _change(path, change)
    return made


def remove(path: Path, name: str, *, owner: str, authorities: bytes | None = None) -> None:
    """Take what `owner` added out of the user's file again; harmless when it is not there. Where its context is the
    current one, the one before it is again, if it is still there.

    `name` and `authorities` tell entries of earlier versions, which do not name their owner.
    """

    def change(there: Document) -> Document:
        document = dict(there)
        if ours := _owned(document, owner, name, authorities):
            earlier = _earlier(_named(document, "contexts", ours))
            for section in SECTIONS:
                entries = document.get(section) or []
                document[section] = [_after(entry, ours, earlier) for entry in entries if entry.get("name") != ours]
            if document.get(CURRENT) == ours:
                document[CURRENT] = earlier if _named(document, "contexts", earlier) else ""
        return document

    if path.exists():
        _change(path, change)


def _entries(
    name: str, access: Access, old: Document | None = None, owner: str = "", earlier: str = ""
) -> tuple[Document, Document, Document]:
    """Our cluster, user and context, all of one name. What the user has set in the context stays, as its namespace."""
    cluster: Document = {"server": access.server}
    if access.authorities:
        cluster["certificate-authority-data"] = base64.b64encode(access.authorities).decode()
    if not access.verify:
        cluster["insecure-skip-tls-verify"] = True
    user: Document = {"token": access.read_token()} if access.token or access.token_file else {}
    if access.certificate and access.key:
        user["client-certificate-data"] = base64.b64encode(access.certificate).decode()
        user["client-key-data"] = base64.b64encode(access.key).decode()
    context: Document = {"namespace": access.namespace} | (old or {}) | {"cluster": name, "user": name}
    if owner:
        context["extensions"] = _tagged(context, owner, earlier)
    return {"name": name, "cluster": cluster}, {"name": name, "user": user}, {"name": name, "context": context}


def _with(entries: list[Document], entry: Document) -> list[Document]:
    """The list with this entry, in the place of the one that it follows."""
    if any(other.get("name") == entry["name"] for other in entries):
        return [entry if other.get("name") == entry["name"] and other != entry else other for other in entries]
    return [*entries, entry]


def _free_name(document: Document, name: str, ended: Callable[[str], bool]) -> str:
    for number in count(1):
        tried = name if number == 1 else f"{name}-{number}"
        entries = [_named(document, section, tried) for section in SECTIONS]
        owner = _owner(entries[2])
        if not any(entries) or (owner and ended(owner)):
            return tried
    raise AssertionError("a file has an end")


def _owned(document: Document, owner: str, name: str, authorities: bytes | None) -> str:
    """The name of the owner's context, empty where it has none: it says so, or it is of an earlier version and has the
    cluster's authority.
    """
    for context in document.get("contexts") or []:
        if _owner(context) == owner and isinstance(context.get("name"), str):
            return str(context["name"])
    context = _named(document, "contexts", name)
    return name if not _owner(context) and authorities and _has_authority(document, context, authorities) else ""


def _has_authority(document: Document, context: Document, authorities: bytes) -> bool:
    name = context.get("name")
    content = context.get("context") or {}
    cluster = _named(document, "clusters", str(name)).get("cluster") or {}
    written = base64.b64encode(authorities).decode()
    all_of_one_name = isinstance(content, dict) and content.get("cluster") == content.get("user") == name
    return all_of_one_name and isinstance(cluster, dict) and cluster.get("certificate-authority-data") == written


def _owner(context: Document) -> str:
    return str(_tag(context).get("owner") or "")


def _after(entry: Document, gone: str, earlier: str) -> Document:
    """A context of another podfit that remembers one that is gone remembers the one before that."""
    if _earlier(entry) != gone:
        return entry
    content = entry["context"]
    tagged = _tagged(content, _owner(entry), earlier)
    return entry | {"context": content | {"extensions": tagged}}


def _tagged(context: Document, owner: str, earlier: str) -> list[Document]:
    others = [extension for extension in _extensions(context) if extension.get("name") != EXTENSION]
    return [*others, {"name": EXTENSION, "extension": {"owner": owner, "previous-context": earlier}}]


def _earlier(context: Document) -> str:
    return str(_tag(context).get("previous-context") or "")


def _tag(context: Document) -> Document:
    for extension in _extensions(context.get("context")):
        if extension.get("name") == EXTENSION and isinstance(extension.get("extension"), dict):
            return dict(extension["extension"])
    return {}


def _extensions(context: object) -> list[Document]:
    found = context.get("extensions") if isinstance(context, dict) else None
    return [extension for extension in found if isinstance(extension, dict)] if isinstance(found, list) else []


def _named(document: Document, section: str, name: str) -> Document:
    entries: list[Document] = document.get(section) or []
    return next((entry for entry in entries if name and entry.get("name") == name), {})


def _empty() -> Document:
    return _REQUIRED | {"preferences": {}} | {section: [] for section in SECTIONS}


def _change(path: Path, change: Callable[[Document], Document]) -> None:
    """Have the file say what `change` makes of it. Where that is nothing new, nothing is written: a full disk is no
    reason then. Raises KubeconfigError, and then the file is as it was.
    """
    target = Path(os.path.realpath(path))
    content, document = _read(target)
    if content and change(document) == document:
        return
    with _locked(target):
        content, document = _read(target)
        wanted = change(document)
        if content and wanted == document:
            return
        try:
            write_atomic(target, rewritten(content, document, wanted), keep_owner=True)
        except OSError as error:
            raise KubeconfigError(f"the kubeconfig {path} cannot be written ({error.strerror})") from error


def _read(target: Path) -> tuple[bytes, Document]:
    try:
        content = read_given(target)
    except FileNotFoundError:
        return b"", {}
    except OSError as error:
        raise KubeconfigError(f"the kubeconfig {target} {misread(error)}") from error
    return content, document_of(target, content)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """kubectl's own lock: a file `<config>.lock` that must not exist. One that a killed podfit has left is taken over:
    the kernel has dropped its lock on it.
    """
    lock = target.with_name(f"{target.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = _lock(lock)
    except OSError as error:
        raise KubeconfigError(f"the kubeconfig {target} cannot be locked ({error.strerror}: {lock})") from error
    if held is None:
        raise KubeconfigError(f"{target} is being written by somebody else; if not, remove {lock}")
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(held)


def _new_lock(lock: Path) -> int:
    """The file gets its name when it says whose it is and is locked: whoever is killed before leaves nothing, and
    after, what others take over. Raises FileExistsError, and OSError.
    """
    try:
        held = os.open(lock.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_UNNAMED_FILES:
            raise
        held = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        _claim(held)
        return held
    try:
        _claim(held)
        os.link(f"/proc/self/fd/{held}", lock, src_dir_fd=held)  # with a directory given, Python follows the link
    except BaseException:
        os.close(held)
        raise
    return held


def _claim(held: int) -> None:
    fcntl.flock(held, fcntl.LOCK_EX)
    with suppress(OSError):  # on a full disk it is not told from kubectl's
        os.write(held, _OURS)


def _lock(lock: Path) -> int | None:
    """None when somebody else does not let go of it."""
    for _ in range(round(_PATIENCE / _STEP)):
        with suppress(FileExistsError):
            return _new_lock(lock)
        with suppress(FileNotFoundError, BlockingIOError):
            held = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.read(held, len(_OURS)) == _OURS and os.path.samestat(os.fstat(held), lock.stat()):
                    return os.dup(held)
            finally:
                os.close(held)
        time.sleep(_STEP)
    return None
