"""The proxy of `podfit up` and of `podfit proxy`."""

from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.process.data.data_dir import DataDir
from podfit.process.network_options import ProxyOptions
from podfit.process.node.pod_network import services_table
from podfit.proxy.proxier import Proxier, Sources


def node_proxy(
    services: Client, pods: Client, options: ProxyOptions, *, data: DataDir, node: str, clock: Clock, metrics: Metrics
) -> Proxier:
    """`services` reads Services and endpoints, `pods` the pods of this node. The table is the data directory's."""
    return Proxier(
        Sources(services, pods),
        node=node,
        table=services_table(data),
        comment=f"services of podfit on {data.root}",
        clock=clock,
        metrics=metrics,
        cluster=options.cluster_cidr,
        node_port_addresses=options.node_port_addresses,
    )
