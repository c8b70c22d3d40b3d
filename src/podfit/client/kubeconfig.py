"""Kubeconfig files: how to reach a cluster, and as whom.

Reading follows kubectl: the files of `KUBECONFIG`, else `~/.kube/config`; of entries with the same name the first
file's counts, relative paths start at their own file. Writing touches only the three entries that carry our name, in
one atomic step, and never the current context; comments in the file do not survive, as with kubectl.
"""

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from podfit.client.exec_plugin import ExecPlugin, PluginError, SignIn
from podfit.client.rest import Client
from podfit.client.transport import Https
from podfit.net.files import write_atomic
from podfit.net.http_client import HttpsClient
from podfit.net.system import SystemClock
from podfit.net.tls import client_context

Document: TypeAlias = dict[str, Any]

SECTIONS = ("clusters", "users", "contexts")


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Access:
    """One context, resolved. Certificates and keys are PEM."""

    server: str
    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    token: str = ""
    token_file: Path | None = None
    namespace: str = "default"
    verify: bool = True
    plugin: ExecPlugin | None = None

    def client(self, *, user_agent: str = "podfit") -> Client:
        """Raises KubeconfigError when the command that signs in does not."""
        certificate, key, token = self.certificate, self.key, self.read_token
        has_token = bool(self.token or self.token_file)
        if self.plugin is not None:
            sign_in = SignIn(self.plugin, SystemClock())
            try:
                credential = sign_in.credential()
            except PluginError as error:
                raise KubeconfigError(str(error)) from error
            certificate, key = credential.certificate or certificate, credential.key or key
            has_token, token = bool(credential.token), sign_in.token
        tls = client_context(authorities=self.authorities, certificate=certificate, key=key, verify=self.verify)
        https = HttpsClient(self.server, tls, token=token if has_token else None)
        return Client(Https(https), user_agent=user_agent)

    def read_token(self) -> str:
        """The bearer token; a file is read every time, because tokens in files rotate."""
        return self.token_file.read_text().strip() if self.token_file else self.token


def default_paths(environment: Mapping[str, str]) -> list[Path]:
    """The files that count, in order of precedence."""
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def load(paths: list[Path], *, context: str = "") -> Access:
    """Resolve a context, the current one by default. Files that do not exist are passed over."""
    found: dict[str, dict[str, tuple[Document, Path]]] = {section: {} for section in SECTIONS}
    current = context
    for path in paths:
        document = _read(path)
        current = current or document.get("current-context", "")
        for section in SECTIONS:
            for entry in document.get(section) or []:
                found[section].setdefault(entry.get("name", ""), (entry.get(section[:-1]) or {}, path.parent))
    shown = os.pathsep.join(map(str, paths))
    if not current:
        raise KubeconfigError(f"{shown}: no current context; name one with --context")
    chosen = _named(found, "contexts", current, shown)[0]
    return _access(
        chosen, _named(found, "clusters", chosen.get("cluster", ""), shown),
        _named(found, "users", chosen.get("user", ""), shown))


def standalone(name: str, access: Access) -> bytes:
    """A complete kubeconfig with one context, which is current; everything is inside."""
    document = _empty() | {"current-context": name}
    for section, entry in zip(SECTIONS, _entries(name, access), strict=True):
        document[section] = [entry]
    return _dump(document)


def merge(path: Path, name: str, access: Access) -> None:
    """Add the context `name`, or bring it up to date, in the user's file."""
    with _locked(path) as target:
        document = _read(target) or _empty()
        for section, entry in zip(SECTIONS, _entries(name, access), strict=True):
            document[section] = [*_others(document, section, name), entry]
        write_atomic(target, _dump(document))


def remove(path: Path, name: str) -> None:
    """Take the context `name` out of the user's file again; harmless when it is not there."""
    with _locked(path) as target:
        document = _read(target)
        kept = {section: _others(document, section, name) for section in SECTIONS}
        if all(len(kept[section]) == len(document.get(section) or []) for section in SECTIONS):
            return
        document |= kept
        if document.get("current-context") == name:
            document["current-context"] = ""
        write_atomic(target, _dump(document))


def _access(context: Document, cluster: tuple[Document, Path], user: tuple[Document, Path]) -> Access:
    where, who = cluster[0], user[0]
    if not where.get("server"):
        raise KubeconfigError(f"cluster {context.get('cluster')!r} has no server")
    for method in ("auth-provider", "username"):
        if method in who:
            raise KubeconfigError(
                f"user {context.get('user')!r} signs in by {method}, which Kubernetes has given up; podfit knows "
                "certificates, tokens and exec")
    try:
        plugin = ExecPlugin.read(who["exec"], where, user[1]) if who.get("exec") else None
    except PluginError as error:
        raise KubeconfigError(f"user {context.get('user')!r}: {error}") from error
    token_file = who.get("tokenFile")
    return Access(
        where["server"], _content(*cluster, "certificate-authority"), _content(*user, "client-certificate"),
        _content(*user, "client-key"), who.get("token", ""), user[1] / token_file if token_file else None,
        context.get("namespace") or "default", verify=not where.get("insecure-skip-tls-verify", False),
        plugin=plugin)


def _content(entry: Document, directory: Path, field: str) -> bytes | None:
    """What an entry holds inline under `<field>-data`, which wins, or names by a file under `<field>`."""
    try:
        if data := entry.get(f"{field}-data"):
            return base64.b64decode(data, validate=True)
        return (directory / entry[field]).read_bytes() if entry.get(field) else None
    except (binascii.Error, TypeError) as error:
        raise KubeconfigError(f"{field}-data is not base64") from error
    except OSError as error:
        raise KubeconfigError(f"{field}: {error}") from error


def _named(
    found: dict[str, dict[str, tuple[Document, Path]]], section: str, name: str, shown: str,
) -> tuple[Document, Path]:
    if name not in found[section]:
        raise KubeconfigError(f"{shown}: there is no {section[:-1]} named {name!r}")
    return found[section][name]


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


def _read(path: Path) -> Document:
    """The file as it is; empty when there is none."""
    import yaml  # 30 ms that a cluster without kubeconfig does not need

    try:
        document = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        return {}
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{path} is not YAML: {error}") from error
    if document is None:
        return {}
    sections = [document.get(section) or [] for section in SECTIONS] if isinstance(document, dict) else [None]
    if not all(isinstance(entries, list) and all(isinstance(e, dict) for e in entries) for entries in sections):
        raise KubeconfigError(f"{path} is not a kubeconfig")
    return document  # type: ignore[no-any-return]  # YAML; checked as far as it is used


def _dump(document: Document) -> bytes:
    import yaml

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
