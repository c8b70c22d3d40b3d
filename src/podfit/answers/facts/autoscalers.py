"""Reads the autoscalers of a workload: VPAs that may take a resize back, and HPAs that measure by what pods request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from podfit.answers.facts.kinds import HPAS
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.target import WORKLOADS, Target
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.owners import ObjectIdentity, named_by
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.errors import ApiError

MOST_STEPS = 4
"""Of a chain of owners: a Deployment's pod has two."""
NOT_FOUND = 404
T = TypeVar("T")
Workload = tuple[str, str]
"""Kind and name."""


class Autoscalers(msgspec.Struct, frozen=True):
    """Those of a namespace, the oldest first. `workloads` has, by the UID of a pod, what controls it, from the nearest
    to the topmost; `read_at` is when that was so, and `wanted` how many pods controllers want.
    """

    vpas: tuple[VerticalPodAutoscaler, ...] = ()
    hpas: tuple[HorizontalPodAutoscaler, ...] = ()
    workloads: Mapping[str, tuple[Workload, ...]] = msgspec.field(default_factory=dict)
    read_at: datetime | None = None
    wanted: Mapping[ObjectIdentity, int] = msgspec.field(default_factory=dict)


class _Replicas(msgspec.Struct, frozen=True):
    replicas: int | None = None


class _Owned(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Replicas = _Replicas()


async def read_autoscalers(
    client: Client, namespace: str, pods: Sequence[Pod], now: datetime, unread: Callable[[str], None]
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
    owners = _Owners(client, namespace, unread)
    workloads = {pod.metadata.uid: await owners.of(pod.metadata) for pod in pods}
    oldest = sorted(vpas, key=lambda vpa: (vpa.metadata.creation_timestamp or "", vpa.metadata.name))
    return Autoscalers(tuple(oldest), hpas, workloads, now, owners.wanted)


class _Owners:
    """Chains of controlling owners; each owner is asked for once."""

    def __init__(self, client: Client, namespace: str, unread: Callable[[str], None]) -> None:
        self._client, self._namespace, self._unread = client, namespace, unread
        self._known: dict[str, ObjectMeta | None] = {}
        self.wanted: dict[ObjectIdentity, int] = {}

    async def of(self, meta: ObjectMeta | None) -> tuple[Workload, ...]:
        chain: list[Workload] = []
        while meta is not None and len(chain) < MOST_STEPS:
            owner = next((owner for owner in meta.owner_references if owner.controller), None)
            if owner is None:
                break
            chain.append((owner.kind, owner.name))
            if owner.uid not in self._known:
                self._known[owner.uid] = await self._read(owner)
            meta = self._known[owner.uid]
        return tuple(chain)

    async def _read(self, owner: OwnerReference) -> ObjectMeta | None:
        kind = next(
            (kind for kind in WORKLOADS if (kind.api_version, kind.kind) == (owner.api_version, owner.kind)), None
        )
        if kind is None:
            return None
        try:
            body = await self._client.request("GET", Target(kind, owner.name).path(self._namespace))
        except ApiError as error:
            self._unread(f"what controls {kind.shown} {owner.name}: {why_unread(error)}")
            return None
        found = codec.decode(body, _Owned)
        if found.metadata.uid == owner.uid and found.spec.replicas is not None:
            self.wanted[named_by(owner, self._namespace)] = found.spec.replicas
        return found.metadata
