"""`podfit vpa recommender`: it writes sizes into the status of VPAs, beside any cluster."""

from collections.abc import Iterator

from podfit.cli.flags import Given, takes
from podfit.cli.logs import LogOptions
from podfit.cli.processes.control import run_process
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.process.vpa.recommender import RecommenderOptions, recommender_loops
from podfit.vpa.progress import Passes


@takes(RecommenderOptions, LogOptions)
def recommender(given: Given) -> int:
    """Run the recommender of the Vertical Pod Autoscaler: it writes sizes into the status of VPAs (any cluster)."""
    options, clock = given.options(RecommenderOptions), SystemClock()
    settings = options.recommender()
    passes = Passes(clock, settings.interval)

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return recommender_loops(client_of, options, clock, metrics, passes)

    role = Role(name="vpa recommender", lease=options.lease, healthy=lambda: passes.healthy)
    return run_process(role, options, loops, given)
