"""`podfit up`: a cluster in this process, or, detached, in one of its own."""

import asyncio
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, logs, render
from podfit.cli.flags import (
    ApiServer,
    ApiServerFlags,
    Controllers,
    ControllersFlags,
    Log,
    LogFlags,
    Nodes,
    NodesFlags,
    arguments,
)
from podfit.cli.node_flags import Node, NodeFlags
from podfit.net.event_loop import run
from podfit.process.detach import start_detached
from podfit.process.options import KubeletOptions, UpOptions
from podfit.process.run_cluster import run_cluster


def up(
    *,
    api: ApiServer = None,
    nodes: Nodes = None,
    controllers: Controllers = None,
    node: Node = None,
    detach: Annotated[
        bool, Parameter(help="Return once the cluster is ready and leave it running.", negative="")
    ] = False,
    log: Log = None,
) -> int:
    """Start API server, scheduler and node in one process. Ctrl-C stops everything, containers too.

    SIGTERM and SIGKILL leave the containers running; the next `up` on the same data directory takes them over.
    """
    api, nodes, controllers = api or ApiServerFlags(), nodes or NodesFlags(), controllers or ControllersFlags()
    node, log = node or NodeFlags(), log or LogFlags()
    options = UpOptions(
        api=api.options(),
        controllers=controllers.options(),
        kubelet=node.over(KubeletOptions()),
        node=nodes.node,
        nodes=nodes.nodes,
        programs_end=True,
        passing_seconds=0.25,
        metrics_server=nodes.metrics_server,
        runtime_endpoint=nodes.container_runtime_endpoint.removeprefix("unix://"),
        vpa=nodes.vpa,
    )
    options.check()
    logs.configure(log)
    if detach:
        same = arguments(replace(api, data=options.data.root), nodes, controllers, node, log)
        start_detached(options.data, same, announce=render.line)
        return exits.DONE

    try:
        run(run_cluster(options, announce=render.line))
    except asyncio.CancelledError:
        render.error("interrupted before the cluster was ready")
        return exits.INTERRUPTED
    return exits.DONE
