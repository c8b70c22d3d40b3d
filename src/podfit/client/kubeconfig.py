"""Kubeconfig files: how to reach a cluster, and as whom.

Reading follows kubectl: the files of `KUBECONFIG`, else `~/.kube/config`; of entries with the same name the first
file's counts, relative paths start at their own file. Where there is no file at all, inside a pod, its service account
is what there is. `kubeconfig_edit` writes such files.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec
import yaml

from podfit.client.exec_plugin import ExecPlugin, PluginError, SignIn
from podfit.core.errors import plainly
from podfit.net.files import misread, read_given
from podfit.net.reachability import DIRECT, ConnectionRoute
from podfit.net.system import SystemClock
from podfit.net.tls import client_context

if TYPE_CHECKING:
    from podfit.client.rest import Client

Document: TypeAlias = dict[str, Any]

SECTIONS = ("clusters", "users", "contexts")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used; the message says which and why."""


class NoContext(KubeconfigError):
    """The files name no context, or not the one that was asked for."""


class NoKubeconfig(KubeconfigError):
    """There is no file where one is looked for."""


class Access(msgspec.Struct, frozen=True):
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
    reach: ConnectionRoute = DIRECT

    def client(self, *, user_agent: str = "podfit") -> "Client":
        """Raises KubeconfigError when the command that signs in does not."""
        # A third of what `up --detach` and `down` import, which read and write kubeconfigs and ask nobody.
        from podfit.client.rest import Client
        from podfit.client.transport import Https
        from podfit.net.http_client import HttpsClient

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
        http = HttpsClient(self.server, tls, token=token if has_token else None, reach=self.reach)
        return Client(Https(http), user_agent=user_agent)

    def read_token(self) -> str:
        """The bearer token; a file is read every time, because tokens in files rotate."""
        return self.token_file.read_text().strip() if self.token_file else self.token


def find(environment: Mapping[str, str], path: Path | None = None, *, context: str = "") -> Access:
    """The cluster that is meant without options: of this file, else of the usual ones, else the one around us."""
    paths = [path] if path else default_paths(environment)
    if not path and not any(map(os.path.exists, paths)) and (inside := _in_cluster(environment)):
        return inside
    return load(paths, context=context)


def _in_cluster(environment: Mapping[str, str]) -> Access | None:
    """The access of the service account of the pod that we run in; None outside of pods."""
    directory = SERVICE_ACCOUNT
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        return None
    authorities, namespace = directory / "ca.crt", directory / "namespace"
    address = f"[{host}]" if ":" in host else host
    return Access(
        f"https://{address}:{port}",
        authorities.read_bytes() if authorities.exists() else None,
        token_file=token,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def default_paths(environment: Mapping[str, str]) -> list[Path]:
    """The files that count, in order of precedence."""
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def current_context(environment: Mapping[str, str], path: Path | None = None) -> str:
    """The context that is used when none is named; empty when the files name none."""
    paths = [path] if path else default_paths(environment)
    return next(filter(None, (read_document(path).get("current-context", "") for path in paths)), "")


def load(paths: list[Path], *, context: str = "") -> Access:
    """Resolve a context, the current one by default. Files that do not exist are passed over."""
    found: dict[str, dict[str, tuple[Document, Path]]] = {section: {} for section in SECTIONS}
    current = context
    for path in paths:
        document = read_document(path)
        current = current or document.get("current-context", "")
        for section in SECTIONS:
            for entry in document.get(section) or []:
                found[section].setdefault(entry.get("name", ""), (entry.get(section[:-1]) or {}, path.parent))
    shown = os.pathsep.join(map(str, paths))
    if not any(path.exists() for path in paths):
        raise NoKubeconfig(f"{shown}: no such file")
    if not current:
        raise NoContext(f"{shown}: no current context; name one with --context")
    chosen = _named(found, "contexts", current, shown)[0]
    return _access(
        chosen,
        _named(found, "clusters", chosen.get("cluster", ""), shown),
        _named(found, "users", chosen["user"], shown) if chosen.get("user") else ({}, Path()),
    )


def _plugin(declared: Document, cluster: Document, file: Path, user: Any) -> ExecPlugin:
    try:
        return ExecPlugin.read(declared, cluster, file)
    except PluginError as error:
        raise KubeconfigError(f"user {user!r}: {error}") from error


def _access(context: Document, cluster: tuple[Document, Path], user: tuple[Document, Path]) -> Access:
    where, who = cluster[0], user[0]
    if not where.get("server"):
        raise KubeconfigError(f"cluster {context.get('cluster')!r} has no server")
    for method in ("auth-provider", "username"):
        if method in who:
            raise KubeconfigError(
                f"user {context.get('user')!r} signs in by {method}, which Kubernetes has given up; podfit knows "
                "certificates, tokens and exec"
            )
    plugin = _plugin(who["exec"], where, user[1], context.get("user")) if who.get("exec") else None
    token_file, authorities = who.get("tokenFile"), _content(*cluster, "certificate-authority")
    verify = not where.get("insecure-skip-tls-verify", False)
    if authorities and not verify:
        raise KubeconfigError(
            f"cluster {context.get('cluster')!r} has both insecure-skip-tls-verify and a certificate-authority; which?"
        )
    return Access(
        where["server"],
        authorities,
        _content(*user, "client-certificate"),
        _content(*user, "client-key"),
        who.get("token", ""),
        user[1] / token_file if token_file else None,
        context.get("namespace") or "default",
        verify=verify,
        plugin=plugin,
        reach=ConnectionRoute(
            _proxy(context.get("cluster"), where.get("proxy-url") or ""),
            where.get("tls-server-name") or "",
            _impersonation(context.get("user"), who),
        ),
    )


def _proxy(cluster: Any, url: str) -> str:
    if url and (urlsplit(url).scheme != "http" or not urlsplit(url).hostname):
        raise KubeconfigError(
            f"cluster {cluster!r}: proxy-url {url!r} cannot be used; podfit goes through proxies with http:// URLs"
        )
    return url


def _impersonation(user: Any, who: Document) -> tuple[tuple[str, str], ...]:
    """The headers by which requests are judged as another's."""
    headers = [("Impersonate-User", str(who["as"]))] if who.get("as") else []
    if who.get("as-uid"):
        headers.append(("Impersonate-Uid", str(who["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in who.get("as-groups") or ()]
    for name, values in (who.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{quote(name, safe='')}", str(value)) for value in values]
    if headers and not who.get("as"):
        raise KubeconfigError(f"user {user!r}: as-groups, as-uid and as-user-extra need an `as` beside them")
    return tuple(headers)


def _content(entry: Document, directory: Path, field: str) -> bytes | None:
    """What an entry holds inline under `<field>-data`, which wins, or names by a file under `<field>`."""
    try:
        if data := entry.get(f"{field}-data"):
            return base64.b64decode(data, validate=True)
        return read_given(directory / entry[field]) if entry.get(field) else None
    except (binascii.Error, TypeError) as error:
        raise KubeconfigError(f"{field}-data is not base64") from error
    except OSError as error:
        raise KubeconfigError(f"{field}: {plainly(error)}") from error


def _named(
    sections: dict[str, dict[str, tuple[Document, Path]]], section: str, name: str, shown: str
) -> tuple[Document, Path]:
    if name not in sections[section]:
        unknown = NoContext if section == "contexts" else KubeconfigError
        raise unknown(f"{shown}: there is no {section[:-1]} named {name!r}")
    return sections[section][name]


def read_document(path: Path) -> Document:
    """The file as it is; empty when there is none."""
    try:
        return document_of(path, read_given(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KubeconfigError(f"the kubeconfig {path} {misread(error)}") from error


def contexts(path: Path) -> list[str]:
    """The names of the contexts in a file; none where there is no file."""
    return [str(entry.get("name", "")) for entry in read_document(path).get("contexts") or []]


def document_of(path: Path, content: bytes) -> Document:
    """What the content of a kubeconfig says. Raises KubeconfigError."""
    try:
        return parsed(content)
    except yaml.YAMLError as error:
        raise KubeconfigError(f"the kubeconfig {path} {misread(error)}") from error
    except RecursionError:
        raise KubeconfigError(f"the kubeconfig {path} is not understood: it is nested too deeply") from None
    except ValueError as error:
        raise KubeconfigError(f"{path} is not a kubeconfig") from error


def parsed(content: bytes) -> Document:
    """Raises YAMLError, RecursionError, and ValueError for YAML that is no kubeconfig."""
    document = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if document is None:
        return {}
    sections = [document.get(section) or [] for section in SECTIONS] if isinstance(document, dict) else [None]
    if not all(isinstance(entries, list) and all(isinstance(e, dict) for e in entries) for entries in sections):
        raise ValueError("not a kubeconfig")
    return document  # type: ignore[no-any-return]  # YAML; checked as far as it is used
