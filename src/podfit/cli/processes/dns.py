"""`podfit dns`: names of Services and pods, beside any cluster."""

import socket
from collections.abc import Iterator

from podfit.cli import logs, render
from podfit.cli.flags import Given, takes
from podfit.cli.processes.control import run_process
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock, SystemRandom
from podfit.net.wire import Identity
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.process.control.options import DnsProcessOptions
from podfit.process.identities import DNS
from podfit.process.node.dns import DnsNode, DnsSettings, check_free


@takes(DnsProcessOptions, logs.LogOptions)
def dns(given: Given) -> int:
    """Answer the names of a cluster's Services and pods by UDP and TCP; other names are asked of this machine's
    resolvers. Who is neither on this machine nor in a network of --dns-allow is not answered.
    """
    options, clock = given.options(DnsProcessOptions), SystemClock()
    running = list[DnsNode]()
    settings = DnsSettings(
        addresses=options.listen,
        port=options.dns_port,
        domain=options.cluster_domain,
        node=options.node or socket.gethostname().lower(),
        publish=options.publish,
    )

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        client = client_of(Identity(DNS))
        made = DnsNode(
            client, options.names, settings, clock=clock, random=SystemRandom(), metrics=metrics, tell=render.line
        )
        running.append(made)
        yield made.run()

    check_free(settings)
    role = Role(
        name="dns",
        kubeconfig=options.data.component_kubeconfig("dns"),
        healthy=lambda: bool(running) and all(made.healthy for made in running),
    )
    return run_process(role, options, loops, given)
