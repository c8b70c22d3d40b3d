"""`podfit apiserver`: the API server alone, on its own file or on etcd."""

import asyncio

from podfit.cli import exits, logs, render
from podfit.cli.flags import ApiServer, ApiServerFlags, Log, LogFlags
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.control.apiserver import ApiServerProcess
from podfit.process.foreground import run_until_stopped


def apiserver(*, flags: ApiServer = None, log: Log = None) -> int:
    """Serve the API and nothing else, until SIGINT or SIGTERM. Several may share one etcd (docs/store.md)."""
    options = (flags or ApiServerFlags()).options()
    options.check()
    logs.configure(log or LogFlags())
    try:
        event_loop.run(run_until_stopped(ApiServerProcess.start(options, announce=render.line, clock=SystemClock())))
    except asyncio.CancelledError:
        render.error("interrupted before the API served")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE
