"""How people and their tools reach the cluster: an administrator's certificate in a kubeconfig.

The data directory always holds a complete one, for podfit's own commands. What the user's tools see is either the file
that was asked for, or the context `podfit` in the user's own file, whose current context stays what it is.
"""

import os
from pathlib import Path

import msgspec

from podfit.client import kubeconfig_edit
from podfit.client.kubeconfig import Access, default_paths
from podfit.cluster.layout import DataDir
from podfit.net.authority import Authority
from podfit.net.files import write_atomic, write_whole

CONTEXT = "podfit"


class Published(msgspec.Struct, frozen=True):
    """Where the access was written, and how to tell kubectl to use it."""

    path: Path
    context: str  # empty: the file has only this one
    kubectl: str


def admin_access(authority: Authority, server: str) -> Access:
    pair = authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    return Access(server=server, authorities=authority.certificate, certificate=pair.certificate, key=pair.key)


def keep(data: DataDir, access: Access) -> None:
    """For podfit's own commands."""
    write_whole(data.kubeconfig, kubeconfig_edit.standalone(CONTEXT, access))


def publish(access: Access, wanted: Path | None) -> Published:
    """For the user's; `wanted` is the standalone file of `--kubeconfig`. The user's own file takes a library to load
    that the cluster has no other use for.
    """
    if wanted is not None:
        write_atomic(wanted, kubeconfig_edit.standalone(CONTEXT, access))
        return Published(wanted, "", f"kubectl --kubeconfig {wanted}")
    path = default_paths(os.environ)[0]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kubeconfig_edit.merge(path, CONTEXT, access)
    return Published(path, CONTEXT, f"kubectl --context {CONTEXT}")
