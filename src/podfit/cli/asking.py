"""How a question reaches a cluster: the options that kubectl has, and the reading of one snapshot."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from cyclopts import Parameter

from podfit.answers.snapshot import Reader, Snapshot
from podfit.answers.target import Target
from podfit.client.kubeconfig import default_paths, load
from podfit.client.rest import Client

T = TypeVar("T")

Namespace: TypeAlias = Annotated[str, Parameter(name=["--namespace", "-n"], help="Namespace; else the context's.")]
ContextName: TypeAlias = Annotated[str, Parameter(help="Context of the kubeconfig; else the current one.")]
Kubeconfig: TypeAlias = Annotated[Path | None, Parameter(help="Kubeconfig file; else KUBECONFIG or ~/.kube/config.")]

AllNamespaces: TypeAlias = Annotated[
    bool, Parameter(name=["--all-namespaces", "-A"], negative="", help="In all namespaces.")]
Selector: TypeAlias = Annotated[str, Parameter(name=["--selector", "-l"], help="Pods with these labels: app=web,...")]


def snapshot(target: Target, *, namespace: str, context: str, kubeconfig: Path | None) -> Snapshot:
    """Read what the question is about. Raises KubeconfigError, ApiError, ConnectionError."""

    async def read(client: Client, where: str) -> Snapshot:
        return await Reader(client, where).read(target)

    return asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)


def asked(
    question: Callable[[Client, str], Awaitable[T]], *, namespace: str, context: str, kubeconfig: Path | None
) -> T:
    """The answer to a question, which is given a client and the namespace that is meant."""
    access = load([kubeconfig] if kubeconfig else default_paths(os.environ), context=context)

    async def ask() -> T:
        client = access.client(user_agent="podfit")
        try:
            return await question(client, namespace or access.namespace)
        finally:
            await client.close()

    return asyncio.run(ask())
