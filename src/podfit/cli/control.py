"""`podfit controllers` and `podfit scheduler`: the two components that watch and act, each in a process of its own."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from msgspec.structs import replace

from podfit.cli import exits, logs, render
from podfit.cli.flags import Controllers, ControllersFlags, Gates, Log, LogFlags
from podfit.client.kubeconfig import find, load
from podfit.core.features import FeatureGates
from podfit.net import event_loop
from podfit.net.authority import Authority
from podfit.net.certificates import Damaged
from podfit.net.metrics import Metrics
from podfit.net.served_names import names_served
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from podfit.process.control.control_files import Common, read_controllers, read_scheduler
from podfit.process.control.control_process import ClientOf, ControlOptions, ControlProcess, Loops
from podfit.process.control.controllers import Loop, controller_loops
from podfit.process.control.scheduler import scheduler_loops
from podfit.process.data.data_dir import DataDir, default_data_dir
from podfit.process.errors import MachineError
from podfit.process.foreground import run_until_stopped
from podfit.process.options import check_port


@dataclass(frozen=True, kw_only=True)
class ControlFlags:
    """None: not given, so what a configuration file says counts, else the default."""

    data: Annotated[
        Path | None, Parameter(help=f"Data directory of the API server. [default: {default_data_dir()}]")
    ] = None
    kubeconfig: Annotated[
        Path | None, Parameter(help="How it reaches the API server. [default: the one that podfit apiserver writes]")
    ] = None
    config: Annotated[
        Path | None,
        Parameter(
            help="A KubeSchedulerConfiguration or KubeControllerManagerConfiguration; flags count more "
            "(docs/processes.md)."
        ),
    ] = None
    leader_elect: Annotated[
        bool | None, Parameter(help="Work only while the Lease in kube-system is held. [default: yes]")
    ] = None
    bind_address: Annotated[str, Parameter(help="Where its health and metrics are served.")] = "127.0.0.1"
    feature_gates: Gates = ""

    def options(self, name: str, said: Common, port: int) -> ControlOptions:
        check_port(port, "--secure-port")
        return ControlOptions(
            name=name,
            kubeconfig=self.kubeconfig or said.kubeconfig or DataDir.at(self.data).component_kubeconfig(name),
            lease=said.lease,
            lease_namespace=said.namespace,
            pace=said.pace,
            rate=said.rate,
            port=port,
            address=self.bind_address,
            elect=said.elect if self.leader_elect is None else self.leader_elect,
        )


Control: TypeAlias = Annotated[ControlFlags | None, Parameter(name="*")]


def controllers(
    *,
    control: Control = None,
    flags: Controllers = None,
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 10257,
    log: Log = None,
) -> int:
    """Run the controllers: namespaces, quotas, garbage, service accounts, certificates. Signs with DATA/pki/ca.key."""

    control, flags = control or ControlFlags(), flags or ControllersFlags()
    said, common = read_controllers(control.config)
    wanted = flags.options()
    if not flags.controllers:
        wanted = replace(wanted, controllers=said.controllers)
    wanted.check()
    clock, gates = SystemClock(), FeatureGates.parse(control.feature_gates)
    try:
        authority = Authority.load(DataDir.at(control.data).pki, clock=clock, make=False)
    except Damaged as damage:
        raise MachineError(
            f"the cluster's authority cannot be used: {damage}", fix=("name the API server's directory with --data",)
        ) from damage

    options = control.options("controllers", common, secure_port)

    async def served() -> frozenset[str]:
        access = load([options.kubeconfig]) if options.kubeconfig is not None else find(os.environ)
        tls = client_context(authorities=access.authorities, verify=access.verify)
        asked = await names_served(access.server, tls, server_name=access.reach.server_name)
        return authority.served() | asked

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return controller_loops(client_of, wanted, gates, clock, authority=authority, served=served, metrics=metrics)

    return run_process(options, loops, log or LogFlags())


def scheduler(
    *,
    control: Control = None,
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 10259,
    log: Log = None,
) -> int:
    """Run the scheduler: it finds a node for each pod that has none."""

    control = control or ControlFlags()
    said, common = read_scheduler(control.config)
    clock, gates = SystemClock(), FeatureGates.parse(control.feature_gates)

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return scheduler_loops(client_of, said, gates, clock, metrics)

    return run_process(control.options("scheduler", common, secure_port), loops, log or LogFlags())


def run_process(options: ControlOptions, loops: Loops, log: LogFlags) -> int:
    """Until somebody stops it."""
    logs.configure(log)
    event_loop.run(run_until_stopped(ControlProcess.start(options, loops, announce=render.line, clock=SystemClock())))
    render.line("stopped")
    return exits.DONE
