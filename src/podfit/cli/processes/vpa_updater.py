"""`podfit vpa updater`: it changes pods that run to what is recommended, beside any cluster."""

from collections.abc import Iterator

from podfit.cli.flags import Given, takes
from podfit.cli.logs import LogOptions
from podfit.cli.processes.control import run_process
from podfit.decide.autoscaling.published import LEASE
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.process.vpa.loops import updater_loops
from podfit.process.vpa.options import UpdaterOptions
from podfit.vpa.progress import Passes


@takes(UpdaterOptions, LogOptions)
def updater(given: Given) -> int:
    """Run the updater of the Vertical Pod Autoscaler: it resizes pods in place, or evicts them (any cluster)."""
    options, clock = given.options(UpdaterOptions), SystemClock()
    settings = options.updater()
    passes = Passes(clock, settings.interval)

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return updater_loops(client_of, settings, clock, metrics, passes)

    told = settings.published().annotation()
    role = Role(name="vpa updater", lease=LEASE, healthy=lambda: passes.healthy, told=told)
    return run_process(role, options, loops, given)
