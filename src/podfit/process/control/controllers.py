"""The controllers of `podfit up` and `podfit controllers`, each a client of the API like any other."""

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.controllers import horizontal, node_ipam, relabelling
from podfit.controllers.aggregation import AggregationController
from podfit.controllers.base import Controller
from podfit.controllers.certificates import CertificateController, Signing
from podfit.controllers.garbage import GarbageCollector
from podfit.controllers.garbage.collector import COMPONENT as GARBAGE_COLLECTOR
from podfit.controllers.garbage.graph import Item
from podfit.controllers.local_volumes import COMPONENT, LocalVolumes, keep_class
from podfit.controllers.namespaces import NamespaceController
from podfit.controllers.quotas import QuotaController
from podfit.controllers.serviceaccounts import ControllerAccounts, DefaultAccounts, RootCertificates
from podfit.controllers.volumes import VolumeProtection
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.workload.nodes.ipam import NodeRanges
from podfit.net.authority import Authority
from podfit.net.metrics import Metrics
from podfit.net.wire import Identity
from podfit.process.control.workloads import workloads
from podfit.process.controllers_options import HORIZONTAL, IN_PLACE_ROLLOUT, NODE_IPAM, ControllersOptions, MakeRoom
from podfit.process.identities import ADMIN, MANAGER, account_of, controller

ClientOf = Callable[[Identity], Client]
Loop = Coroutine[Any, Any, None]
"""Runs for as long as the process does."""


def controller_loops(
    client_of: ClientOf,
    options: ControllersOptions,
    gates: FeatureGates,
    clock: Clock,
    *,
    authority: Authority,
    served: Callable[[], Awaitable[frozenset[str]]],
    metrics: Metrics,
    usages: PodUsages | None = None,
    informers: Informers | None = None,
) -> Iterator[Loop]:
    """Those that `options` want, each as itself. `authority` signs certificates; `served` tells what the API
    server is called in its certificate. `usages`, `informers`: what others of the process read as well; the informers
    are run here."""
    accounts: list[str] = []

    def noted(identity: Identity) -> Client:
        accounts.append(account_of(identity))
        return client_of(identity)

    informers = informers or informers_of(client_of, clock)
    namespaces = NamespaceController(noted(controller("namespace-controller")), informers=informers, clock=clock)
    quotas = QuotaController(
        noted(controller("resourcequota-controller")), informers=informers, clock=clock, gates=gates
    )
    made: dict[str, Controller[Any]] = {"namespace-controller": namespaces, "resourcequota-controller": quotas}
    signing = Signing(authority.ends, authority.sign, served)
    made |= controllers(noted, informers, clock, ca=authority.certificate.decode(), signing=signing)
    yield from (loop.run() for name, loop in made.items() if options.runs(name))
    relabels = options.runs(IN_PLACE_ROLLOUT)
    for name, loops in workloads(noted, informers, clock, in_place=not relabels).items():
        if options.runs(name):
            yield from loops()
    if relabels:
        yield from _relabelling(noted(controller(relabelling.COMPONENT)), informers, clock)
    if options.runs(NODE_IPAM) and options.allocate_node_cidrs:
        yield from _node_ipam(noted, informers, options.ranges(), clock)

    if options.runs(HORIZONTAL):
        settings = replace(options.horizontal, gates=gates, scale_to_zero=gates["HPAScaleToZero"])
        usages = usages or PodUsages(noted(controller(horizontal.ACCOUNT)), clock)
        yield from horizontal_autoscaling(noted, informers, settings, clock, metrics, usages)

    def gone(item: Item) -> None:
        namespaces.gone(item)
        quotas.gone(item)

    if options.runs("garbage-collector-controller"):
        yield from garbage_collection(noted, informers, clock, gone=gone)
    if options.make_room is not MakeRoom.NO:
        yield from _room(noted, informers, options.make_room, gates, clock)
    yield informers.run()
    yield ControllerAccounts(client_of(Identity(MANAGER)), filter(None, accounts), clock=clock).run()


def informers_of(client_of: ClientOf, clock: Clock) -> Informers:
    """What the controllers follow of the cluster."""
    return Informers(client_of(Identity(MANAGER)), clock)


def rollouts_in_place(client_of: ClientOf, clock: Clock) -> Iterator[Loop]:
    """The controller `in-place-rollout` alone, as whoever the kubeconfig names: on a cluster that others control."""
    client = client_of(Identity(relabelling.COMPONENT))
    informers = Informers(client, clock)
    yield from _relabelling(client, informers, clock)
    yield informers.run()


def _relabelling(client: Client, informers: Informers, clock: Clock) -> Iterator[Loop]:
    recorder = EventRecorder(client, component=relabelling.COMPONENT, clock=clock)
    yield recorder.run()
    yield relabelling.RelabellingController(client, informers=informers, recorder=recorder, clock=clock).run()


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


def controllers(
    client_of: ClientOf, informers: Informers, clock: Clock, *, ca: str, signing: Signing
) -> dict[str, Controller[Any]]:
    """The controllers by upstream's names, beside those of namespaces and quotas."""

    def own(name: str) -> Client:
        return client_of(controller(name))

    claims, volumes = own("pvc-protection-controller"), own("pv-protection-controller")
    return {
        "serviceaccount-controller": DefaultAccounts(
            own("service-account-controller"), informers=informers, clock=clock
        ),
        "root-ca-certificate-publisher-controller": RootCertificates(
            own("root-ca-cert-publisher"), informers=informers, clock=clock, ca=ca
        ),
        "clusterrole-aggregation-controller": AggregationController(
            own("clusterrole-aggregation-controller"), informers=informers, clock=clock
        ),
        "persistentvolumeclaim-protection-controller": VolumeProtection(
            claims, PersistentVolumeClaim, informers=informers, clock=clock
        ),
        "certificatesigningrequest-signing-controller": CertificateController(
            own("certificate-controller"), informers=informers, clock=clock, signing=signing
        ),
        "persistentvolume-protection-controller": VolumeProtection(
            volumes, PersistentVolume, informers=informers, clock=clock
        ),
    }


def garbage_collection(
    client_of: ClientOf, informers: Informers, clock: Clock, *, gone: Callable[[Item], None] = lambda _item: None
) -> Iterator[Loop]:
    """`gone` is told of every object that vanished."""
    client = client_of(controller("generic-garbage-collector"))
    recorder = EventRecorder(client, component=GARBAGE_COLLECTOR, clock=clock)
    yield recorder.run()
    yield GarbageCollector(client, informers=informers, recorder=recorder, clock=clock, gone=gone).run()


def horizontal_autoscaling(
    client_of: ClientOf, informers: Informers, settings: Settings, clock: Clock, metrics: Metrics, usages: PodUsages
) -> Iterator[Loop]:
    client = client_of(controller(horizontal.ACCOUNT))
    recorder = EventRecorder(client, component=horizontal.COMPONENT, clock=clock)
    yield recorder.run()
    yield horizontal.HorizontalPodAutoscalerController(
        client, informers=informers, recorder=recorder, clock=clock, settings=settings, metrics=metrics, usages=usages
    ).run()


def _node_ipam(client_of: ClientOf, informers: Informers, ranges: NodeRanges, clock: Clock) -> Iterator[Loop]:
    client = client_of(controller("node-controller"))
    recorder = EventRecorder(client, component=node_ipam.COMPONENT, clock=clock)
    yield recorder.run()
    yield node_ipam.NodeIpamController(client, informers=informers, recorder=recorder, clock=clock, ranges=ranges).run()


def _room(
    client_of: ClientOf, informers: Informers, how: MakeRoom, gates: FeatureGates, clock: Clock
) -> Iterator[Loop]:
    from podfit.controllers import (
        make_room,  # only where room is made
        room_notice,
    )

    evict = how is MakeRoom.PREEMPT
    client = client_of(controller(make_room.EVICTING_ACCOUNT if evict else make_room.ACCOUNT))
    recorder = EventRecorder(client, component=make_room.COMPONENT, clock=clock)
    yield recorder.run()
    yield make_room.RoomController(
        client, informers=informers, recorder=recorder, clock=clock, gates=gates, evict=evict
    ).run()
    yield room_notice.keep_notice(client, clock, "preempt" if evict else "shrink")


log = logging.getLogger(__name__)


async def local_storage(client_of: ClientOf, clock: Clock, root: Path, nodes: Collection[str]) -> tuple[Loop, ...]:
    """The class is there from now on, unless the disk is full; volumes are made once the loops run."""
    try:
        await keep_class(client_of(ADMIN))
    except ApiError as error:
        log.warning("the storage class local cannot be made, the next start tries again error=%s", error)
    client = client_of(controller("persistent-volume-binder"))
    informers, recorder = Informers(client, clock), EventRecorder(client, component=COMPONENT, clock=clock)
    volumes = LocalVolumes(client, informers=informers, recorder=recorder, clock=clock, root=root, nodes=nodes)
    return recorder.run(), volumes.run(), informers.run()
