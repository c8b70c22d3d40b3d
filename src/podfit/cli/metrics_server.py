"""`podfit metrics-server`: metrics.k8s.io for any cluster."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, logs, render
from podfit.cli.flags import Log, LogFlags, key_pair
from podfit.client.kubeconfig import default_paths
from podfit.metrics.kubelets import DEFAULT_TYPES, Reached
from podfit.net import event_loop
from podfit.net.addresses import own_address
from podfit.net.system import SystemClock
from podfit.process.config_file import seconds
from podfit.process.control.metrics_process import MetricsServerOptions, MetricsServerProcess
from podfit.process.errors import UsageError
from podfit.process.foreground import run_until_stopped
from podfit.process.options import check_port

LEAST_SECONDS = 10.0


def metrics_server(
    *,
    kubeconfig: Annotated[
        Path | None, Parameter(help="How it reaches the API server. [default: KUBECONFIG or ~/.kube/config]")
    ] = None,
    metric_resolution: Annotated[str, Parameter(help="From one round of questions to the next; 10s at least.")] = "60s",
    kubelet_insecure_tls: Annotated[
        bool, Parameter(help="Take any serving certificate from kubelets.", negative="")
    ] = False,
    kubelet_certificate_authority: Annotated[
        Path | None, Parameter(help="Who signed the kubelets' certificates. [default: the cluster's authority]")
    ] = None,
    kubelet_preferred_address_types: Annotated[
        str, Parameter(help="Of a node's addresses the first of these is asked.")
    ] = ",".join(DEFAULT_TYPES),
    kubelet_port: Annotated[int, Parameter(help="Of kubelets that tell none.")] = 10250,
    kubelet_use_node_status_port: Annotated[bool, Parameter(help="Ask at the port that a node tells.")] = True,
    kubelet_request_timeout: Annotated[str, Parameter(help="For the whole answer of a kubelet.")] = "10s",
    node_selector: Annotated[str, Parameter(help="Only nodes with these labels.")] = "",
    register: Annotated[
        bool,
        Parameter(
            help="Make its APIService, service and roles, leading to this machine; as an administrator.", negative=""
        ),
    ] = False,
    advertise_address: Annotated[
        str, Parameter(help="By which the API server reaches it. [default: this machine's own]")
    ] = "",
    bind_address: Annotated[str, Parameter(help="Where it listens.")] = "0.0.0.0",
    secure_port: Annotated[int, Parameter(help="Where it listens; 0 takes a free one.")] = 4443,
    tls_cert_file: Annotated[Path | None, Parameter(help="Certificate to serve with. [default: self-signed]")] = None,
    tls_private_key_file: Annotated[Path | None, Parameter(help="Its key.")] = None,
    log: Log = None,
) -> int:
    """Serve metrics.k8s.io, what pods and nodes use, of any cluster, from its kubelets' /metrics/resource."""
    check_port(secure_port, "--secure-port")
    check_port(kubelet_port, "--kubelet-port")
    options = MetricsServerOptions(
        kubeconfig=kubeconfig or default_paths(os.environ)[0],
        port=secure_port,
        address=bind_address,
        interval=_seconds(metric_resolution, "--metric-resolution", LEAST_SECONDS),
        reached=Reached(
            types=_types(kubelet_preferred_address_types),
            port=kubelet_port,
            told_port=kubelet_use_node_status_port,
            timeout=_seconds(kubelet_request_timeout, "--kubelet-request-timeout", 0.1),
        ),
        verify_kubelets=not kubelet_insecure_tls,
        kubelet_authority=kubelet_certificate_authority,
        nodes=node_selector,
        tls=key_pair(tls_cert_file, tls_private_key_file),
        register_as=(advertise_address or _own()) if register else "",
    )
    logs.configure(log or LogFlags())
    event_loop.run(run_until_stopped(MetricsServerProcess.start(options, announce=render.line, clock=SystemClock())))
    render.line("stopped")
    return exits.DONE


def _own() -> str:
    found = own_address()
    if not found:
        raise UsageError("this machine has no address but loopback: name one with --advertise-address")
    return found


def _seconds(text: str, flag: str, least: float) -> float:
    try:
        found = seconds(text, flag)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if found < least:
        raise UsageError(f"{flag} {text}: it is at least {least:g}s")
    return found


def _types(text: str) -> tuple[str, ...]:
    found = tuple(filter(None, text.split(",")))
    if not found or set(found) - set(DEFAULT_TYPES):
        raise UsageError(f"--kubelet-preferred-address-types {text}: of {', '.join(DEFAULT_TYPES)}")
    return found
