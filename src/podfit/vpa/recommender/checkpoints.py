"""Saves and loads VerticalPodAutoscalerCheckpoint objects (V-036, V-037, V-053)."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerCheckpoint
from podfit.api.meta import codec
from podfit.client.rest import JSON_PATCH, Client
from podfit.client.vpa_kinds import CHECKPOINTS, GROUP
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.checkpoints import is_of_slice
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.tracked import VpaKey
from podfit.vpa.recommender.workers import each_by_workers

log = logging.getLogger(__name__)
NOT_FOUND = 404
AT_ONCE = 100
"""VPAs whose checkpoints are made together; after each of these parts the time is looked at."""


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class Checkpoints:
    def __init__(self, client: Client, clock: Clock, state: ClusterState, namespace: str = "") -> None:
        self._client, self._clock, self._state, self._namespace = client, clock, state, namespace
        self._written: dict[VpaKey, float] = {}

    def restore(self, checkpoints: Iterable[VerticalPodAutoscalerCheckpoint]) -> None:
        """Restores those of VPAs that the model has."""
        known, now = set(self._state.vpas), self._clock.now().timestamp()
        for checkpoint in checkpoints:
            if _owner(checkpoint) in known:
                try:
                    self._state.restore(checkpoint, now)
                except ValueError as error:
                    log.warning("checkpoint not loaded checkpoint=%s error=%s", _name(checkpoint), error)

    async def list_with_retries(self) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
        """Asks until it gets an answer: what would be written without it would take the place of what was known."""
        backoff = Backoff(1.0, 30.0, self._client.random)
        while True:
            try:
                return await self._list()
            except (ApiError, ConnectionError, ValueError) as error:
                delay = backoff.next()
                log.warning("checkpoints not read retry_seconds=%.2f error=%s", delay, error)
                await self._clock.sleep(delay)

    async def write(self, seconds: float, workers: int) -> None:
        """Those that were written longest ago first, for so long, and a part of them at least."""
        began = self._clock.monotonic()
        keys = sorted(self._state.vpas, key=lambda key: self._written.get(key, 0.0))
        self._written = {key: self._written[key] for key in keys if key in self._written}
        for start in range(0, len(keys), AT_ONCE):
            if start and self._clock.monotonic() - began >= seconds:
                log.warning("checkpoints not written in time left=%d", len(keys) - start)
                return
            now = self._clock.now().timestamp()
            made = list(self._state.checkpoints(keys[start : start + AT_ONCE], now))
            await each_by_workers(
                workers, [checkpoint for _, every in made for checkpoint in every if _says(checkpoint)], self._store
            )
            self._written |= dict.fromkeys(keys[start : start + AT_ONCE], now)

    async def collect(self, vpas: Callable[[], Collection[VpaKey]], ignored: Collection[str]) -> None:
        """Delete those whose VPA does not exist; `vpas` are all that there are, of other recommenders too."""
        try:
            found, there = await self._list(), vpas()
            for checkpoint in found:
                gone = _owner(checkpoint) not in there or self._has_no_slice(checkpoint)
                if gone and checkpoint.metadata.namespace not in ignored:
                    meta = checkpoint.metadata
                    await self._client.delete(CHECKPOINTS, meta.name, meta.namespace, uid=meta.uid)
                    log.info("checkpoint deleted, what it is of is gone checkpoint=%s", _name(checkpoint))
        except (ApiError, ConnectionError, ValueError) as error:
            log.warning("checkpoints not collected error=%s", error)

    def _has_no_slice(self, checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
        """Whether it is of a slice that its VPA, one of this recommender, has no more."""
        own = is_of_slice(checkpoint) and self._state.has_vpa(_owner(checkpoint))
        return own and not self._state.own.knows(checkpoint)

    async def _list(self) -> tuple[VerticalPodAutoscalerCheckpoint, ...]:
        found: list[VerticalPodAutoscalerCheckpoint] = []
        where = f"namespaces/{self._namespace}/" if self._namespace else ""
        query = {"limit": "500"}
        while True:
            path = f"/apis/{GROUP}/v1/{where}{CHECKPOINTS.info.resource}"
            page = codec.decode(await self._client.request("GET", path, query=query), _Page)
            found += (checkpoint for item in page.items if (checkpoint := _read(item)) is not None)
            if not page.metadata.continue_:
                return tuple(found)
            query["continue"] = page.metadata.continue_

    async def _store(self, checkpoint: VerticalPodAutoscalerCheckpoint) -> None:
        meta = checkpoint.metadata
        patch: list[Mapping[str, object]] = [{"op": "add", "path": "/status", "value": checkpoint.status}]
        try:
            try:
                await self._client.patch(CHECKPOINTS, meta.name, meta.namespace, patch, content_type=JSON_PATCH)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
                await self._client.create_in(CHECKPOINTS, checkpoint, meta.namespace)
        except (ApiError, ConnectionError) as error:
            log.warning("checkpoint not written checkpoint=%s error=%s", _name(checkpoint), error)


def _read(item: msgspec.Raw) -> VerticalPodAutoscalerCheckpoint | None:
    """One that cannot be read keeps the others from nothing."""
    try:
        return codec.decode(bytes(item), VerticalPodAutoscalerCheckpoint)
    except ValueError as error:
        log.warning("checkpoint cannot be read error=%s", error)
        return None


def _owner(checkpoint: VerticalPodAutoscalerCheckpoint) -> VpaKey:
    return VpaKey(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name)


def _name(checkpoint: VerticalPodAutoscalerCheckpoint) -> str:
    return f"{checkpoint.metadata.namespace}/{checkpoint.metadata.name}"


def _says(checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
    """One without samples would say nothing, or take the place of one that could not be read."""
    status = checkpoint.status
    return bool(status.total_samples_count or status.memory_histogram.bucket_weights)
