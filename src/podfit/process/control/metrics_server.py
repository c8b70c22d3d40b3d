"""The metrics-server inside of `podfit up`, reached by calls in the process."""

import asyncio
import logging

from podfit.api.core.v1.nodes.types import Node
from podfit.apiserver.context import NodeConnection
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.core.backoff import delay_after
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.metrics.kubelets import PATH, told
from podfit.metrics.objects import NAME, NAMESPACE, register
from podfit.metrics.scraper import Ask, ScrapeSettings
from podfit.metrics.server import MetricsServer
from podfit.net.wire import Identity, Request
from podfit.process.control.apiserver import ApiServerComponent, LocalServices
from podfit.process.control.controllers import ClientOf, Loop
from podfit.process.identities import ADMIN, controller

log = logging.getLogger(__name__)

IDENTITY = controller(NAME)
INTERVAL, MANY_NODES_INTERVAL = 15.0, 60.0
"""Seconds; what upstream's manifest sets, and what its server has without one."""
MANY_NODES = 100
"""Reading 30,000 pods takes two seconds."""
ANSWER_SECONDS = 10.0
"""For one kubelet's whole answer, as upstream's `--kubelet-request-timeout`."""


async def local_metrics(
    api: ApiServerComponent,
    services: LocalServices,
    client_of: ClientOf,
    clock: Clock,
    nodes: int,
    informers: Informers,
) -> Loop:
    """metrics.k8s.io, registered and answered from now on; with what pods and nodes use once the loop runs. `informers`
    are those that others of the process run."""
    server = MetricsServer(
        client_of(IDENTITY),
        asking(api.nodes, IDENTITY),
        clock=clock,
        settings=ScrapeSettings(interval=interval(nodes)),
        metrics=api.metrics,
        informers=informers,
    )
    services.offer(NAMESPACE, NAME, server.api)
    there = await registered(client_of(ADMIN))
    await api.ask_backends()
    return server.run() if there else _registering(client_of(ADMIN), clock, server.run())


def interval(nodes: int) -> float:
    """Seconds from one round to the next."""
    return INTERVAL if nodes <= MANY_NODES else MANY_NODES_INTERVAL


async def registered(client: Client) -> bool:
    """Whether it is now: where the disk is full, or an admission webhook refuses, `up` goes on without it."""
    try:
        await register(client)
    except ApiError as error:
        log.warning("metrics.k8s.io cannot be registered and is tried again error=%s", error)
        return False
    return True


async def _registering(client: Client, clock: Clock, serving: Loop) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(serving)
        await register_by_and_by(client, clock)


async def register_by_and_by(client: Client, clock: Clock) -> None:
    """Returns when it is registered."""
    failures = 0
    while True:
        await clock.sleep(delay_after(failures, 1.0, 60.0))
        if await registered(client):
            return
        failures += 1


def asking(nodes: NodeConnection, identity: Identity) -> Ask:
    """Ask a kubelet as the API server reaches it."""

    async def ask(node: Node) -> str:
        reach = nodes(node.metadata.name)
        if reach is None:
            raise ConnectionError("there is no such node here")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await told(await reach(Request("GET", PATH, identity=identity)))
        except TimeoutError:
            raise ConnectionError(f"it did not answer within {ANSWER_SECONDS:g} s") from None

    return ask
