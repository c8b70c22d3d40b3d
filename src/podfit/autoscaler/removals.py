"""Removes nodes: carries out what `decide.capacity.deletion` asks for, one task a node."""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.api.core.v1.pods.types import Pod
from podfit.autoscaler.provider import Provider, ProviderError
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.capacity import deletion
from podfit.decide.capacity.look import Removed, RemoveNode, Say
from podfit.decide.capacity.readiness import CANDIDATE, TO_BE_DELETED
from podfit.decide.capacity.settings import DrainSettings

log = logging.getLogger(__name__)
NOT_FOUND, CONFLICT = 404, 409
TRIES = 5
"""Of a write of a Node that others write as well."""


class Removals:
    """`say` tells of an event."""

    def __init__(
        self, client: Client, provider: Provider, clock: Clock, settings: DrainSettings, say: Callable[[Say], None]
    ) -> None:
        self._client, self._provider, self._clock = client, provider, clock
        self._settings, self._say = settings, say

    async def remove(self, job: RemoveNode) -> Removed:
        name, actions, answer = job.node.metadata.name, deletion.remove(job, self._settings), ""
        try:
            action = next(actions)
            while True:
                answer = await self._done(action, job)
                action = actions.send(answer)
        except StopIteration as end:
            return Removed(name, job.group, end.value)

    async def _done(self, action: deletion.Action, job: RemoveNode) -> deletion.Outcome:
        """Empty when it is done."""
        try:
            match action:
                case Say():
                    self._say(action)
                case deletion.Wait():
                    await self._clock.sleep(action.seconds)
                case deletion.Taint():
                    await self.taint(
                        job.node.metadata.name, TO_BE_DELETED, "NoSchedule", on=action.on, cordon=action.cordon
                    )
                case deletion.EvictPod():
                    await self._evict(action.pod, action.grace)
                case deletion.LookForPods():
                    return ", ".join([pod.metadata.name for pod in action.pods if await self._is_there(pod)])
                case deletion.DeleteMachine():
                    await self._delete(job)
        except (ApiError, ConnectionError, ProviderError) as error:
            return str(error) or type(error).__name__
        return ""

    async def taint(self, name: str, key: str, effect: str, *, on: bool, cordon: bool = False) -> None:
        """Its value is the time, in seconds since 1970 (C-079). Raises ApiError, ConnectionError."""
        value = str(int(self._clock.now().timestamp()))
        for attempt in range(TRIES):
            try:
                node = await self._client.get(Node, name)
            except ApiError as error:
                if error.code == NOT_FOUND and not on:
                    return
                raise
            taints = tuple(taint for taint in node.spec.taints if taint.key != key)
            if on:
                taints = (*taints, Taint(key=key, value=value, effect=effect))
                taints = tuple(taint for taint in taints if key != TO_BE_DELETED or taint.key != CANDIDATE)
            unschedulable = on if cordon else node.spec.unschedulable
            wanted = replace(node, spec=replace(node.spec, taints=taints, unschedulable=unschedulable))
            if wanted == node:
                return
            try:
                await self._client.update(wanted)
            except ApiError as error:
                if error.code != CONFLICT or attempt == TRIES - 1:
                    raise
                continue
            return

    async def _evict(self, pod: Pod, grace: float) -> None:
        try:
            await self._client.evict(pod, grace=int(grace))
        except ApiError as error:
            if error.code not in (NOT_FOUND, CONFLICT):  # it is gone, or another bears its name
                raise

    async def _is_there(self, pod: Pod) -> bool:
        try:
            there = await self._client.get(Pod, pod.metadata.name, pod.metadata.namespace)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return False
            raise
        return there.metadata.uid == pod.metadata.uid

    async def _delete(self, job: RemoveNode) -> None:
        """The machine, and then its Node where the provider leaves it."""
        await self._provider.delete_nodes(job.group, (job.node,))
        try:
            await self._client.delete(Node, job.node.metadata.name, uid=job.node.metadata.uid or None)
        except ApiError as error:
            if error.code not in (NOT_FOUND, CONFLICT):
                raise
