"""`podfit metrics-server`: metrics.k8s.io for any cluster."""

from podfit.cli import exits, logs, render
from podfit.cli.flags import Given, takes
from podfit.net import event_loop
from podfit.net.system import SystemClock
from podfit.process.control.metrics_process import MetricsServerOptions, MetricsServerProcess
from podfit.process.foreground import run_until_stopped


@takes(MetricsServerOptions, logs.LogOptions)
def metrics_server(given: Given) -> int:
    """Serve metrics.k8s.io, what pods and nodes use, of any cluster, from its kubelets' /metrics/resource."""
    options = given.options(MetricsServerOptions)
    logs.configure(given.options(logs.LogOptions))
    event_loop.run(run_until_stopped(MetricsServerProcess.start(options, announce=render.line, clock=SystemClock())))
    render.line("stopped")
    return exits.DONE
