"""Ends the pods of a node that is shut down, in the order and time of `decide.node.shutdown`."""

import logging
from collections.abc import Collection

import msgspec

from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import Failure
from podfit.decide.node.shutdown import MESSAGE, TERMINATED, Groups, by_group, grace
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.runtime import labels

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
TELL_SECONDS = 2.0
"""For the API to hear of pods that have ended as their time was over."""


class GracefulShutdown(msgspec.Struct, frozen=True):
    known: KnownPods
    clock: Clock
    groups: Groups

    async def end_pods(self) -> None:
        """Returns when all have ended, or when their time is over."""
        if not self.groups:
            return
        for group, pods in by_group(self.groups, list(self.known.active())):
            log.info("shutting down priority=%d pods=%d seconds=%d", group.priority, len(pods), group.seconds)
            for pod in pods:
                failure = Failure(TERMINATED, MESSAGE, disruption=MESSAGE, grace=grace(pod, group))
                self.known.fail(pod.metadata.uid, failure)
            await self._ended({pod.metadata.uid for pod in pods}, group.seconds + TELL_SECONDS)

    async def _ended(self, uids: Collection[str], seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while left := [pod for pod in self.known.pods() if pod.metadata.uid in uids and _goes_on(pod)]:
            if self.clock.monotonic() >= until:
                names = ", ".join(str(labels.ref(pod)) for pod in left)
                log.warning("pods did not end in time for the shutdown pods=%s", names)
                return
            await self.clock.sleep(LOOK_SECONDS)


def _goes_on(pod: Pod) -> bool:
    """Whether it goes on, as far as the API knows."""
    return not has_ended(pod)
