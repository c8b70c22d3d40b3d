"""`podfit kubelet`: a node of an API server somewhere else."""

import asyncio

from podfit.cli import exits, logs, render
from podfit.cli.flags import Log, LogFlags
from podfit.cli.kubelet_flags import Kubelet, KubeletFlags
from podfit.cli.node_flags import Node, NodeFlags
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.foreground import run_until_stopped
from podfit.process.node import kubelet_file
from podfit.process.node.kubelet import KubeletProcess


def kubelet(*, flags: Kubelet = None, node_flags: Node = None, log: Log = None) -> int:
    """Run this machine as a node, until SIGTERM, which leaves its containers running. Ctrl-C ends them too."""
    flags = flags or KubeletFlags()
    said = kubelet_file.read(flags.config) if flags.config else kubelet_file.KubeletFile()
    options = flags.options(said, (node_flags or NodeFlags()).over(said.options()))
    options.check()
    logs.configure(log or LogFlags())
    try:
        start = KubeletProcess.start(options, announce=render.line, clock=SystemClock())
        event_loop.run(run_until_stopped(start, terminated=KubeletProcess.terminated))
    except asyncio.CancelledError:
        render.error("interrupted before the node was ready")
        return exits.INTERRUPTED
    render.line("stopped")
    return exits.DONE
