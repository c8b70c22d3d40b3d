"""Connection options of the verbs that read a cluster (kubectl's), and the reading of a snapshot."""

import asyncio
import math
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from cyclopts import Parameter

from podfit.answers.facts.commands import Commands
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target, TargetError, parse_target
from podfit.answers.plan.amounts import OptionError
from podfit.cli import render
from podfit.client.kubeconfig import Access, current_context, default_paths, find
from podfit.client.rest import Client
from podfit.core.errors import ApiError, not_found
from podfit.net.system import SystemClock

T = TypeVar("T")
SHORTEST = 0.2
"""Seconds between two readings."""


class NoAnswer(ConnectionError):
    """The server that was asked, and what came instead of an answer."""

    def __init__(self, server: str, text: str) -> None:
        super().__init__(text)
        self.server = server


Name: TypeAlias = Annotated[str, Parameter(help="As in kubectl: `pod web` is pod/web.")]
Namespace: TypeAlias = Annotated[
    str, Parameter(name=["--namespace", "-n"], help="Namespace; without it the one of the context.")
]
ContextName: TypeAlias = Annotated[str, Parameter(help="Context of the kubeconfig; without it the current one.")]
Kubeconfig: TypeAlias = Annotated[
    Path | None, Parameter(help="Kubeconfig file; without it KUBECONFIG or ~/.kube/config.")
]

AllNamespaces: TypeAlias = Annotated[
    bool, Parameter(name=["--all-namespaces", "-A"], negative="", help="In all namespaces.")
]
More: TypeAlias = Annotated[str, Parameter(help="More targets: deployment/api, or names behind a kind.")]
Selector: TypeAlias = Annotated[str, Parameter(name=["--selector", "-l"], help="Pods with these labels: app=web,...")]


_COMMANDS: ContextVar[Commands] = ContextVar("commands")
"""Of the question that was asked last: errors are told where the options of the verb are no longer known."""


def commands() -> Commands:
    """How to advise a command that reaches the cluster that was asked."""
    return _COMMANDS.get(Commands())


def snapshot(target: Target, *, namespace: str, context: str, kubeconfig: Path | None) -> Snapshot:
    """Read what the question is about. Raises KubeconfigError, ApiError, ConnectionError."""

    async def read(client: Client, where: str) -> Snapshot:
        return await Reader(client, where).read(target)

    return asked(read, namespace=namespace, context=context, kubeconfig=kubeconfig)


def asked(
    question: Callable[[Client, str], Awaitable[T]], *, namespace: str, context: str, kubeconfig: Path | None
) -> T:
    """The answer to a question, which is given a client and the namespace that is meant."""
    _COMMANDS.set(Commands(namespace=namespace, context=context, kubeconfig=str(kubeconfig or "")))
    access = find(os.environ, kubeconfig, context=context)
    _COMMANDS.set(_needed(access, namespace=namespace, context=context, kubeconfig=kubeconfig))

    async def ask() -> T:
        client, where = access.client(), namespace or access.namespace
        try:
            return await question(client, where)
        except ApiError as error:
            raise await _nearer(client, where, error) from error
        except msgspec.DecodeError as error:
            raise NoAnswer(access.server, f"what it says is not what a Kubernetes API says: {error}") from error
        except ConnectionError as error:
            raise NoAnswer(access.server, str(error)) from error
        finally:
            await client.close()

    return asyncio.run(ask())


def repeated(once: Callable[[], int], interval: float, *, apart: bool) -> int:
    """A question again and again, until Ctrl-C or nobody reads any more; with a line between where `apart`. Raises
    OptionError.
    """
    if not SHORTEST <= interval < math.inf:
        raise OptionError(f'invalid value "{interval:g}" for --interval: must be at least {SHORTEST:g} seconds')
    clock = SystemClock()
    while True:
        code = once()
        if render.reader_left():
            return code
        asyncio.run(clock.sleep(interval))
        if apart:
            render.line()


def _needed(access: Access, *, namespace: str, context: str, kubeconfig: Path | None) -> Commands:
    """Without the options that say what would be used anyway."""
    usual = kubeconfig is not None and [kubeconfig.absolute()] == [
        path.absolute() for path in default_paths(os.environ)
    ]
    known = context and context == current_context(os.environ, kubeconfig)
    return Commands(
        namespace="" if namespace == access.namespace else namespace,
        context="" if known else context,
        kubeconfig="" if usual else str(kubeconfig or ""),
    )


async def _nearer(client: Client, namespace: str, error: ApiError) -> ApiError:
    """Nothing is found in a namespace that there is not: then that is the cause."""
    if error.code != 404 or not namespace:
        return error
    return await missing_namespace(client, namespace) or error


def narrowed(target: str, name: str, *, everywhere: bool, selector: str) -> Target | None:
    """The pod or workload that a question is about; None for all that there are. Raises TargetError."""
    if target and (everywhere or selector):
        raise TargetError(f"{'-A' if everywhere else '-l'} cannot be combined with {target}")
    return parse_target(target, POD, *WORKLOADS, name=name) if target else None


async def missing_namespace(client: Client, namespace: str) -> ApiError | None:
    """The error that says so; None when it is there, or when that may not be known."""
    try:
        await client.request("GET", f"/api/v1/namespaces/{namespace}")
    except ApiError as error:
        return not_found("namespaces", namespace) if error.code == 404 and error.details.get("name") else None
    except ConnectionError:
        return None
    return None
