"""`podfit up`: a cluster in this process, or, detached, in one of its own."""

import asyncio
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podfit.cli import exits, logs, render
from podfit.cli.flags import Given, takes
from podfit.core.options import Option
from podfit.net.event_loop import run
from podfit.process.detach import start_detached
from podfit.process.options import UpOptions
from podfit.process.run_cluster import run_cluster


class DetachOptions(msgspec.Struct, frozen=True, kw_only=True):
    detach: Annotated[bool, Option("Return once the cluster is ready and leave it running.", negative=False)] = False


@takes(UpOptions, DetachOptions, logs.LogOptions)
def up(given: Given) -> int:
    """Start API server, scheduler and node in one process. Ctrl-C stops everything, containers too.

    SIGTERM and SIGKILL leave the containers running; the next `up` on the same data directory takes them over.
    """
    options = replace(given.options(UpOptions), programs_end=True, passing_seconds=0.25)
    options.check()
    if options.node_groups is not None:
        from podfit.process.autoscaler.options import groups_of  # only where there are any

        groups_of(options.node_groups)
    logs.configure(given.options(logs.LogOptions))
    if given.options(DetachOptions).detach:
        start_detached(options.data, given.arguments(data=options.data.root, detach=None), announce=render.line)
        return exits.DONE

    try:
        run(run_cluster(options, announce=render.line))
    except asyncio.CancelledError:
        render.error("interrupted before the cluster was ready")
        return exits.INTERRUPTED
    return exits.DONE
