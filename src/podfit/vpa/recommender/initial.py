"""Initial resources in the recommender: counts usage in the namespaces that ask for it, and tells what is known of it.

Usage counts for the workload that a pod's controllers lead to, each by kind, name and UID; a pod of nobody, and one
that only says whose it is, teaches nothing. Told is by kind and name, within one namespace: so a workload that is made
anew begins with what it used before, and a plan can ask before it is made.
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of, group_of, named_by, names
from podfit.api.meta.v1.types import OwnerReference
from podfit.api.recommender.v1alpha1 import ContainerRecommendation
from podfit.client.informer import Informer
from podfit.client.resource import Resource
from podfit.client.rest import Client
from podfit.client.targets import Ref, Targets
from podfit.client.workloads import WELL_KNOWN, Meta
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.initial import SELECTOR, told
from podfit.decide.autoscaling.initial_usage import InitialUsage, Place, SavedUsage
from podfit.decide.autoscaling.initial_usage import Sample as Used
from podfit.net.files import write_atomic
from podfit.vpa.recommender.pods import Pods
from podfit.vpa.recommender.usage import Sample

log = logging.getLogger(__name__)
LONGEST_NAME = 253
KEPT_EVERY = 60.0
FILE, LARGEST_FILE = "initial-usage.json", 64 << 20
"""Of the history's directory; bytes."""


class _Owned(msgspec.Struct, frozen=True):
    """A controller, as far as it says whose it is."""

    metadata: Meta = Meta()


_KINDS = {(group_of(known.api_version), known.kind): Resource(known.info(), _Owned) for known in WELL_KNOWN}


class InitialResources:
    """Nobody waits until its informer is synced. What is known is kept in `file`, where there is one."""

    def __init__(self, client: Client, clock: Clock, targets: Targets, pods: Pods, file: Path | None = None) -> None:
        self._client, self._targets, self._pods, self._usage = client, targets, pods, InitialUsage()
        self._clock, self._file = clock, file
        self._written = b""
        self._owners: dict[str, Ref | None] = {}
        """Of pods that live, by UID."""
        self.namespaces = Informer(client, Namespace, clock=clock, labels=SELECTOR)

    async def load(self) -> None:
        """What was kept; without it what is known begins anew."""
        if self._file is None:
            return
        try:
            await asyncio.to_thread(self._read, self._file)  # at most it would be a turn of 0.2 s
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            log.warning("initial usage not read, it begins anew file=%s error=%s", self._file, error)

    def _read(self, file: Path) -> None:
        """Raises OSError, ValueError."""
        self._written = _bounded(file)
        self._usage.restore(msgspec.json.decode(self._written, type=SavedUsage))

    async def keep(self) -> None:
        """Until cancelled: once a minute, where it differs, durably."""
        file = self._file
        while file is not None:
            await self._clock.sleep(KEPT_EVERY)
            text = msgspec.json.encode(self._usage.saved())
            if text == self._written:
                continue
            try:
                await asyncio.to_thread(write_atomic, file, text)
            except OSError as error:
                log.warning("initial usage not written file=%s error=%s", file, error)
            else:
                self._written = text

    async def count(self, samples: Iterable[Sample]) -> None:
        """A pass: what is used now; pods that are gone leave room."""
        enabled = {namespace.metadata.name for namespace in self.namespaces.list()}
        if self.namespaces.synced.is_set():
            self._usage.keep_namespaces(enabled)
        living: dict[str, Ref | None] = {}
        for number, sample in enumerate(samples, 1):
            if number % OBJECTS == 0:
                await asyncio.sleep(0)
            pod = self._pods.get(sample.pod) if sample.pod.namespace in enabled else None
            if pod is None:
                continue
            uid = pod.metadata.uid
            if uid not in living:
                living[uid] = self._owners.get(uid) or await self._topmost(pod)
            owner = living[uid]
            images = {scaled.container.name: scaled.container.image for scaled in every_container(pod)}
            image = images.get(sample.container)
            if owner is not None and image is not None:
                place = _place(sample.pod.namespace, owner, sample.container, image)
                self._usage.add(place, uid, Used(sample.time, sample.cpu, sample.memory))
        self._owners = living
        self._usage.keep(living)

    async def of(self, pod: Pod) -> tuple[ContainerRecommendation, ...]:
        """What is known of its containers; nothing in a namespace that does not ask for it."""
        namespace = pod.metadata.namespace
        if self.namespaces.get(namespace) is None:
            return ()
        owner = await self._topmost(pod) or await self._newer(pod)
        if owner is None:
            return ()
        workload, found = f"{owner.kind.lower()}/{owner.name}", []
        for scaled in every_container(pod):
            container = scaled.container
            known = self._usage.known(_place(namespace, owner, container.name, container.image))
            if known is not None:
                found.append(told(container.name, known, workload))
        return tuple(found)

    async def _topmost(self, pod: Pod) -> Ref | None:
        """What is followed says so; None for a pod of nobody."""
        owner = controller_of(pod.metadata)
        return None if owner is None else await self._targets.topmost_of(pod.metadata.namespace, owner)

    async def _newer(self, pod: Pod) -> Ref | None:
        """Of a controller that is not followed yet, which is often as new as its first pod; or that is not made yet."""
        namespace, owner = pod.metadata.namespace, controller_of(pod.metadata)
        kind = _KINDS.get((group_of(owner.api_version), owner.kind)) if owner is not None else None
        if owner is None or kind is None or not 0 < len(owner.name) <= LONGEST_NAME:
            return None
        above = await self._above(namespace, owner, kind) if owner.uid else None
        topmost = await self._targets.topmost_of(namespace, above) if above is not None else None
        return topmost or Ref(owner.api_version, owner.kind, owner.name)

    async def _above(self, namespace: str, owner: OwnerReference, kind: Resource[_Owned]) -> OwnerReference | None:
        try:
            controller = await self._client.get(kind, owner.name, namespace)
        except (ApiError, ConnectionError) as error:
            log.info("owner not read owner=%s/%s/%s error=%s", owner.kind, namespace, owner.name, error)
            return None
        meta = controller.metadata
        identity = named_by(owner, namespace)._replace(name=meta.name, uid=meta.uid)
        return controller_of(meta) if names(owner, namespace, identity) else None


def _bounded(path: Path) -> bytes:
    """Raises OSError, and ValueError for more than is ever written."""
    with path.open("rb") as file:
        text = file.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise ValueError(f"it has more than {LARGEST_FILE} bytes")
    return text


def _place(namespace: str, owner: Ref, container: str, image: str) -> Place:
    return Place(namespace, group_of(owner.api_version), owner.kind, owner.name, container, image)
