"""Mirror pods: the API's copies of static pods.

    no mirror                                   make one
    a mirror that is being deleted, or of
    an earlier manifest, or of no pod at all    remove it; then there is none

A mirror is an image: deleting it changes nothing about the pod, and it comes back.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from podfit.api.core.v1.pods.static_pods import HASH, is_mirror, mirrored_uid
from podfit.api.core.v1.pods.types import MIRROR, Pod, PodStatus
from podfit.api.meta.v1.types import OwnerReference
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
_GONE = (404, 409)
_Key = tuple[str, str]


class Mirrors:
    """`run` until cancelled, once the node is registered. `shown(uid, mirror)` is told what the API has of a static
    pod; None = no mirror. `owner` is the node.
    """

    def __init__(
        self,
        informer: Informer[Pod],
        client: Client,
        *,
        clock: Clock,
        owner: Callable[[], OwnerReference],
        shown: Callable[[str, Pod | None], None],
    ) -> None:
        self._informer, self._client, self._clock = informer, client, clock
        self._owner, self._shown = owner, shown
        self._wanted: dict[_Key, Pod] = {}
        self._wake = asyncio.Event()
        informer.add_handler(add=self._seen, update=lambda _, pod: self._seen(pod), delete=self._lost)

    def add_static(self, pod: Pod) -> None:
        self._wanted[_key(pod)] = pod
        self._wake.set()

    def drop_static(self, pod: Pod) -> None:
        if self._wanted.get(_key(pod)) is pod:
            del self._wanted[_key(pod)]
            self._wake.set()

    async def run(self) -> None:
        await self._informer.synced.wait()
        while True:
            present = {_key(pod): pod for pod in self._informer.list() if is_mirror(pod)}
            for key in sorted(self._wanted.keys() | present.keys()):
                await self._settle(self._wanted.get(key), present.get(key))
            await self._wake.wait()
            self._wake.clear()

    def _seen(self, pod: Pod) -> None:
        if is_mirror(pod):
            self._shown(mirrored_uid(pod), pod)
            self._wake.set()

    def _lost(self, pod: Pod) -> None:
        if is_mirror(pod):
            self._shown(mirrored_uid(pod), None)
            self._wake.set()

    async def _settle(self, wanted: Pod | None, mirror: Pod | None) -> None:
        try:
            if mirror is None and wanted is not None:
                await self._client.create(self._mirror(wanted))
            elif mirror is not None and not _shows(mirror, wanted):
                meta = mirror.metadata
                await self._client.delete(Pod, meta.name, meta.namespace, grace=0, uid=meta.uid)
        except (ApiError, ConnectionError) as error:
            if mirror is not None and isinstance(error, ApiError) and error.code in _GONE:
                return
            pod = wanted or mirror
            log.warning("cannot settle mirror pod=%s error=%s", pod.metadata.name if pod else "", error)
            self._clock.call_later(RETRY_SECONDS, self._wake.set)

    def _mirror(self, pod: Pod) -> Pod:
        annotations = {**pod.metadata.annotations, MIRROR: pod.metadata.annotations[HASH]}
        meta = replace(pod.metadata, uid="", annotations=annotations, owner_references=(self._owner(),))
        return replace(pod, metadata=meta, status=PodStatus())


def _shows(mirror: Pod, wanted: Pod | None) -> bool:
    """Whether the mirror is the image of `wanted` and stays."""
    return (
        wanted is not None
        and mirror.metadata.deletion_timestamp is None
        and mirrored_uid(mirror) == wanted.metadata.uid
    )


def _key(pod: Pod) -> _Key:
    return pod.metadata.namespace, pod.metadata.name
