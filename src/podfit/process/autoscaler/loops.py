"""The cluster autoscaler of `podfit cluster-autoscaler`, a client of any cluster, and of `podfit up`."""

import logging
from collections.abc import Callable, Iterator

from podfit.autoscaler.autoscaler import COMPONENT, ClusterAutoscaler
from podfit.autoscaler.kwok import GroupTemplate, KwokProvider
from podfit.autoscaler.provider import Provider
from podfit.client.election import Election, LostLease, NewerLease
from podfit.client.places import told
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.autoscaler.options import LEASE
from podfit.process.control.controllers import ClientOf, Loop
from podfit.process.vpa.objects import CLUSTER_AUTOSCALER, install
from podfit.vpa.progress import Passes

log = logging.getLogger(__name__)
ACCOUNT = COMPONENT
"""Service account in kube-system."""
IDENTITY, AGAIN = "podfit-up", 10.0
"""Holder of the Lease in `up`: the next one on this cluster is the same holder. Seconds."""


def autoscaler_loops(
    client_of: ClientOf,
    provider: Callable[[Client], Provider],
    settings: AutoscalerSettings,
    clock: Clock,
    metrics: Metrics,
    passes: Passes,
) -> Iterator[Loop]:
    client = client_of(Identity(COMPONENT))
    yield ClusterAutoscaler(
        client, provider(client), clock=clock, settings=settings, metrics=metrics, passed=passes.done
    ).run()


async def install_in_up(client: Client) -> None:
    """What the autoscaler may do, and the kind that asks for headroom. What speaks against it, such as a full disk,
    keeps no cluster from starting. `client` is an administrator's."""
    try:
        await install(client, CLUSTER_AUTOSCALER)
    except (ApiError, ConnectionError) as error:
        log.warning("the cluster autoscaler's roles are not made, the next start tries again error=%s", error)


async def autoscaler_in_up(
    client: Client, groups: tuple[GroupTemplate, ...], settings: AutoscalerSettings, clock: Clock, metrics: Metrics
) -> None:
    """Until cancelled. Works while it holds the Lease, which a `podfit cluster-autoscaler` beside it may hold."""

    async def work() -> None:
        provider = KwokProvider(client, groups)
        await ClusterAutoscaler(client, provider, clock=clock, settings=settings, metrics=metrics).run()

    while True:
        try:
            said = told(makes_places=settings.scale_up.waiting_resizes)
            await Election(client, clock, name=LEASE, identity=IDENTITY, told=said).lead(work)
        except (LostLease, NewerLease):
            await clock.sleep(AGAIN)
