"""Container events: from the runtime where it sends them, else by relisting four times a second.

The goal is that room is given up within a second of a container's exit, and looking is cheap (two list calls, under a
millisecond), so the interval is below the second that Kubernetes allows itself. Where the runtime sends events, looking
goes on every ten seconds as the safety net.
"""

import logging

from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.pods.known_pods import KnownPods
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import EventKind

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
LOOK_WITH_EVENTS_SECONDS = 10.0

_States = dict[str, dict[str, str]]


class RuntimeWatch:
    """Wakes every pod in which something changed, and all of them when the runtime answers again, so that nobody has to
    wait for a retry. `look` and `listen` run until cancelled.

    `healthy` is False while the runtime does not answer.
    """

    def __init__(self, runtime: Runtime, known: KnownPods, *, clock: Clock) -> None:
        self._runtime, self._known, self._clock = runtime, known, clock
        self._states: _States = {}
        self._pod_of: dict[str, str] = {}
        self._listening = False
        self.healthy = True

    async def look(self) -> None:
        while True:
            await self.relist()
            await self._clock.sleep(LOOK_WITH_EVENTS_SECONDS if self._listening else LOOK_SECONDS)

    async def relist(self) -> None:
        """Look once and report what differs from the last time."""
        try:
            sandboxes = await self._runtime.list_sandboxes()
            containers = await self._runtime.list_containers()
        except CRIError as error:
            if self.healthy:
                log.warning("runtime does not answer error=%s", error)
            self.healthy = False
            return
        returned, self.healthy = not self.healthy, True
        home = {sandbox.id: sandbox.uid for sandbox in sandboxes}
        self._pod_of = {
            container.id: home[container.sandbox_id] for container in containers if container.sandbox_id in home
        }
        states: _States = {uid: {} for uid in home.values()}
        for sandbox in sandboxes:
            states[sandbox.uid][sandbox.id] = sandbox.state.value
        for container in containers:
            if container.id in self._pod_of:
                states[self._pod_of[container.id]][container.id] = container.state.value
        before, self._states = self._states, states
        for uid in before | states:
            if before.get(uid) != states.get(uid):
                self._known.listed(uid, states.get(uid, {}))
        if returned:
            log.info("runtime answers again")
            self._known.wake_all()

    async def listen(self) -> None:
        """Follow the runtime's events; returns at once when it has none. A CRI-O in which they are not switched on ends
        the stream in order before it has told any.
        """
        while True:
            told = False
            try:
                events = await self._runtime.events()
                if events is None:
                    return
                self._listening = True
                async for event in events:
                    told = True
                    if event.kind in (EventKind.STOPPED, EventKind.DELETED):
                        await self._tell(event.container_id)
                if not told:
                    self._listening = False
                    return
            except CRIError as error:
                log.warning("runtime events ended error=%s", error)
            self._listening = False
            await self._clock.sleep(LOOK_SECONDS)

    async def _tell(self, container_id: str) -> None:
        uid = self._pod_of.get(container_id)
        if uid is None:
            await self.relist()
        else:
            self._states.get(uid, {})[container_id] = ContainerState.EXITED.value
            self._known.wake(uid)
