"""`podfit kubelet`: a node of an API server somewhere else."""

import asyncio

from podfit.cli import exits, logs, render
from podfit.cli.flags import Given, takes
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.foreground import run_until_stopped
from podfit.process.node.kubelet import KubeletProcess
from podfit.process.node.options import KubeletProcessOptions


@takes(KubeletProcessOptions, logs.LogOptions)
def kubelet(given: Given) -> int:
    """Run this machine as a node, until SIGTERM, which leaves its containers running. Ctrl-C ends them too."""
    options = given.options(KubeletProcessOptions)
    options.check()
    logs.configure(given.options(logs.LogOptions))
    try:
        start = KubeletProcess.start(options, announce=render.line, clock=SystemClock())
        event_loop.run(run_until_stopped(start, terminated=KubeletProcess.terminated))
    except asyncio.CancelledError:
        render.error("interrupted before the node was ready")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE
