"""The loop of the cluster autoscaler: a look every `--scan-interval`, and what follows from it.

A look is decided in a thread where it is large. Nodes are emptied beside it, in tasks of their own.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import NoReturn

import yaml

from podfit.api.core.v1.config.types import ConfigMap
from podfit.autoscaler.carry_out import Hands
from podfit.autoscaler.gathering import Gathering
from podfit.autoscaler.metrics import AutoscalerMetrics
from podfit.autoscaler.provider import Provided, Provider, ProviderError
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.capacity.expanders import Priorities
from podfit.decide.capacity.look import Event, Look, Looked, Moment, RemoveNode, State
from podfit.decide.capacity.machine import step
from podfit.decide.capacity.readiness import TO_BE_DELETED, is_going
from podfit.decide.capacity.settings import PRIORITY, AutoscalerSettings
from podfit.net.loop_turns import beside
from podfit.net.metrics import Metrics

log = logging.getLogger(__name__)
COMPONENT = "cluster-autoscaler"
PRIORITY_MAP, PRIORITIES = "cluster-autoscaler-priority-expander", "priorities"
LARGEST_MAP = 1 << 20
NOT_FOUND = 404


class ClusterAutoscaler:
    """`passed` is told when the loop begins, and of every look that has ended."""

    def __init__(
        self,
        client: Client,
        provider: Provider,
        *,
        clock: Clock,
        settings: AutoscalerSettings,
        metrics: Metrics,
        passed: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._provider, self._clock = client, provider, clock
        self._settings, self._passed = settings, passed
        self._informers = Informers(client, clock)
        self._gathering = Gathering(client, self._informers, clock)
        self._recorder = EventRecorder(client, component=COMPONENT, clock=clock)
        self._metrics = AutoscalerMetrics(metrics)
        self._hands = Hands(client, provider, clock, settings, self._recorder, self._metrics)
        self._state = State()
        self._removals: asyncio.TaskGroup | None = None
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Until cancelled; nodes that are being removed then stay as they are, and the next one goes on from there."""
        try:
            async with asyncio.TaskGroup() as group:
                self._removals = group
                for work in (self._informers.run(), self._gathering.run(), self._recorder.run()):
                    group.create_task(work)
                await self._gathering.synced()
                await self._untaint()
                await self._repeat()
        finally:
            await self._provider.close()

    async def _repeat(self) -> NoReturn:
        self._passed()
        while True:
            try:
                await self.scan()
            except (ApiError, ConnectionError) as error:
                log.warning("a look has failed error=%s", error)
            else:
                self._passed()
            await self._clock.sleep(self._settings.interval)

    async def scan(self) -> None:
        """One look."""
        began = self._clock.monotonic()
        provided, problem = await self._provided()
        look = await self._gathering.look(provided, problem, await self._priorities())
        await self._take(Looked(look), size=_size(look))
        self._metrics.looked(look, self._clock.monotonic() - began)

    async def _provided(self) -> tuple[Provided | None, str]:
        try:
            return await self._provider.refresh(self._gathering.nodes.list()), ""
        except ProviderError as error:
            log.warning("the provider of node groups does not answer error=%s", error)
            return None, f"the provider of node groups does not answer: {error}"

    async def _take(self, event: Event, size: int = 0) -> None:
        """One event after another, with all that follows from each."""
        async with self._turn:
            waiting = deque((event,))
            while waiting:
                moment = Moment(self._clock.now(), self._clock.monotonic())
                self._state, effects = await beside(size, step, self._state, waiting.popleft(), moment, self._settings)
                size = 0
                for effect in effects:
                    if isinstance(effect, RemoveNode):
                        self._begin(effect)
                    else:
                        waiting.extend(await self._hands.carry_out(effect))

    def _begin(self, job: RemoveNode) -> None:
        assert self._removals is not None, "the loop runs"
        self._removals.create_task(self._remove(job), name=f"removal of {job.node.metadata.name}")

    async def _remove(self, job: RemoveNode) -> None:
        outcome = await self._hands.removals.remove(job)
        self._metrics.removed(outcome, drained=bool(job.move))
        await self._take(outcome)

    async def _untaint(self) -> None:
        """Nodes that an autoscaler was about to remove when it ended are judged anew, as upstream does."""
        for node in self._gathering.nodes.list():
            if is_going(node) and node.metadata.deletion_timestamp is None:
                name, cordon = node.metadata.name, self._settings.drain.cordon
                try:
                    await self._hands.removals.taint(name, TO_BE_DELETED, "NoSchedule", on=False, cordon=cordon)
                except (ApiError, ConnectionError) as error:
                    log.warning("a node that was to be removed keeps its taint node=%s error=%s", name, error)

    # ------------------------------------------------------------------ priorities

    async def _priorities(self) -> Priorities:
        if PRIORITY not in self._settings.scale_up.expander:
            return Priorities()
        try:
            there = await self._client.get(ConfigMap, PRIORITY_MAP, self._settings.namespace)
        except ApiError as error:
            text = "not found" if error.code == NOT_FOUND else str(error)
            return Priorities(problem=f"Wrong configuration for priority expander: {text}. Ignoring update.")
        return await asyncio.to_thread(priorities_of, there.data.get(PRIORITIES))


def priorities_of(text: str | None) -> Priorities:
    """The priorities in the map's text: patterns by priority (C-035, C-036)."""
    begin = "Wrong configuration for priority expander:"
    if text is None:
        return Priorities(problem=f"{begin} there is no key {PRIORITIES}. Ignoring update.")
    if len(text) > LARGEST_MAP:
        return Priorities(problem=f"{begin} it is larger than {LARGEST_MAP >> 20} MiB. Ignoring update.")
    try:
        told = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        return Priorities(
            problem=f"{begin} Can't parse YAML with priorities in the configmap: {error}. Ignoring update."
        )
    good = isinstance(told, dict) and all(
        isinstance(priority, int)
        and isinstance(patterns, list)
        and all(isinstance(pattern, str) for pattern in patterns)
        for priority, patterns in told.items()
    )
    if not good:
        return Priorities(problem=f"{begin} it is no map of numbers to lists of patterns. Ignoring update.")
    return Priorities(told)


def _size(look: Look) -> int:
    """How much there is to decide, as `beside` counts it."""
    return len(look.nodes) + len(look.pods)
