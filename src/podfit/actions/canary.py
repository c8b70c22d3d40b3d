"""`podfit resize --canary N`: resizes some pods, watches them by events, then goes on with the others or goes back.

    the first N pods, until their nodes have done it ─▶ watched ─▶ nothing happened: the others
                                                              └▶ something did: the N get their sizes back

What is decided of what is seen is `decide.workload.canary`. Throttling is no event: its counters are read every 15 s.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec.structs import replace

from podfit.actions.resize_pods import Options, Outcome, Progress, carry_out
from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import Target
from podfit.answers.plan.plan import PodRequest, plan_requests
from podfit.answers.plan.read_plan import Planned
from podfit.answers.plan.resize_request import BEFORE, from_template
from podfit.answers.plan.result import UNCHANGED, PodPlan
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.throttling import ThrottlingReader
from podfit.core.clock import Clock
from podfit.core.durations import short_duration
from podfit.decide.workload.canary import (
    Canary,
    GoBack,
    Gone,
    Observation,
    Seen,
    Throttled,
    TimeUp,
    Triggers,
    begin,
    step,
)

MOST = 50
"""Pods that are watched, each by a watch of its own."""
LOOK_SECONDS = 15.0
"""From one reading of the counters of throttling to the next."""


class CanaryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` that the first `number` pods are watched for."""

    number: int
    seconds: float
    triggers: Triggers


class CanaryTold(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What became of the canary: its `pods`, what was `seen` and, when it went back, what became of each of them."""

    pods: tuple[str, ...]
    watched_for: float = 0.0
    seen: str = ""
    rolled_back: bool = False
    back: tuple[Outcome, ...] = ()


async def cannot_watch(client: Client, planned: Planned, canary: CanaryOptions) -> str:
    """Why throttling cannot be watched; empty when it can, or nobody asked."""
    if canary.triggers.throttled is None:
        return ""
    told = await ThrottlingReader(client).read(planned.snapshot.pods)
    return next((f"throttling of node {node} may not be read: {why}" for node, why in told.problems.items()), "")


class CanaryRun:
    """`outcomes` gives those of all pods that were resized, in the plan's order; `told` is complete when it ends.
    `tell` hears a line of what is being done.
    """

    def __init__(
        self,
        client: Client,
        planned: Planned,
        options: Options,
        canary: CanaryOptions,
        clock: Clock,
        *,
        about: Target,
        namespace: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client, self._planned, self._options, self._canary = client, planned, options, canary
        self._clock, self._about, self._namespace, self._tell = clock, about, namespace, tell
        changing, first = 0, 0
        for number, pod in enumerate(planned.plan.pods, 1):
            changing += pod.verdict != UNCHANGED
            if pod.verdict != UNCHANGED and changing <= canary.number:
                first = number
        self._first, self._rest = planned.plan.pods[:first], planned.plan.pods[first:]
        names = {pod.pod for pod in self._first if pod.verdict != UNCHANGED}
        self._before = {pod.metadata.uid: pod for pod in planned.snapshot.pods if pod.metadata.name in names}
        self.told = CanaryTold(pods=tuple(sorted(names)))

    async def outcomes(self, progress: Progress) -> AsyncIterator[Outcome]:
        """Raises ConnectionError when the server goes away."""
        well = True
        async for outcome in self._carried_out(self._first, progress, wait=True):
            well = well and outcome.good
            yield outcome
        if not self._before:
            why = ""
        elif not well:
            why = "not every pod of the canary was resized"
        else:
            why = await self._watched()
        if why:
            self.told.seen, self.told.rolled_back = why, True
            self._tell(f"{why}: going back")
            self.told.back = tuple(await self._back())
            return
        if self._rest:
            async for outcome in self._carried_out(self._rest, progress, wait=self._options.wait):
                yield outcome

    def _carried_out(self, pods: tuple[PodPlan, ...], progress: Progress, *, wait: bool) -> AsyncIterator[Outcome]:
        part = replace(self._planned, plan=replace(self._planned.plan, pods=pods))
        return carry_out(self._client, part, replace(self._options, wait=wait), self._clock, progress=progress)

    async def _watched(self) -> str:
        """What was seen that speaks against the size; empty when nothing was in time."""
        canary, began = self._begin(), self._clock.monotonic()
        which = f"{len(self._before)} {'pod' if len(self._before) == 1 else 'pods'}"
        self._tell(f"watching {which} for {short_duration(self._canary.seconds)}: {self._canary.triggers}")
        seen: asyncio.Queue[Observation] = asyncio.Queue()
        timer = self._clock.call_later(self._canary.seconds, lambda: seen.put_nowait(TimeUp()))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._follow(pod, seen)) for pod in self._before.values()]
                if self._canary.triggers.throttled is not None:
                    tasks.append(group.create_task(self._look_for_throttling(seen)))
                verdict = None
                while verdict is None:
                    canary, verdict = step(canary, await seen.get())
                for task in tasks:
                    task.cancel()
        except asyncio.CancelledError:
            self._tell(f"interrupted: {', '.join(self.told.pods)} keeps the new size; back by --undo")
            raise
        finally:
            timer.cancel()
            self.told.watched_for = round(self._clock.monotonic() - began, 3)
        return verdict.why if isinstance(verdict, GoBack) else ""

    def _begin(self) -> Canary:
        uids = {pod.metadata.name: uid for uid, pod in self._before.items()}
        restarts = {uids[pod.pod]: [one.container for one in pod.restarts] for pod in self._first if pod.pod in uids}
        return begin(self._canary.triggers, self._before.values(), restarts)

    async def _follow(self, pod: Pod, seen: asyncio.Queue[Observation]) -> None:
        meta = pod.metadata
        informer = Informer(
            self._client, PODS, clock=self._clock, namespace=meta.namespace, fields=f"metadata.name={meta.name}"
        )

        def there(now: Pod) -> None:
            seen.put_nowait(Seen(now) if now.metadata.uid == meta.uid else Gone(meta.uid))

        informer.add_handler(
            add=there, update=lambda _, now: there(now), delete=lambda _: seen.put_nowait(Gone(meta.uid))
        )
        await informer.run()

    async def _look_for_throttling(self, seen: asyncio.Queue[Observation]) -> None:
        """Since the canary has its size; what cannot be read at one time is looked at the next."""
        reader, pods = ThrottlingReader(self._client), tuple(self._before.values())
        await reader.read(pods)
        while True:
            await self._clock.sleep(min(LOOK_SECONDS, max(1.0, self._canary.seconds / 2)))
            for (_, name, container), share in (await reader.read(pods)).share.items():
                seen.put_nowait(Throttled(name, container, share))

    async def _back(self) -> list[Outcome]:
        """The sizes that they had, and no note of a resize that was undone."""
        snapshot = await Reader(self._client, self._namespace).read(self._about, usage=True)
        stay = [pod for pod in snapshot.pods if not pod.metadata.deletion_timestamp]
        there = [pod for pod in stay if pod.metadata.uid in self._before]
        requests = tuple(PodRequest(pod, from_template(self._before[pod.metadata.uid])) for pod in there)
        planned = Planned(snapshot=snapshot, requests=requests, plan=plan_requests(snapshot, requests))
        options = replace(self._options, wait=True, disrupt=True)
        found = [outcome async for outcome in carry_out(self._client, planned, options, self._clock)]
        for pod in there:
            meta = pod.metadata
            if BEFORE not in self._before[meta.uid].metadata.annotations and BEFORE in meta.annotations:
                note = {"metadata": {"annotations": {BEFORE: None}}}
                await self._client.patch(PODS, meta.name, meta.namespace, note, content_type=MERGE_PATCH)
        return found
