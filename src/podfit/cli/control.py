"""`podfit controllers` and `podfit scheduler`: the two parts that watch and act, each in a process of its own."""

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Parameter

from podfit.cli import exits, logs, render, serving
from podfit.cli.logs import LogFormat
from podfit.process.layout import DataDir, default_data_dir

if TYPE_CHECKING:
    from podfit.net.metrics import Metrics
    from podfit.process.control_process import ClientOf, ControlOptions, Loops

Data: TypeAlias = Annotated[
    Path | None, Parameter(help=f"Data directory of the API server. [default: {default_data_dir()}]")
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    Parameter(
        help="How it reaches the API server. [default: the one that podfit apiserver writes into its data directory]"
    ),
]
LeaderElect: TypeAlias = Annotated[bool, Parameter(help="Work only while the Lease in kube-system is held.")]
BindAddress: TypeAlias = Annotated[str, Parameter(help="Where its health and metrics are served.")]


def controllers(
    *,
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    leader_elect: LeaderElect = True,
    bind_address: BindAddress = "127.0.0.1",
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 10257,
    feature_gates: serving.Gates = "",
    log_format: serving.LogForm = LogFormat.TEXT,
    verbose: serving.Verbose = 0,
) -> int:
    """Run the controllers: namespaces, quotas, garbage, service accounts, certificates. Signs with DATA/pki/ca.key."""
    from podfit.core.features import FeatureGates
    from podfit.net.authority import Authority
    from podfit.net.certificates import Damaged
    from podfit.net.system import SystemClock
    from podfit.process.control_process import ControlOptions
    from podfit.process.errors import MachineError
    from podfit.process.loops import controller_loops

    directory, clock, gates = DataDir.at(data), SystemClock(), FeatureGates.parse(feature_gates)
    try:
        authority = Authority.load(directory.pki, clock=clock, make=False)
    except Damaged as damage:
        raise MachineError(
            f"the cluster's authority cannot be used: {damage}", fix=("name the API server's directory with --data",)
        ) from damage

    def loops(client_of: "ClientOf", _: "Metrics") -> Iterator[Coroutine[Any, Any, None]]:
        return controller_loops(client_of, gates, clock, authority=authority)

    options = ControlOptions(
        name="controllers",
        kubeconfig=kubeconfig or directory.component_kubeconfig("controllers"),
        lease="kube-controller-manager",
        port=secure_port,
        address=bind_address,
        elect=leader_elect,
    )
    return _run(options, loops, log_format, verbose)


def scheduler(
    *,
    data: Data = None,
    kubeconfig: Kubeconfig = None,
    leader_elect: LeaderElect = True,
    bind_address: BindAddress = "127.0.0.1",
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 10259,
    feature_gates: serving.Gates = "",
    log_format: serving.LogForm = LogFormat.TEXT,
    verbose: serving.Verbose = 0,
) -> int:
    """Run the scheduler: it finds a node for each pod that has none."""
    from podfit.core.features import FeatureGates
    from podfit.net.system import SystemClock
    from podfit.net.wire import Identity
    from podfit.process.control_process import ControlOptions
    from podfit.process.identities import SCHEDULER
    from podfit.process.loops import scheduler_loops

    clock, gates = SystemClock(), FeatureGates.parse(feature_gates)

    def loops(client_of: "ClientOf", metrics: "Metrics") -> Iterator[Coroutine[Any, Any, None]]:
        return scheduler_loops(client_of(Identity(SCHEDULER)), gates, clock, metrics)

    options = ControlOptions(
        name="scheduler",
        kubeconfig=kubeconfig or DataDir.at(data).component_kubeconfig("scheduler"),
        lease="kube-scheduler",
        port=secure_port,
        address=bind_address,
        elect=leader_elect,
    )
    return _run(options, loops, log_format, verbose)


def _run(options: "ControlOptions", loops: "Loops", log_format: LogFormat, verbose: int) -> int:
    from podfit.net import event_loop
    from podfit.net.system import SystemClock
    from podfit.process.control_process import run_control

    logs.configure(log_format, verbose)
    event_loop.run(run_control(options, loops, announce=render.line, clock=SystemClock()))
    render.line("stopped")
    return exits.DONE
