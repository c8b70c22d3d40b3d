"""Makes room for resizes that a node has deferred (docs/room.md): shrinks lower-priority neighbours, in place.

    pod becomes Deferred ─┐                      ┌─ try every shrink without doing it; one is refused: plan without it
    a neighbour changes  ─┼─▶ its node ─▶ plan ──┼─ shrink, in order, through pods/resize
    allocatable changes  ─┘                      └─ evict, if that is allowed and the plan says so

Nothing is remembered about a plan. The next event plans anew from what the pods say by then, and what is under way
counts as done. Every write names the version of the pod that the plan saw, so a plan that was made from old facts ends
in a conflict, and the event that makes the facts new again is on its way.
"""

from collections.abc import Iterable
from enum import Enum
from functools import partial

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.client import room_gifts
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.decide.node.drive import drive
from podfit.decide.node.room import texts
from podfit.decide.node.room.minimum import MINIMUM, BadMinimum, MinimumSize, offer_version, offers
from podfit.decide.node.room.plan import Impossible, RoomPlan, keeps_node, waits_for_room, why_not
from podfit.decide.node.room.shrinkable import Shrink
from podfit.decide.node.room.turns import Looked, MakeRoom, NoRoom, RoomMachine, turn_of
from podfit.net.loop_turns import beside

ACCOUNT, EVICTING_ACCOUNT = "room-controller", "room-eviction-controller"
"""Service accounts in kube-system; the role of the second may end pods, too."""
COMPONENT = "podfit-room"
NORMAL, WARNING = "Normal", "Warning"
_BY_NODE, _WAITING = "pods that may make room on a node", "waiting for room"
_REFUSED_BY_BUDGET = 429
BUDGET_SECONDS = 30.0


class RoomController(Controller[str]):
    """Keys are names of nodes. With `evict` pods may be ended where shrinking is not enough."""

    def __init__(
        self,
        client: Client,
        *,
        informers: Informers,
        recorder: EventRecorder,
        clock: Clock,
        gates: FeatureGates,
        evict: bool = False,
    ) -> None:
        self._client, self._recorder = client, recorder
        self._clock, self._machine = clock, RoomMachine(gates, evict)
        self._unwilling: dict[str, tuple[int, str]] = {}  # by UID: as it was when it could not be shrunk
        self._told: dict[tuple[str, str], str] = {}  # by UID and reason: what an event said last
        self._nodes = informers.of(Node)
        self._pods = informers.of(Pod)
        self._pods.add_index(_BY_NODE, _node_of)
        self._pods.add_index(_WAITING, _waits_on)
        super().__init__(clock, self._nodes, self._pods)
        self._pods.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._forget)
        self._nodes.add_handler(update=self._node_changed)

    def _seen(self, pod: Pod) -> None:
        if pod.spec.node_name and self._pods.by_index(_WAITING, pod.spec.node_name):
            self.queue.add(pod.spec.node_name)

    def _forget(self, pod: Pod) -> None:
        self._unwilling.pop(pod.metadata.uid, None)
        self._told = {key: text for key, text in self._told.items() if key[0] != pod.metadata.uid}
        self._seen(pod)

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.status.allocatable != new.status.allocatable and self._pods.by_index(_WAITING, new.metadata.name):
            self.queue.add(new.metadata.name)

    async def reconcile(self, key: str) -> float | None:
        """Plan for the pods that wait on this node in the order in which it tries them, until one plan is acted on."""
        visit = _Visit(self, key)
        await drive(_Beside(self._machine), visit, *await self.look(key))
        return visit.again

    async def look(self, key: str) -> tuple[Looked, ...]:
        """The node by what the API has told by now; nothing when it is gone."""
        node = self._nodes.get(key)
        if node is None:
            return ()
        pods = {pod.metadata.uid: pod for pod in self._pods.by_index(_BY_NODE, key)}
        willing = [pod for uid, pod in pods.items() if self._unwilling.get(uid) != offer_version(pod)]
        offered = await beside(_containers(willing), offers, willing)
        targets = {uid: self._told_of(pods[uid], offer) for uid, offer in offered.items()}
        queue = sorted(self._pods.by_index(_WAITING, key), key=partial(turn_of, gates=self._machine.gates))
        return (Looked(tuple(queue), pods, node.status.allocatable, targets),)

    def cannot(self, waiting: Pod, why: Impossible) -> None:
        self._tell(waiting, WARNING, "NoRoomToMake", why_not(why, evict=self._machine.evict))

    def _told_of(self, pod: Pod, offer: dict[str, MinimumSize] | BadMinimum) -> dict[str, MinimumSize]:
        """How far each container may shrink. A VPA's recommendation would be looked up here."""
        if isinstance(offer, BadMinimum):
            self._tell(pod, WARNING, "InvalidMinimum", f"Annotation {MINIMUM} is ignored: {offer}")
            return {}
        return offer

    # ------------------------------------------------------------------ doing

    async def make(self, waiting: Pod, made: RoomPlan) -> "_Made":
        """All of it, or nothing of it."""
        try:
            for change in made.shrinks:
                if not await self._agreed(waiting, change):
                    return _Made.OTHERWISE
            for victim in made.victims:
                if not await self._may_go(waiting, victim):
                    return _Made.LATER
            self._tell(waiting, NORMAL, texts.MAKING, texts.intent(made))
            for change in made.shrinks:
                await room_gifts.give(self._client, change, waiting)
                self._recorder.event(change.pod, NORMAL, texts.GAVE_ROOM, texts.gift(change, waiting))
            for victim in made.victims:
                await self._end(victim, waiting, made)
        except ApiError as error:
            if error.code == _REFUSED_BY_BUDGET:
                return _Made.LATER
            if error.code not in room_gifts.STALE:
                raise
        return _Made.UNDER_WAY

    async def _agreed(self, waiting: Pod, change: Shrink) -> bool:
        """Ask the API server without doing it, so that nobody has given when somebody cannot."""
        text = await room_gifts.refusal(self._client, change)
        if text:
            self._unwilling[change.pod.metadata.uid] = offer_version(change.pod)
            self._tell(waiting, WARNING, texts.REFUSED, texts.refused(change, text))
        return not text

    async def _may_go(self, waiting: Pod, victim: Pod) -> bool:
        """Ask the API server whether the pod may be evicted, before anybody has given anything."""
        try:
            await self._client.evict(victim, unchanged=True, dry_run=True)
        except ApiError as error:
            if error.code != _REFUSED_BY_BUDGET:
                raise
            self._tell(
                waiting, WARNING, "EvictionRefused", f"{texts.full_name(victim)} cannot be evicted: {error.message}"
            )
            return False
        return True

    async def _end(self, victim: Pod, waiting: Pod, made: RoomPlan) -> None:
        await self._client.evict(victim, unchanged=True)
        why = f"Evicted to make room for the resize of {texts.important(waiting)}"
        text = f"{why}: shrinking neighbours does not free the {texts.amounts(made.missing)} that is missing"
        self._recorder.event(victim, WARNING, "EvictedToMakeRoom", text)

    # ------------------------------------------------------------------ telling

    def _tell(self, pod: Pod, kind: str, reason: str, message: str) -> None:
        """An event, unless the last one with this reason said the same about the same desire."""
        text = f"{pod.metadata.generation} {message}"
        if self._told.get((pod.metadata.uid, reason)) != text:
            self._told[pod.metadata.uid, reason] = text
            self._recorder.event(pod, kind, reason, message)


class _Made(Enum):
    """What came of a plan."""

    UNDER_WAY = "the events of what was done bring the next look"
    LATER = "a disruption budget is in the way"
    OTHERWISE = "somebody who was to give cannot: another plan has to do without"


class _Visit:
    """The world of one look at a node; `again` are the seconds after which another is due by itself."""

    def __init__(self, controller: RoomController, node: str) -> None:
        self._controller, self._node = controller, node
        self.again: float | None = None

    async def carry_out(self, effect: NoRoom | MakeRoom) -> tuple[Looked, ...]:
        match effect:
            case NoRoom(pod=pod, why=why):
                self._controller.cannot(pod, why)
            case MakeRoom(pod=pod, plan=plan):
                outcome = await self._controller.make(pod, plan)
                if outcome is _Made.OTHERWISE:
                    return await self._controller.look(self._node)
                self.again = BUDGET_SECONDS if outcome is _Made.LATER else None
        return ()


class _Beside:
    """The machine, which looks through many containers in a thread."""

    def __init__(self, machine: RoomMachine) -> None:
        self._machine = machine

    async def take(self, seen: Looked) -> list[NoRoom | MakeRoom]:
        size = (1 + len(seen.waiting)) * _containers(seen.pods.values())
        if self._machine.evict:
            size *= len(seen.pods)  # who is spared is tried for each of those who may go
        return await beside(size, self._machine.effects, seen)


def _containers(pods: Iterable[Pod]) -> int:
    return sum(len(pod.spec.containers) for pod in pods)


def _node_of(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if keeps_node(pod) else ()


def _waits_on(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if waits_for_room(pod) else ()
