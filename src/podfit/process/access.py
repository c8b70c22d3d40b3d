"""Administrator credentials: a client certificate, written into a kubeconfig.

The data directory always holds a complete one, for podfit's own commands. What the user's tools see is either the file
that was asked for, or the context `podfit` in the user's own file. It becomes the current context only where the user's
files name none.
"""

import contextlib
import os
from pathlib import Path

import msgspec

from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, current_context, default_paths
from podfit.net.authority import Authority
from podfit.net.files import write_atomic, write_whole
from podfit.process.data_dir import DataDir
from podfit.process.errors import MachineError, reason

CONTEXT = "podfit"


class Published(msgspec.Struct, frozen=True):
    """Where the access was written, and how to tell kubectl to use it."""

    path: Path
    context: str  # empty: the file has only this one
    kubectl: str
    current: bool = True
    """Whether kubectl uses it without being told."""

    def __str__(self) -> str:
        if not self.context:
            return str(self.path)
        current = "the current context" if self.current else "current context unchanged"
        return f'context "{self.context}" in {self.path} ({current})'


def admin_access(authority: Authority, server: str) -> Access:
    pair = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    return Access(server=server, authorities=authority.certificate, certificate=pair.certificate, key=pair.key)


def keep(data: DataDir, access: Access) -> None:
    """For podfit's own commands."""
    write_whole(data.kubeconfig, kubeconfig_edit.standalone(CONTEXT, access))


def write_given(path: Path, content: bytes) -> None:
    """The file of `--kubeconfig`. One that says so already is left alone: a full disk is no reason not to start."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    try:
        write_atomic(path, content)
    except OSError as error:
        raise MachineError(f"--kubeconfig: {path} cannot be written ({reason(error)})") from error


def publish(access: Access, wanted: Path | None) -> Published:
    """For the user's; `wanted` is the standalone file of `--kubeconfig`. The user's own file takes a library to load
    that the cluster has no other use for.
    """
    if wanted is not None:
        write_given(wanted, kubeconfig_edit.standalone(CONTEXT, access))
        return Published(wanted, "", f"kubectl --kubeconfig {wanted}")
    path = default_paths(os.environ)[0]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = current_context(os.environ)
    kubeconfig_edit.merge(path, CONTEXT, access, current=not before)
    current = before in ("", CONTEXT)
    return Published(path, CONTEXT, "kubectl" if current else f"kubectl --context {CONTEXT}", current=current)
