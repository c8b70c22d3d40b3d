"""Writing kubeconfig files: a whole one of our own, or our context in the user's.

Only the three entries that carry our name are touched, in one atomic step, and the current context only where there is
none; comments in the file do not survive, as with kubectl.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from podfit.client.kubeconfig import SECTIONS, Access, Document, KubeconfigError, read_document
from podfit.net.files import write_atomic


def standalone(name: str, access: Access) -> bytes:
    """A complete kubeconfig with one context, which is current; everything is inside."""
    document = _empty() | {"current-context": name}
    for section, entry in zip(SECTIONS, _entries(name, access), strict=True):
        document[section] = [entry]
    return "".join(f"{line}\n" for line in _block(document)).encode()


def merge(path: Path, name: str, access: Access, *, current: bool = False) -> None:
    """Add the context `name`, or bring it up to date, in the user's file; `current` makes it the current one where the
    file names none.
    """
    with _locked(path) as target:
        document = read_document(target) or _empty()
        for section, entry in zip(SECTIONS, _entries(name, access), strict=True):
            document[section] = [*_others(document, section, name), entry]
        if current and not document.get("current-context"):
            document["current-context"] = name
        content = _dump(document)
        if not target.exists() or target.read_bytes() != content:  # a full disk may hold up nothing that is the same
            write_atomic(target, content)


def remove(path: Path, name: str) -> None:
    """Take the context `name` out of the user's file again; harmless when it is not there."""
    with _locked(path) as target:
        document = read_document(target)
        kept = {section: _others(document, section, name) for section in SECTIONS}
        if all(len(kept[section]) == len(document.get(section) or []) for section in SECTIONS):
            return
        document |= kept
        if document.get("current-context") == name:
            document["current-context"] = ""
        write_atomic(target, _dump(document))


def _entries(name: str, access: Access) -> tuple[Document, Document, Document]:
    """Our cluster, user and context, all of one name."""
    cluster: Document = {"server": access.server}
    if access.authorities:
        cluster["certificate-authority-data"] = base64.b64encode(access.authorities).decode()
    if not access.verify:
        cluster["insecure-skip-tls-verify"] = True
    user: Document = {"token": access.read_token()} if access.token or access.token_file else {}
    if access.certificate and access.key:
        user["client-certificate-data"] = base64.b64encode(access.certificate).decode()
        user["client-key-data"] = base64.b64encode(access.key).decode()
    context = {"cluster": name, "user": name, "namespace": access.namespace}
    return {"name": name, "cluster": cluster}, {"name": name, "user": user}, {"name": name, "context": context}


def _others(document: Document, section: str, name: str) -> list[Document]:
    return [entry for entry in document.get(section) or [] if entry.get("name") != name]


def _empty() -> Document:
    return {"apiVersion": "v1", "kind": "Config", "preferences": {}} | {section: [] for section in SECTIONS}


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+/=.:_@-]*[A-Za-z0-9+/=]")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")


def _block(value: Any) -> Iterator[str]:
    """Lines of YAML. A file of our own needs no more than this, and the library takes 30 ms to load, for which a
    cluster that starts would keep everybody waiting.
    """
    for key, child in value.items() if isinstance(value, dict) else ((None, child) for child in value):
        lead = "-" if key is None else f"{key}:"
        if not isinstance(child, dict | list) or not child:
            yield f"{lead} {_scalar(child)}"
        elif key is None:
            first, *rest = _block(child)
            yield from (f"- {first}", *(f"  {line}" for line in rest))
        else:
            yield from (lead, *(line if isinstance(child, list) else f"  {line}" for line in _block(child)))


def _scalar(value: Any) -> str:
    """Text that could be taken for something else is quoted, as in JSON, which is YAML too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def _dump(document: Document) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, encoding="utf-8")


@contextmanager
def _locked(path: Path) -> Iterator[Path]:
    """kubectl's own lock: a file `<config>.lock` that must not exist. Gives the file behind symbolic links."""
    target = path.resolve()
    lock = target.with_name(f"{target.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise KubeconfigError(f"{target} is being written by somebody else; if not, remove {lock}") from None
    try:
        yield target
    finally:
        lock.unlink()
