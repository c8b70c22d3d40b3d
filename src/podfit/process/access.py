"""Administrator credentials: a client certificate, written into a kubeconfig.

The data directory always holds a complete one, for podfit's own commands. What the user's tools see is the context
`podfit`, in the file of `--kubeconfig`, where it becomes the current one as with kind, or else in the user's own, where
it becomes that only if the files name none. Whatever else is in the file stays.
"""

import contextlib
import os
from pathlib import Path

import msgspec

from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, KubeconfigError, current_context, default_paths, load
from podfit.net.authority import Authority
from podfit.net.files import write_atomic, write_whole
from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import running
from podfit.process.errors import MachineError, reason

CONTEXT = "podfit"


class Published(msgspec.Struct, frozen=True):
    """Where the access was written, and how to tell kubectl to use it."""

    path: Path
    context: str = ""  # empty: not yet written
    kubectl: str = ""
    current: bool = True
    """Whether kubectl uses it without being told."""
    before: str = ""
    """The context that was current."""
    alone: bool = True
    """Whether the file has no other context."""

    def __str__(self) -> str:
        if self.alone:
            return str(self.path)
        now = f"the current context, before it {self.before}" if self.before else "the current context"
        return f'context "{self.context}" in {self.path} ({now if self.current else "current context unchanged"})'


def admin_access(authority: Authority, server: str) -> Access:
    pair = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    return Access(server=server, authorities=authority.certificate, certificate=pair.certificate, key=pair.key)


def keep(data: DataDir, access: Access) -> None:
    """For podfit's own commands."""
    write_whole(data.kubeconfig, kubeconfig_edit.standalone(CONTEXT, access))


def write_own(path: Path, name: str, access: Access) -> None:
    """A file of the data directory, for others to use. One that says so already is left alone: a full disk is no reason
    not to start. Raises MachineError.
    """
    content = kubeconfig_edit.standalone(name, access)
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    try:
        write_atomic(path, content)
    except OSError as error:
        raise MachineError(f"{path} cannot be written ({reason(error)})") from error


def publish(access: Access, data: DataDir, wanted: Path | None) -> Published:
    """For the user's tools; `wanted` is the file of `--kubeconfig`. Raises KubeconfigError."""
    path, owner = wanted or default_paths(os.environ)[0], _owner(data)
    before = current_context(os.environ, wanted)
    merged = kubeconfig_edit.merge(
        path, CONTEXT, access, owner=owner, switch=wanted is not None or before == "", ended=_ended
    )
    name = merged.name
    current = wanted is not None or before in ("", name)
    command = "kubectl" if wanted is None else f"kubectl --kubeconfig {wanted}"
    return Published(
        path,
        name,
        command if current else f"{command} --context {name}",
        current=current,
        before=merged.before,
        alone=wanted is not None and merged.alone,
    )


def take_back(path: Path, data: DataDir) -> None:
    """Take this cluster's context out of the file again. Raises KubeconfigError."""
    try:
        authorities = load([data.kubeconfig]).authorities
    except KubeconfigError:
        authorities = None
    kubeconfig_edit.remove(path, CONTEXT, owner=_owner(data), authorities=authorities)


def user_file(wanted: Path | None) -> Path:
    return (wanted or default_paths(os.environ)[0]).absolute()


_CLUSTER = "cluster "


def _owner(data: DataDir) -> str:
    return f"{_CLUSTER}{data.root.resolve()}"


def _ended(owner: str) -> bool:
    """Whether the cluster that wrote an entry runs no more, so that another may have its name."""
    if not owner.startswith(_CLUSTER):
        return False
    try:
        return running(DataDir(Path(owner.removeprefix(_CLUSTER)))) is None
    except MachineError:
        return False
