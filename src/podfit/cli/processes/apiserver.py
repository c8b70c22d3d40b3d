"""`podfit apiserver`: the API server alone, on its own file or on etcd."""

import asyncio

from podfit.cli import exits, logs, render
from podfit.cli.flags import Given, takes
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.control.apiserver import ApiServerProcess
from podfit.process.foreground import run_until_stopped
from podfit.process.options import ApiServerOptions


@takes(ApiServerOptions, logs.LogOptions)
def apiserver(given: Given) -> int:
    """Serve the API and nothing else, until SIGINT or SIGTERM. Several may share one etcd (docs/store.md)."""
    options = given.options(ApiServerOptions)
    options.check()
    logs.configure(given.options(logs.LogOptions))
    try:
        event_loop.run(run_until_stopped(ApiServerProcess.start(options, announce=render.line, clock=SystemClock())))
    except asyncio.CancelledError:
        render.error("interrupted before the API served")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE
