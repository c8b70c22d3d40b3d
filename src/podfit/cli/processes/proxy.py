"""`podfit proxy`: what leads packets for Services to their endpoints on this machine."""

import socket
from collections.abc import Iterator

from msgspec.structs import replace

from podfit.cli import logs, render
from podfit.cli.flags import Given, takes
from podfit.cli.processes.control import run_process
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.net.wire import Identity
from podfit.process.control.control_process import ClientOf, Role
from podfit.process.control.controllers import Loop
from podfit.process.control.options import ProxyProcessOptions
from podfit.process.identities import PROXY
from podfit.process.node.proxy import node_proxy
from podfit.proxy.proxier import Proxier


@takes(ProxyProcessOptions, logs.LogOptions)
def proxy(given: Given) -> int:
    """Lead packets for Services to their endpoints, by a table of nftables of its own, which stays when it ends."""
    options, clock = given.options(ProxyProcessOptions), SystemClock()
    node = options.node or socket.gethostname().lower()
    wanted = replace(options.services, cluster_cidr=options.cluster_cidr)
    running = list[Proxier]()

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        client = client_of(Identity(PROXY))
        made = node_proxy(client, client, wanted, data=options.data, node=node, clock=clock, metrics=metrics)
        running.append(made)
        yield made.run()

    role = Role(
        name="proxy",
        lease="",
        kubeconfig=options.data.component_kubeconfig("proxy"),
        healthy=lambda: all(made.healthy for made in running),
    )
    render.line(f"podfit proxy: node {node}")
    return run_process(role, options, loops, given)
