"""Plans what `podfit up --make-room` would do for a deferred resize: its machine, driven in virtual time."""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.answers.facts.settings import PREEMPT, MakeRoomSetting
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.live_node import LiveNode
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.decide.node.drive import at_once, drive
from podfit.decide.node.room.annotation import shrink_text
from podfit.decide.node.room.minimum import MINIMUM, BadMinimum, MinimumSize, minimums
from podfit.decide.node.room.plan import Impossible, RoomPlan, why_not
from podfit.decide.node.room.shrinkable import Shrink, after
from podfit.decide.node.room.turns import Looked, MakeRoom, NoRoom, RoomMachine, granted
from podfit.decide.resize.verdict import Deferred


class ShrunkPod(msgspec.Struct, frozen=True):
    """A pod that is shrunk, and by how much: `cpu 2 → 1`."""

    pod: str
    what: str


class RoomMade(msgspec.Struct, frozen=True):
    """What is done for one pod that waits."""

    gifts: tuple[ShrunkPod, ...] = ()
    victims: tuple[str, ...] = ()


class RoomMaker:
    """Beside one node model: helps what waits there, and remembers for whom it did what."""

    def __init__(self, model: LiveNode, pods: Iterable[Pod], room: MakeRoomSetting, gates: FeatureGates) -> None:
        self._model, self._room = model, room
        self._machine = RoomMachine(gates, evict=room.mode == PREEMPT)
        self._order: list[str] = []
        self._pods = {pod.metadata.uid: pod for pod in pods}
        self.made: dict[str, RoomMade] = {}
        self.refused: dict[str, Impossible] = {}

    def help(self, asked: Pod) -> tuple[str, ...]:
        """The uids that are granted what they wait for, in order, those that give among them."""
        self._pods[asked.metadata.uid] = asked
        self._order = []
        at_once(drive(self._machine, self, *self._look()))
        return tuple(self._order)

    def _look(self) -> tuple[Looked, ...]:
        """A look at how things stand by now; nothing where nobody lacks room, or where none is made."""
        model = self._model
        waiting = tuple(member.desired for member in model.queue() if _lacks_room(model, member.desired.metadata.uid))
        if not waiting or not self._room.mode:
            return ()
        targets = {uid: targets_of(pod) for uid, pod in self._pods.items()}
        return (Looked(waiting, self._pods, model.view.allocatable, targets),)

    async def carry_out(self, effect: NoRoom | MakeRoom) -> tuple[Looked, ...]:
        match effect:
            case NoRoom(pod=pod, why=why):
                self.refused[pod.metadata.uid] = why
                return ()
            case MakeRoom(pod=pod, plan=plan):
                for change in plan.shrinks:
                    self._order += self._shrunk(change)
                for victim in plan.victims:
                    self._pods.pop(victim.metadata.uid, None)
                    self._order += self._model.leave(victim.metadata.uid)
                self._remember(pod, plan)
                if not plan.shrinks and not plan.victims:
                    return ()
                for uid in self._order:
                    self._pods[uid] = granted(self._pods[uid])
                return self._look()

    def _shrunk(self, change: Shrink) -> tuple[str, ...]:
        smaller = after(change)
        self._pods[smaller.metadata.uid] = smaller
        return self._model.ask(smaller)

    def _remember(self, waiting: Pod, plan: RoomPlan) -> None:
        name = _name(waiting)
        earlier = self.made.get(waiting.metadata.uid, RoomMade())
        gifts = tuple(ShrunkPod(_name(shrink.pod), shrink_text(shrink, name)) for shrink in plan.shrinks)
        victims = tuple(map(_name, plan.victims))
        self.made[waiting.metadata.uid] = RoomMade((*earlier.gifts, *gifts), (*earlier.victims, *victims))

    def why_not(self, pod: Pod) -> Iterator[str]:
        """Why no room is made for a pod that waits, and whose minimum is ignored."""
        refused = self.refused.get(pod.metadata.uid)
        if refused is not None:
            yield f"no room can be made: {why_not(refused, evict=self._room.mode == PREEMPT)}"
        for other in self._pods.values():
            if (other.spec.priority or 0) < (pod.spec.priority or 0):
                try:
                    minimums(other)
                except BadMinimum as error:
                    yield f"{_name(other)} is not shrunk: its annotation {MINIMUM} is ignored: {error}"


def maker_of(node: str, model: LiveNode, snapshot: Snapshot) -> RoomMaker:
    pods = (pod for pod in snapshot.neighbours if pod.spec.node_name == node)
    return RoomMaker(model, pods, snapshot.room, snapshot.age.gates)


def targets_of(pod: Pod) -> dict[str, MinimumSize]:
    try:
        return minimums(pod)
    except BadMinimum:
        return {}


def _lacks_room(model: LiveNode, uid: str) -> bool:
    verdict = model.verdict(uid)
    return isinstance(verdict, Deferred) and bool(verdict.short_by)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
