"""The control loops of a cluster: controllers and scheduler, each a client of the API like any other."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from podfit.api.core.claims import PersistentVolumeClaim
from podfit.api.core.config import ServiceAccount
from podfit.api.core.persistent import PersistentVolume
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.controllers.aggregation import AggregationController
from podfit.controllers.base import Controller
from podfit.controllers.certificates import CertificateController, Signing
from podfit.controllers.garbage import GarbageCollector
from podfit.controllers.garbage.collector import COMPONENT as GARBAGE_COLLECTOR
from podfit.controllers.garbage.graph import Item
from podfit.controllers.namespaces import NamespaceController
from podfit.controllers.quotas import QuotaController
from podfit.controllers.serviceaccounts import ControllerAccounts, DefaultAccounts, RootCertificates
from podfit.controllers.volumes import VolumeProtection
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.net.authority import Authority
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.identities import MANAGER, SCHEDULER, account_of, controller
from podfit.process.options import MakeRoom, UpOptions
from podfit.scheduler.scheduler import NAME as SCHEDULER_COMPONENT
from podfit.scheduler.scheduler import Scheduler

ClientOf = Callable[[Identity], Client]


def control_loops(
    client_of: ClientOf, options: UpOptions, clock: Clock, metrics: Metrics, *, authority: Authority
) -> Iterator[Coroutine[Any, Any, None]]:
    """Each runs for ever. `metrics` are the API server's, so that its /metrics shows the whole control plane."""
    yield from controller_loops(client_of, options.gates, clock, authority=authority)
    yield from scheduler_loops(client_of(Identity(SCHEDULER)), options.gates, clock, metrics)
    if options.make_room is not MakeRoom.NO:
        yield from _room(client_of, options, clock)


def controller_loops(
    client_of: ClientOf, gates: FeatureGates, clock: Clock, *, authority: Authority
) -> Iterator[Coroutine[Any, Any, None]]:
    ca, signing = authority.certificate.decode(), Signing(authority.ends, authority.sign)
    accounts: list[str] = []

    def noted(identity: Identity) -> Client:
        accounts.append(account_of(identity))
        return client_of(identity)

    namespaces = NamespaceController(noted(controller("namespace-controller")), clock=clock)
    yield namespaces.run()
    quotas = QuotaController(noted(controller("resourcequota-controller")), clock=clock, gates=gates)
    yield quotas.run()
    for each in controllers(noted, clock, ca=ca, signing=signing):
        yield each.run()

    def gone(item: Item) -> None:
        namespaces.gone(item)
        quotas.gone(item)

    yield from garbage_collection(noted, clock, gone=gone)
    yield ControllerAccounts(client_of(Identity(MANAGER)), filter(None, accounts), clock=clock).run()


def scheduler_loops(
    client: Client, gates: FeatureGates, clock: Clock, metrics: Metrics
) -> Iterator[Coroutine[Any, Any, None]]:
    recorder = EventRecorder(client, component=SCHEDULER_COMPONENT, clock=clock)
    yield recorder.run()
    yield Scheduler(client, recorder=recorder, clock=clock, gates=gates, metrics=metrics).run()


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


def controllers(client_of: ClientOf, clock: Clock, *, ca: str, signing: Signing) -> Iterator[Controller[Any]]:
    """Those that every cluster has, each as itself; beside them those of namespaces and quotas."""

    def own(name: str) -> Client:
        return client_of(controller(name))

    shared = client_of(Identity(MANAGER))
    yield DefaultAccounts(shared, own("service-account-controller"), clock=clock)
    yield RootCertificates(shared, own("root-ca-cert-publisher"), clock=clock, ca=ca)
    yield AggregationController(own("clusterrole-aggregation-controller"), clock=clock)
    yield VolumeProtection(own("pvc-protection-controller"), PersistentVolumeClaim, clock=clock)
    yield CertificateController(
        own("certificate-controller"), reader=client_of(Identity(MANAGER)), clock=clock, signing=signing
    )
    yield VolumeProtection(own("pv-protection-controller"), PersistentVolume, clock=clock)


def garbage_collection(
    client_of: ClientOf, clock: Clock, *, gone: Callable[[Item], None] = lambda _item: None
) -> Iterator[Coroutine[Any, Any, None]]:
    """`gone` is told of every object that vanished."""
    client = client_of(controller("generic-garbage-collector"))
    recorder = EventRecorder(client, component=GARBAGE_COLLECTOR, clock=clock)
    yield recorder.run()
    yield GarbageCollector(client, recorder=recorder, clock=clock, gone=gone).run()


def _room(client_of: ClientOf, options: UpOptions, clock: Clock) -> Iterator[Coroutine[Any, Any, None]]:
    from podfit.controllers import room, room_notice

    evict = options.make_room is MakeRoom.PREEMPT
    client = client_of(Identity(room.USER, (room.EVICTORS,) if evict else ()))
    recorder = EventRecorder(client, component=room.COMPONENT, clock=clock)
    yield recorder.run()
    yield room.RoomController(client, recorder=recorder, clock=clock, gates=options.gates, evict=evict).run()
    yield room_notice.keep_notice(client, clock, "preempt" if evict else "shrink")
