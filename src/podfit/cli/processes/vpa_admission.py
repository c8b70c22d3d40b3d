"""`podfit vpa admission-controller`: it gives new pods what is recommended, beside any cluster."""

from collections.abc import Iterator

from podfit.cli.flags import Given, takes
from podfit.cli.logs import LogOptions
from podfit.cli.processes.control import run_process
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.process.vpa.loops import admission_loops
from podfit.process.vpa.options import AdmissionOptions


@takes(AdmissionOptions, LogOptions)
def admission_controller(given: Given) -> int:
    """Run the admission controller of the Vertical Pod Autoscaler: it sizes pods that are made (any cluster)."""
    options, clock = given.options(AdmissionOptions), SystemClock()
    webhook, certificates = options.webhook(), options.certificates(clock)

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return admission_loops(client_of, options.settings, webhook, certificates, clock, metrics)

    return run_process(Role(name="vpa admission-controller"), options, loops, given)
