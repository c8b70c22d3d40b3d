"""The table of controllers by upstream's names, and their loops."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers import (
    cronjobs,
    daemonsets,
    deployments,
    disruption,
    endpoints,
    endpointslicemirroring,
    endpointslices,
    ephemeral_volumes,
    jobs,
    nodes,
    podgc,
    replicasets,
    statefulsets,
    taint_eviction,
    ttl,
    volume_binding,
)
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.net.wire import Identity
from podfit.process.identities import controller

Loops: TypeAlias = Callable[[], Iterator[Coroutine[Any, Any, None]]]


class ControllerFactory(Protocol):
    """A controller's class, or it with some arguments given."""

    def __call__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock
    ) -> Controller[Any]: ...


def workloads(
    client_of: Callable[[Identity], Client], informers: Informers, clock: Clock, *, in_place: bool = True
) -> Mapping[str, Loops]:
    """What makes the loops of a controller, by its name; nothing is followed before. Without `in_place` the annotation
    `podfit.dev/rollout` is somebody else's to follow.
    """

    def loops(account: str, component: str, make: ControllerFactory) -> Iterator[Coroutine[Any, Any, None]]:
        client = client_of(controller(account))
        recorder = EventRecorder(client, component=component, clock=clock)
        yield recorder.run()
        yield make(client, informers=informers, recorder=recorder, clock=clock).run()

    replica_sets = partial(replicasets.ReplicaSetController, kind=ReplicaSet)
    replication = partial(replicasets.ReplicaSetController, kind=ReplicationController)
    deployment = partial(deployments.DeploymentController, in_place=in_place)
    stateful_set = partial(statefulsets.StatefulSetController, in_place=in_place)
    daemon_set = partial(daemonsets.DaemonSetController, in_place=in_place)
    made: dict[str, tuple[str, str, ControllerFactory]] = {
        "deployment-controller": ("deployment-controller", deployments.COMPONENT, deployment),
        "replicaset-controller": ("replicaset-controller", replicasets.COMPONENTS[ReplicaSet], replica_sets),
        "replicationcontroller-controller": (
            "replication-controller",
            replicasets.COMPONENTS[ReplicationController],
            replication,
        ),
        "statefulset-controller": ("statefulset-controller", statefulsets.COMPONENT, stateful_set),
        "disruption-controller": ("disruption-controller", disruption.COMPONENT, disruption.DisruptionController),
        "pod-garbage-collector-controller": ("pod-garbage-collector", podgc.COMPONENT, podgc.PodGarbageCollector),
        "persistentvolume-binder-controller": (
            "persistent-volume-binder",
            volume_binding.COMPONENT,
            volume_binding.VolumeBindingController,
        ),
        "job-controller": ("job-controller", jobs.COMPONENT, jobs.JobController),
        "cronjob-controller": ("cronjob-controller", cronjobs.COMPONENT, cronjobs.CronJobController),
        "ttl-after-finished-controller": ("ttl-after-finished-controller", ttl.COMPONENT, ttl.TtlController),
        "node-lifecycle-controller": ("node-controller", nodes.COMPONENT, nodes.NodeLifecycleController),
        "taint-eviction-controller": (
            "node-controller",
            taint_eviction.COMPONENT,
            taint_eviction.TaintEvictionController,
        ),
        "endpoints-controller": ("endpoint-controller", endpoints.COMPONENT, endpoints.EndpointsController),
        "endpointslice-controller": (
            "endpointslice-controller",
            endpointslices.COMPONENT,
            endpointslices.EndpointSliceController,
        ),
        "endpointslice-mirroring-controller": (
            "endpointslicemirroring-controller",
            endpointslicemirroring.COMPONENT,
            endpointslicemirroring.EndpointSliceMirroringController,
        ),
        "ephemeral-volume-controller": (
            "ephemeral-volume-controller",
            ephemeral_volumes.COMPONENT,
            ephemeral_volumes.EphemeralVolumeController,
        ),
        "daemonset-controller": ("daemon-set-controller", daemonsets.COMPONENT, daemon_set),
    }
    return {name: partial(loops, *how) for name, how in made.items()}
