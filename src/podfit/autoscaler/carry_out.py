"""Carries out the machine's effects: asks the provider, taints and evicts, tells events, writes the status."""

import logging
from collections.abc import Iterable

import msgspec
import yaml
from msgspec.structs import replace

from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.v1.types import ObjectMeta
from podfit.autoscaler.metrics import AutoscalerMetrics
from podfit.autoscaler.provider import Provider, ProviderError
from podfit.autoscaler.removals import Removals
from podfit.client import room_gifts
from podfit.client.events import EventRecorder
from podfit.client.rest import MERGE_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.capacity.look import (
    DeleteInstances,
    Effect,
    Event,
    InstancesDeleted,
    LowerTarget,
    Moved,
    MovePod,
    RemoveNode,
    Report,
    Say,
    ScaledUp,
    ScaleUp,
    ShrinkPods,
    Shrunk,
    SoftTaint,
)
from podfit.decide.capacity.readiness import CANDIDATE
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.capacity.status import AutoscalerStatus
from podfit.net.loop_turns import beside

log = logging.getLogger(__name__)
LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
STATUS, OUTLOOK = "status", "podfit-outlook"
"""Keys of the status ConfigMap: upstream's, and what `podfit why` reads."""
NOT_FOUND = 404
SLOW = 20
"""A group in YAML takes as long as so many objects that are decided about."""
EFFECT = "PreferNoSchedule"


class Hands:
    """What the autoscaler does to the world. `removals` are begun by the loop, which waits for none of them."""

    def __init__(
        self,
        client: Client,
        provider: Provider,
        clock: Clock,
        settings: AutoscalerSettings,
        recorder: EventRecorder,
        metrics: AutoscalerMetrics,
    ) -> None:
        self._client, self._provider, self._clock = client, provider, clock
        self._settings, self._recorder, self._metrics = settings, recorder, metrics
        self.removals = Removals(client, provider, clock, settings.drain, self.say)
        self._map = ObjectReference(kind="ConfigMap", namespace=settings.namespace, name=settings.status_name)

    def say(self, said: Say) -> None:
        about = said.about if said.about is not None else self._map
        self._recorder.event(about, said.type, said.reason, said.message)

    async def carry_out(self, effect: Effect) -> Iterable[Event]:
        """All but the removal of a node; what came of it. Never raises what a provider or the API answers."""
        self._metrics.did(effect)
        match effect:
            case Say():
                self.say(effect)
            case ScaleUp():
                return (await self._scale_up(effect),)
            case LowerTarget():
                await self._lower(effect)
            case DeleteInstances():
                return (await self._delete(effect),)
            case ShrinkPods():
                return (await self._shrink(effect),)
            case MovePod():
                return (await self._move(effect),)
            case SoftTaint():
                await self._soft_taint(effect)
            case Report():
                await self._report(effect)
            case RemoveNode():
                raise AssertionError("a removal is a task of the loop")
        return ()

    async def _scale_up(self, effect: ScaleUp) -> ScaledUp:
        errors: dict[str, str] = {}
        for increase in effect.increases:
            try:
                await self._provider.increase(increase.group.id, increase.by)
            except ProviderError as error:
                errors[increase.group.id] = str(error)
        outcome = ScaledUp(effect, errors)
        self._metrics.scaled_up(outcome)
        return outcome

    async def _lower(self, effect: LowerTarget) -> None:
        try:
            await self._provider.decrease(effect.group, effect.by)
        except ProviderError as error:
            log.warning("a target is not lowered group=%s by=%d error=%s", effect.group, effect.by, error)

    async def _delete(self, effect: DeleteInstances) -> InstancesDeleted:
        try:
            await self._provider.delete_instances(effect.group, effect.ids)
        except ProviderError as error:
            return InstancesDeleted(effect, str(error))
        return InstancesDeleted(effect)

    async def _shrink(self, effect: ShrinkPods) -> Shrunk:
        """All of them, or nobody: each is tried first. What was done when an answer fails stays done; the next look
        counts it."""
        refusals: dict[str, str] = {}
        try:
            for change in effect.plan.shrinks:
                if text := await room_gifts.refusal(self._client, change):
                    refusals[change.pod.metadata.uid] = text
            if not refusals:
                for change in effect.plan.shrinks:
                    await room_gifts.give(self._client, change, effect.waiting)
        except (ApiError, ConnectionError) as error:
            log.warning("room is not made error=%s", error)
            return Shrunk(effect, refusals, str(error))
        return Shrunk(effect, refusals)

    async def _move(self, effect: MovePod) -> Moved:
        try:
            await self._client.evict(effect.pod)
        except (ApiError, ConnectionError) as error:
            return Moved(effect, str(error))
        return Moved(effect)

    async def _soft_taint(self, effect: SoftTaint) -> None:
        try:
            await self.removals.taint(effect.node, CANDIDATE, EFFECT, on=effect.on)
        except (ApiError, ConnectionError) as error:
            log.warning("a soft taint is not written node=%s error=%s", effect.node, error)

    # ------------------------------------------------------------------ the status

    async def _report(self, effect: Report) -> None:
        if not self._settings.status_written:
            return
        text = await beside(SLOW * len(effect.status.node_groups), _yaml, effect.status)
        outlook = msgspec.json.encode(effect.outlook).decode()
        now = format_time(self._clock.now())
        data = {STATUS: text, OUTLOOK: outlook}
        patch = {"metadata": {"annotations": {LAST_UPDATED: now}}, "data": data}
        name, namespace = self._settings.status_name, self._settings.namespace
        try:
            written = await self._client.patch(ConfigMap, name, namespace, patch, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.code != NOT_FOUND:
                log.warning("the status is not written error=%s", error)
                return
            meta = ObjectMeta(name=name, namespace=namespace, annotations={LAST_UPDATED: now})
            try:
                written = await self._client.create(ConfigMap(metadata=meta, data=data))
            except (ApiError, ConnectionError) as failure:
                log.warning("the status is not written error=%s", failure)
                return
        except ConnectionError as error:
            log.warning("the status is not written error=%s", error)
            return
        self._map = replace(self._map, uid=written.metadata.uid, api_version="v1")


def _yaml(status: AutoscalerStatus) -> str:
    text: str = yaml.dump(msgspec.to_builtins(status), Dumper=yaml.CSafeDumper, sort_keys=False)
    return text
