"""Services and names inside of `podfit up`, for the nodes whose pods have addresses."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.randomness import Random
from podfit.decide.dns.own import PORT
from podfit.decide.workload.nodes.ipam import NodeRanges
from podfit.kubelet.network.network import PodNetwork
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Identity
from podfit.process.identities import ADMIN, DNS, PROXY
from podfit.process.node.dns import DnsNode, DnsSettings
from podfit.process.node.pod_network import first_gateway, network_lines
from podfit.process.node.proxy import node_proxy
from podfit.process.options import UpOptions

SERVING_SECONDS = 60.0


class NetworkInUp:
    """`ranges` are where the cluster's pods are; `client` gives one of an identity."""

    def __init__(
        self,
        options: UpOptions,
        ranges: NodeRanges,
        client: Callable[[Identity], Client],
        *,
        clock: Clock,
        random: Random,
        metrics: Metrics,
    ) -> None:
        self._options, self._ranges, self._client = options, ranges, client
        self._clock, self._random, self._metrics = clock, random, metrics

    async def lines(self, network: PodNetwork) -> list[str]:
        """What `up` says of it."""
        return await network_lines(self._client(ADMIN), self._ranges, network)

    async def serve(self, node: str, own: Client, running: Supervisor) -> str:
        """Services lead to their pods from now on, and have names; returns what `up` says of names. `own` is the
        node's client. Raises TimeoutError after 60 s."""
        options, client = self._options, self._client(Identity(PROXY))
        cluster = str(self._ranges.cluster)
        wanted = replace(options.proxy, cluster_cidr=cluster)
        proxy = node_proxy(client, own, wanted, data=options.data, node=node, clock=self._clock, metrics=self._metrics)
        running.run(proxy.run(), name="proxy")
        names = self._names(node, cluster)
        running.run(names.run(), name="name server")
        async with asyncio.timeout(SERVING_SECONDS):
            await proxy.synced.wait()
            await names.serving.wait()
        return names.line()

    def _names(self, node: str, cluster: str) -> DnsNode:
        """The name server, where pods reach this machine."""
        options = self._options
        settings = DnsSettings(
            addresses=(first_gateway(self._ranges),),
            port=PORT,
            domain=options.kubelet.cluster_domain,
            node=node,
            publish=True,
            any_port=True,
        )
        return DnsNode(
            self._client(Identity(DNS)),
            replace(options.dns, networks=(cluster, *options.dns.networks)),
            settings,
            clock=self._clock,
            random=self._random,
            metrics=self._metrics,
        )
