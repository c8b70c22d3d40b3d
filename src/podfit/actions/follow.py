"""Follows a pod until its resize is over: complete, failed, or still waiting when the time is up."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from podfit.answers.facts.kinds import PODS
from podfit.answers.facts.pod_state import DEFERRED, ENDED, FAILING, INFEASIBLE, SETTLED
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.why.pods import PodWhy, why_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.workload.pods import is_ready

log = logging.getLogger(__name__)
Fate = tuple[str, str]
"""`done`, `waits` or `failed`, and what there is to say of it."""


class Follow(msgspec.Struct, frozen=True, kw_only=True):
    """`timeout` in seconds. `brief`: one that the node has deferred is not waited for. `ready`: until the pod is ready
    again, too.
    """

    timeout: float
    brief: bool = False
    ready: bool = False


class Follower:
    """`snapshot` is what the cluster was when it was planned."""

    def __init__(self, client: Client, snapshot: Snapshot, clock: Clock) -> None:
        self._client, self._snapshot, self._clock = client, snapshot, clock

    async def follow(self, pod: Pod, how: Follow, seen: Callable[[PodWhy], None]) -> tuple[Pod, str, str]:
        """The pod as it was last, and what became of it. `pod` is the API's answer to the resize; `seen` is told each
        state that it comes to.
        """
        pod = await self._client.get(PODS, pod.metadata.name, pod.metadata.namespace)
        last, about = pod, self._why(pod)
        seen(about)
        if fate := _fate(pod, about, how):
            return last, *fate
        loop, scope = asyncio.get_running_loop(), asyncio.timeout(None)
        timer = self._clock.call_later(max(0.0, how.timeout), lambda: scope.reschedule(loop.time()))
        try:
            async with scope:
                events = self._client.watch(
                    PODS,
                    pod.metadata.namespace,
                    resource_version=pod.metadata.resource_version,
                    fields=f"metadata.name={pod.metadata.name}",
                    timeout=max(1, round(how.timeout)),
                )
                async with aclosing(events):
                    async for event in events:
                        if event.type == "BOOKMARK":
                            continue
                        if event.type == "DELETED":
                            return last, "failed", "the pod was deleted"
                        last, about = event.object, self._why(event.object)
                        seen(about)
                        if fate := _fate(last, about, how):
                            return last, *fate
        except TimeoutError:
            log.debug("time is up pod=%s state=%s", pod.metadata.name, about.state)
        finally:
            timer.cancel()
        if about.state == SETTLED:
            return last, "done", ""
        state = "failed" if about.state == FAILING else "waits"
        return last, state, about.message or f"still {about.state} after {max(0.0, how.timeout):.3g} s"

    def _why(self, pod: Pod) -> PodWhy:
        return why_pod(pod, self._snapshot, self._clock.now())


def _fate(pod: Pod, about: PodWhy, how: Follow) -> Fate | None:
    """What became of a resize that is over, or that nobody waits for any longer."""
    if about.state == SETTLED:
        return ("done", "") if not how.ready or is_ready(pod) else None
    if about.state in (INFEASIBLE, ENDED):
        return "failed", about.message
    deferred = how.brief and about.state == DEFERRED and about.observed in (0, about.generation)
    return ("waits", about.message) if deferred else None
