"""The metrics-server inside of `podfit up`, reached by calls in the process."""

from podfit.api.core.v1.nodes.types import Node
from podfit.apiserver.context import NodeConnection
from podfit.core.clock import Clock
from podfit.metrics.kubelets import PATH, told
from podfit.metrics.objects import NAME, NAMESPACE, register
from podfit.metrics.scraper import Ask, ScrapeSettings
from podfit.metrics.server import MetricsServer
from podfit.net.wire import Identity, Request
from podfit.process.apiserver import ApiServerComponent
from podfit.process.controllers import ClientOf, Loop
from podfit.process.identities import ADMIN, controller
from podfit.process.local_services import LocalServices

IDENTITY = controller(NAME)
INTERVAL = 15.0
"""Seconds; what upstream's manifest sets."""


async def local_metrics(api: ApiServerComponent, services: LocalServices, client_of: ClientOf, clock: Clock) -> Loop:
    """metrics.k8s.io, registered and answered from now on; with what pods and nodes use once the loop runs."""
    server = MetricsServer(
        client_of(IDENTITY),
        asking(api.nodes, IDENTITY),
        clock=clock,
        settings=ScrapeSettings(interval=INTERVAL),
        metrics=api.metrics,
    )
    services.offer(NAMESPACE, NAME, server.api)
    await register(client_of(ADMIN))
    await api.ask_backends()
    return server.run()


def asking(nodes: NodeConnection, identity: Identity) -> Ask:
    """Ask a kubelet as the API server reaches it."""

    async def ask(node: Node) -> str:
        reach = nodes(node.metadata.name)
        if reach is None:
            raise ConnectionError("there is no such node here")
        return await told(await reach(Request("GET", PATH, identity=identity)))

    return ask
