"""One round of making real what was allocated to a pod: carries the node machine's effects out by the actuator."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Protocol

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.effects import Actuate, Effect, MeasureMemory, NoteRestarts, StopForResize, SyncAgain
from podfit.decide.node.events import ActuationDue, Event
from podfit.kubelet.actuation.actuator import Actuator, LivePod

Stop = Callable[[Collection[str]], Awaitable[None]]
"""Stop what ends in any case, and these containers, which are to start at their new size."""


class NodeWorld(Protocol):
    """What carries out whatever is not about the pod alone: `kubelet.allocation`."""

    async def carry_out(self, effect: Effect, /) -> Iterable[Event]: ...


class Actuation:
    """The world in which what was allocated to the pod is made real, for one round of a sync, before containers start.
    To be left only when what follows from `due` has been carried out: until then usage is held below the limits that
    come (docs/shrink.md).

    `ending` are names of running containers that are to stop in any case, `again` instances that end and start anew;
    `agreed` is called when the runtime has agreed to all, before that is noted.

    `live` is what runs by now, `changed` whether a step was done, `again` the seconds after which a failure is to be
    tried anew, None without one; `replaced` are the containers that were stopped to start at their new size.
    """

    def __init__(
        self,
        actuator: Actuator,
        pod: Pod,
        live: LivePod,
        *,
        node: NodeWorld,
        stop: Stop,
        ending: Collection[str] = (),
        again: Mapping[str, str] | None = None,
        agreed: Callable[[], None] = lambda: None,
    ) -> None:
        self._actuator, self._pod, self._node, self._stop = actuator, pod, node, stop
        self._agreed = agreed
        self._ending, self._again, self._hold = ending, again or {}, actuator.hold()
        self._began: float | None = None
        self.live, self.changed = live, False
        self.again: float | None = None
        self.replaced: tuple[str, ...] = ()

    async def __aenter__(self) -> "Actuation":
        self._actuator.begin(self._pod)
        await self._hold.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._hold.__aexit__(kind, error, trace)
        finally:
            self._actuator.end(self._pod)
        if kind is None and self.again is None:
            self._actuator.agree(self._pod)
        if self._began is not None and kind is None:
            self._actuator.observe(self._actuator.clock.monotonic() - self._began, success=self.again is None)

    def due(self) -> ActuationDue:
        return self._actuator.due(self._pod, self.live, self._ending, self._again)

    async def carry_out(self, effect: Effect) -> Iterable[Event]:
        match effect:
            case NoteRestarts(pod=pod, instances=instances):
                await self._actuator.note_restarts(pod, instances)
                return ()
            case StopForResize(restarting=restarting):
                await self._stop(restarting)
                stopped = {*self._ending, *restarting}
                staying = {name: key for name, key in self.live.containers.items() if name not in stopped}
                self.live, self._ending, self._again = replace(self.live, containers=staying), (), {}
                self.replaced = restarting
                return (self.due(),)
            case MeasureMemory(due=due, limits=limits):
                self._begin()
                return (await self._actuator.measured(due, self.live, limits, self._hold),)
            case Actuate(pod=pod, steps=steps):
                self._begin()
                done, ended = await self._actuator.carry_out(pod, self.live, steps, self._agreed)
                self.changed = self.changed or done > 0
                return (ended,)
            case SyncAgain(seconds=seconds):
                self.again = seconds
                return ()
            case _:
                return await self._node.carry_out(effect)

    def _begin(self) -> None:
        if self._began is None:
            self._began = self._actuator.clock.monotonic()
