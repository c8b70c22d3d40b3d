"""Reads the autoscalers of a workload: VPAs that may take a resize back, and HPAs that measure by what pods request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from podfit.answers.facts.kinds import HPAS
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.updater import RunningUpdater, read_updater
from podfit.answers.facts.workloads import WorkloadReader
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_named
from podfit.client.controlling import Controlling
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

NOT_FOUND = 404
T = TypeVar("T")


class Autoscalers(msgspec.Struct, frozen=True):
    """Those of a namespace. `vpas` has by a pod's UID the VPA by which the updater may change it, `workloads` what
    controls it, from the nearest to the topmost; `wanted` is how many pods controllers want; `read_at` when
    that was so.
    """

    vpas: Mapping[str, VerticalPodAutoscaler] = msgspec.field(default_factory=dict)
    hpas: tuple[HorizontalPodAutoscaler, ...] = ()
    workloads: Mapping[str, tuple[ObjectIdentity, ...]] = msgspec.field(default_factory=dict)
    updater: RunningUpdater = RunningUpdater()
    wanted: Mapping[ObjectIdentity, int] = msgspec.field(default_factory=dict)
    read_at: datetime | None = None


async def read_autoscalers(
    client: Client, namespace: str, pods: Sequence[Pod], clock: Clock, unread: Callable[[str], None]
) -> Autoscalers:
    """What may not be read is told to `unread`, and taken for absent."""

    async def listed(kind: Resource[T]) -> tuple[T, ...]:
        try:
            return (await client.list(kind, namespace)).items
        except ApiError as error:
            if error.code != NOT_FOUND:
                unread(f"{kind.info.resource} of {namespace}: {why_unread(error)}")
            return ()

    vpas, hpas = await asyncio.gather(listed(VPAS), listed(HPAS))
    if not vpas and not hpas:
        return Autoscalers()
    updater = await read_updater(client, clock) if vpas else RunningUpdater()
    acting = [vpa for vpa in vpas if updater.settings.looks_at(vpa)]
    reader = WorkloadReader(client, namespace, unread)
    targets = await reader.targets(pods, (vpa.spec.target_ref for vpa in acting))
    controlling, controllers = Controlling(targets, acting), reader.controllers
    found = {pod.metadata.uid: await controlling.vpa_of(pod) for pod in pods}
    owners = {owner for pod in pods if (owner := controller_named(pod.metadata)) is not None}
    return Autoscalers(
        vpas={uid: vpa for uid, vpa in found.items() if vpa is not None},
        hpas=hpas,
        workloads={pod.metadata.uid: controllers.chain(pod) for pod in pods},
        updater=updater,
        read_at=clock.now(),
        wanted={owner: number for owner in owners if (number := targets.wanted(owner)) is not None},
    )
