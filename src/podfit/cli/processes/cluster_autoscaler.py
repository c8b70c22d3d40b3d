"""`podfit cluster-autoscaler`: nodes of groups come and go with what pods ask for, beside any cluster."""

from collections.abc import Iterator

from podfit.cli.flags import Given, takes
from podfit.cli.logs import LogOptions
from podfit.cli.processes.control import run_process
from podfit.client.places import told
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.autoscaler.loops import autoscaler_loops
from podfit.process.autoscaler.options import LEASE, AutoscalerOptions
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.vpa.progress import Passes

INACTIVE = 120.0
"""Seconds between two looks, of which it may miss some before it is not well: 10 minutes, as upstream's."""


@takes(AutoscalerOptions, LogOptions)
def cluster_autoscaler(given: Given) -> int:
    """Run the cluster autoscaler: it adds nodes that pods, and resizes, wait for, and removes those that nobody needs.

    Which nodes there can be is said by --node-groups, or by a program that speaks upstream's external gRPC protocol.
    """
    options, clock = given.options(AutoscalerOptions), SystemClock()
    provider, settings = options.provider(), options.settings
    passes = Passes(clock, max(settings.interval, INACTIVE))

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return autoscaler_loops(client_of, provider, settings, clock, metrics, passes)

    said = told(makes_places=settings.scale_up.waiting_resizes)
    role = Role(name="cluster-autoscaler", lease=LEASE, healthy=lambda: passes.healthy, told=said)
    return run_process(role, options, loops, given)
