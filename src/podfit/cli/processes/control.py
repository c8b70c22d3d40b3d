"""`podfit controllers` and `podfit scheduler`: the two components that watch and act, each in a process of its own."""

from collections.abc import Iterator

from podfit.cli import exits, logs, render
from podfit.cli.flags import Given, takes
from podfit.net import event_loop
from podfit.net.authority import Authority
from podfit.net.certificates import Damaged
from podfit.net.metrics import Metrics
from podfit.net.served_names import names_served
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from podfit.process.control.control_process import ClientOf, ControlProcess, Loops, Role, reached
from podfit.process.control.controllers import Loop, controller_loops, rollouts_in_place
from podfit.process.control.options import ControllersProcessOptions, ControlOptions, SchedulerProcessOptions
from podfit.process.control.scheduler import scheduler_loops
from podfit.process.errors import MachineError
from podfit.process.foreground import run_until_stopped
from podfit.process.options import SchedulerOptions

LEASE = "podfit-in-place-rollout"


@takes(ControllersProcessOptions, logs.LogOptions)
def controllers(given: Given) -> int:
    """Run the controllers: namespaces, quotas, garbage, service accounts, certificates. Signs with DATA/pki/ca.key."""
    options, clock = given.options(ControllersProcessOptions), SystemClock()
    if options.controllers.foreign:
        return _rollouts_in_place(options, given)
    try:
        authority = Authority.load(options.data.pki, clock=clock, make=False)
    except Damaged as damage:
        raise MachineError(
            f"the cluster's authority cannot be used: {damage}", fix=("name the API server's directory with --data",)
        ) from damage
    role = Role(
        name="controllers", lease="kube-controller-manager", kubeconfig=options.data.component_kubeconfig("controllers")
    )

    async def served() -> frozenset[str]:
        access = reached(options.connection.kubeconfig or role.kubeconfig)
        tls = client_context(authorities=access.authorities, verify=access.verify)
        asked = await names_served(access.server, tls, server_name=access.reach.server_name)
        return authority.served() | asked

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return controller_loops(
            client_of, options.controllers, options.gates, clock, authority=authority, served=served, metrics=metrics
        )

    return run_process(role, options, loops, given)


def _rollouts_in_place(options: ControllersProcessOptions, given: Given) -> int:
    """Beside any cluster's controllers: it signs nothing, and holds a Lease of its own."""
    role = Role(name="controllers", lease=LEASE, kubeconfig=None)
    return run_process(role, options, lambda client_of, _: rollouts_in_place(client_of, SystemClock()), given)


@takes(SchedulerProcessOptions, logs.LogOptions)
def scheduler(given: Given) -> int:
    """Run the scheduler: it finds a node for each pod that has none."""
    options, clock = given.options(SchedulerProcessOptions), SystemClock()
    role = Role(name="scheduler", lease="kube-scheduler", kubeconfig=options.data.component_kubeconfig("scheduler"))

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return scheduler_loops(client_of, SchedulerOptions(profiles=options.profiles), options.gates, clock, metrics)

    return run_process(role, options, loops, given)


def run_process(role: Role, options: ControlOptions, loops: Loops, given: Given) -> int:
    """Until somebody stops it."""
    logs.configure(given.options(logs.LogOptions))
    start = ControlProcess.start(role, options, loops, announce=render.line, clock=SystemClock())
    event_loop.run(run_until_stopped(start))
    render.line("stopped")
    return exits.DONE
