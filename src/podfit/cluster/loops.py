"""The control loops of a cluster: controllers and scheduler, each a client of the API like any other."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from podfit.api.core.config import ServiceAccount
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.cluster.options import MakeRoom, UpOptions
from podfit.controllers.aggregation import AggregationController
from podfit.controllers.garbage import GarbageCollector
from podfit.controllers.garbage.collector import COMPONENT as GARBAGE_COLLECTOR
from podfit.controllers.namespaces import NamespaceController
from podfit.controllers.quotas import QuotaController
from podfit.controllers.serviceaccounts import NamespaceContents
from podfit.controllers.volumes import VolumeProtection
from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.scheduler.scheduler import NAME as SCHEDULER
from podfit.scheduler.scheduler import Scheduler

ClientOf = Callable[..., Client]
"""A client that is this user, a member of these groups."""


def control_loops(
    client_of: ClientOf, options: UpOptions, clock: Clock, metrics: Metrics, *, ca: str
) -> Iterator[Coroutine[Any, Any, None]]:
    """Each runs for ever. `metrics` are the API server's, so that its /metrics shows the whole control plane."""
    manager, scheduling = client_of("system:kube-controller-manager"), client_of("system:kube-scheduler")
    recorder = EventRecorder(scheduling, component=SCHEDULER, clock=clock)
    yield NamespaceController(manager, clock=clock).run()
    yield NamespaceContents(manager, clock=clock, ca=ca).run()
    yield QuotaController(manager, clock=clock, gates=options.gates).run()
    yield AggregationController(manager, clock=clock).run()
    yield VolumeProtection(manager, clock=clock).run()
    yield recorder.run()
    collecting = EventRecorder(manager, component=GARBAGE_COLLECTOR, clock=clock)
    yield collecting.run()
    yield GarbageCollector(manager, recorder=collecting, clock=clock).run()
    yield Scheduler(scheduling, recorder=recorder, clock=clock, gates=options.gates, metrics=metrics).run()
    if options.make_room is not MakeRoom.NO:
        yield from _room(client_of, options, clock)


async def default_account(client: Client) -> None:
    """Returns when pods can be made in the namespace `default`: its service account is there."""
    name = "default"
    found = await client.list(ServiceAccount, name, fields=f"metadata.name={name}")
    if found.items:
        return
    async for event in client.watch(
        ServiceAccount, name, resource_version=found.resource_version, fields=f"metadata.name={name}"
    ):
        if event.type == "ADDED":
            return


def _room(client_of: ClientOf, options: UpOptions, clock: Clock) -> Iterator[Coroutine[Any, Any, None]]:
    from podfit.controllers import room

    evict = options.make_room is MakeRoom.PREEMPT
    client = client_of(room.USER, *((room.EVICTORS,) if evict else ()))
    recorder = EventRecorder(client, component=room.COMPONENT, clock=clock)
    yield recorder.run()
    yield room.RoomController(client, recorder=recorder, clock=clock, gates=options.gates, evict=evict).run()
