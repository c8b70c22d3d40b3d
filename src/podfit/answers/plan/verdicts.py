"""Verdicts of a plan: what the API, the node and the scheduler say once all its resizes have been asked for."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from podfit.answers.facts import pod_state
from podfit.answers.facts.pod_state import FAILING, SETTLED, UNSCHEDULED, sizes_of, state_of
from podfit.answers.facts.scheduling import scheduled
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.live_node import LiveNode, short
from podfit.answers.node.making_room import RoomMaker
from podfit.answers.plan.changes import changes, resizing
from podfit.answers.plan.coming_nodes import place_of_pod, place_of_resize
from podfit.answers.plan.effects import Effects
from podfit.answers.plan.result import (
    CRASH,
    DEFERRED,
    ENDED,
    ERROR,
    FITS,
    IN_PROGRESS,
    INFEASIBLE,
    NOT_KNOWN,
    PROTECTED,
    REFUSED,
    UNCHANGED,
    UNSCHEDULABLE,
    PodPlan,
)
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.pod.spare import foretold
from podfit.decide.resize.checks import ResizeToCheck
from podfit.decide.resize.verdict import Deferred, Infeasible


class CheckedPod(msgspec.Struct, frozen=True):
    """A pod and what the API made of the request; `outcome` is None when there is nothing to send, as the pod is `over`
    or has no earlier size.
    """

    pod: Pod
    wanted: Pod
    outcome: ResizeToCheck | ApiError | None
    repeated: bool = False


class Verdicts(msgspec.Struct, frozen=True):
    """`nodes` and `makers` are by the name of the node, after every resize was asked for."""

    snapshot: Snapshot
    nodes: Mapping[str, LiveNode]
    makers: Mapping[str, RoomMaker]

    def of(self, checked: CheckedPod) -> PodPlan:
        """How it stands with a pod."""
        pod, outcome = checked.pod, checked.outcome
        has = allocated_form(pod, self.snapshot.age.gates)
        planned = PodPlan(
            pod=pod.metadata.name,
            namespace=pod.metadata.namespace,
            node=pod.spec.node_name,
            verdict=FITS,
            qos=pod.status.qos_class,
        )
        if isinstance(outcome, ApiError):
            return replace(
                planned,
                verdict=REFUSED,
                text=outcome.message,
                code=outcome.code,
                changes=tuple(changes(checked.wanted, has)),
                sizes=tuple(resizing(checked.wanted, has)),
            )
        if outcome is None:
            if text := over(pod):
                return replace(planned, verdict=ENDED, text=text)
            return replace(planned, verdict=UNCHANGED, text="podfit did not resize it: there is no size to go back to")
        planned = replace(planned, changes=tuple(changes(outcome.new, has)), sizes=tuple(resizing(outcome.new, has)))
        if checked.repeated:
            return self._outstanding(planned, pod)
        effects = Effects(outcome.new, pod, self.snapshot)
        planned = replace(planned, restarts=effects.restarts(), shrink=effects.shrink())
        return self._guarded(self._on_node(planned, pod, outcome.new, effects), pod)

    def _on_node(self, planned: PodPlan, pod: Pod, new: Pod, effects: Effects) -> PodPlan:
        """What the node says to what the API takes, or the scheduler of a pod that has none."""
        if not planned.node:
            return self._risks(self._placed(planned, new), effects)
        if not planned.changes:
            planned = replace(planned, text="takes back the resize that is not granted yet")
        model = self.nodes.get(planned.node)
        if model is None or planned.node in self.snapshot.unknown_nodes:
            return self._risks(self._not_known(planned, model, pod.metadata.uid), effects)
        uid = pod.metadata.uid
        planned = self._decided(planned, model, uid)
        if planned.verdict == DEFERRED:
            room = tuple(self.makers[planned.node].why_not(new)) if self.snapshot.room.mode else ()
            text = model.message(uid)
            planned = replace(planned, text=text, room=room, nodes=place_of_resize(new, text, self.snapshot))
        return self._risks(planned, effects)

    def _guarded(self, planned: PodPlan, pod: Pod) -> PodPlan:
        """A restart that a disruption budget does not allow is not begun, however much room there is."""
        text = self.snapshot.budgets.why_no_restart(pod) if planned.restarts and planned.sendable else ""
        return replace(planned, verdict=PROTECTED, text=text, protected=text) if text else planned

    def _not_known(self, planned: PodPlan, model: LiveNode | None, uid: str) -> PodPlan:
        """The plan on a node that may not be read, or of which the other pods may not: what it can never do is known
        all the same, as far as the node itself was read."""
        alone = decided(planned, model, uid) if model else planned
        if alone.verdict == INFEASIBLE:
            return alone
        why = self.snapshot.unknown_nodes.get(planned.node, f"node {planned.node} is not there")
        return replace(planned, verdict=NOT_KNOWN, text=why)

    def _decided(self, planned: PodPlan, model: LiveNode, uid: str) -> PodPlan:
        """The node's verdict, with what others give or give up for it."""
        planned, made = decided(planned, model, uid), self.makers[planned.node].made.get(uid)
        if made is None:
            return planned
        gives = ", ".join(f"{gift.pod} shrinks {gift.what}" for gift in made.gifts)
        text = f"fits after {gives}" if gives else ""
        return replace(planned, gifts=made.gifts, ends=(*planned.ends, *made.victims), text=planned.text or text)

    def _outstanding(self, planned: PodPlan, pod: Pod) -> PodPlan:
        """The spec asks for this already: how it stands."""
        age = self.snapshot.age
        state, condition = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
        if state == UNSCHEDULED:
            planned = self._placed(planned, pod)
            return replace(planned, verdict=UNCHANGED, text="") if planned.verdict == FITS else planned
        if state == SETTLED:
            return replace(planned, verdict=UNCHANGED)
        text = condition.message if condition else ""
        planned = replace(planned, repeated=True, text=text)
        if state == FAILING:
            return replace(planned, verdict=ERROR)
        if state == pod_state.INFEASIBLE:
            return replace(planned, verdict=INFEASIBLE)
        if state == pod_state.IN_PROGRESS:
            return replace(planned, verdict=IN_PROGRESS, text=text or "the node is changing the containers now")
        model = None if planned.node in self.snapshot.unknown_nodes else self.nodes.get(planned.node)
        known = decided(planned, model, pod.metadata.uid) if model else planned
        if known.verdict != FITS:
            return known
        if state == pod_state.DEFERRED:
            return replace(planned, verdict=DEFERRED, text=text or "the node tries it again every 3 minutes")
        return replace(planned, verdict=IN_PROGRESS, text="the kubelet has not seen this generation yet")

    def _placed(self, planned: PodPlan, new: Pod) -> PodPlan:
        """The plan of a pod without a node, as the scheduler decides."""
        cluster = self.snapshot.cluster
        if text := foretold(new):
            return replace(planned, verdict=INFEASIBLE, text=text)
        if cluster is None:
            return replace(planned, text="not on a node yet")
        place = scheduled(new, cluster.with_pod(new), self.snapshot.age.gates)
        if not place.node:
            return replace(planned, verdict=UNSCHEDULABLE, text=place.why, nodes=place_of_pod(new, self.snapshot))
        ends = place.victims
        return replace(planned, text=f"not on a node yet: the scheduler would choose {place.node}", ends=ends)

    @staticmethod
    def _risks(planned: PodPlan, effects: Effects) -> PodPlan:
        """What the node would grant and the containers would not bear."""
        if planned.verdict not in (FITS, NOT_KNOWN):
            return planned
        if text := effects.refused:
            return replace(planned, verdict=ERROR, text=text, shrink="")
        if text := effects.crashes():
            return replace(planned, verdict=CRASH, text=text)
        return planned


def over(pod: Pod) -> str:
    """Why no node carries out a resize of the pod, though the API would take it (R-015); empty when one does."""
    if has_ended(pod):
        return f"the pod has ended ({pod.status.phase}): a resize of it is stored and never carried out"
    return "the pod is being deleted" if pod.metadata.deletion_timestamp else ""


def decided(planned: PodPlan, model: LiveNode, uid: str) -> PodPlan:
    """The plan of a pod with the verdict of the node."""
    verdict = model.verdict(uid)
    if isinstance(verdict, Infeasible):
        return replace(planned, verdict=INFEASIBLE, text=verdict.message)
    if isinstance(verdict, Deferred):
        ahead = [waiting.name.partition("/")[2] for waiting in model.queue()]
        mine = next(index for index, waiting in enumerate(model.queue()) if waiting.desired.metadata.uid == uid)
        return replace(
            planned,
            verdict=DEFERRED,
            text=verdict.message,
            short_by=short(verdict),
            blocked_by=verdict.blocked_by,
            after=tuple(ahead[:mine]),
            ends=model.ends(uid),
        )
    return planned
