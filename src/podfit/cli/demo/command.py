"""`podfit demo`: a cluster, the stories, and nothing left behind."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.cli import exits, logs, render
from podfit.cli.demo import actor as actors
from podfit.cli.demo.actor import NAMESPACE, Refused
from podfit.cli.demo.observer import NotSeen, Observer
from podfit.cli.demo.stage import DemoFailed, Stage
from podfit.cli.demo.stories import all_stories
from podfit.client.rest import Client
from podfit.decide.node.options import KubeletOptions
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.foreground import stopping_on_signals
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.up import Cluster

KUBECONFIG = "demo.kubeconfig"


def demo(
    *,
    data: Annotated[
        Path | None, Parameter(help=f"Data directory of the demo's own cluster. [default: {default_data_dir()}-demo]")
    ] = None,
    verbose: Annotated[int, Parameter(name=["--verbose", "-v"], count=True, help="Show what the cluster logs.")] = 0,
) -> int:
    """Start a cluster on this machine, resize real containers in place, and stop it again.

    Exit code 1 when a check fails. Needs root and containerd.
    """
    logs.configure(logs.LogOptions(verbose=verbose))
    directory = DataDir.at(data or default_data_dir().with_name(default_data_dir().name + "-demo"))
    fuller_than_it_likes = KubeletOptions(eviction_hard="")  # a disk that is nearly full is no reason to tell nothing
    options = UpOptions(
        api=ApiServerOptions(data=directory, port=0, kubeconfig=directory.root / KUBECONFIG),
        node=NodeKind.REAL,
        kubelet=fuller_than_it_likes,
    )
    try:
        asyncio.run(_demo(options))
    except (DemoFailed, NotSeen, Refused) as failure:
        render.error(f"the demo failed: {failure}")
        return exits.REFUSED
    except asyncio.CancelledError:
        render.error("interrupted; everything was stopped and removed")
        return exits.INTERRUPTED
    return exits.DONE


@contextlib.asynccontextmanager
async def _cluster(options: UpOptions) -> AsyncIterator[Cluster]:
    cluster = await Cluster.start(options, announce=render.line)
    try:
        yield cluster
    finally:
        await cluster.stop(pods=True)


async def _clear(client: Client) -> None:
    """Remove the pods of a demo that was cut off before it could."""
    for pod in (await client.list(Pod, NAMESPACE)).items:
        await client.delete(Pod, pod.metadata.name, NAMESPACE, grace=0)


async def _demo(options: UpOptions) -> None:
    clock = SystemClock()
    async with stopping_on_signals(), _cluster(options) as cluster:
        client = cluster.admin_client()
        actor = await actors.choose(client, options.data.kubeconfig)
        render.fact("acting", f"through {actor.name}")
        node = cluster.nodes[0]
        observer = Observer(client, node.cgroups, options.data.kubelet(node.name), clock)
        supervisor = Supervisor("demo")
        supervisor.run(observer.run(), name="observer")
        try:
            await observer.synced()
            await _clear(client)
            allocatable = (await client.get(Node, node.name)).status.allocatable
            await all_stories(Stage(actor, observer, clock), allocatable)
        finally:
            await supervisor.stop()
            await client.close()
        render.block("\nall checks passed; stopping the cluster")
    render.line(f"next: sudo {sys.argv[0]} up")
