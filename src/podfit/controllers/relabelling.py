"""The controller `in-place-rollout`: rollouts in place beside controllers that know nothing of them, as upstream's.

    a workload with podfit.dev/rollout: in-place, its pods or revisions change
      ─▶ which pods are of an old template, and can be resized ─▶ decide.workload.in_place.standing
      ─▶ held, resized, told to be of the new template, or left to its controller

It never makes a pod, and deletes none but those of a Deployment that cannot be resized, within `maxUnavailable`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.client.events import EventRecorder
from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import BY_NAMESPACE, Controller, by_namespace
from podfit.controllers.in_place import InPlaceRollouts
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import NORMAL, WARNING
from podfit.core.clock import Clock
from podfit.decide.workload.daemon import in_place as daemon_in_place
from podfit.decide.workload.daemon.nodes import GENERATION
from podfit.decide.workload.daemon.steps import Version
from podfit.decide.workload.deployment.in_place import fits, in_turn
from podfit.decide.workload.deployment.revisions import Sets, sorted_out
from podfit.decide.workload.deployment.sizes import is_rolling, max_unavailable, wanted
from podfit.decide.workload.history import HASH, templates_in
from podfit.decide.workload.in_place import hold, standing
from podfit.decide.workload.in_place.asking import Asked
from podfit.decide.workload.in_place.fates import PodSteps, pod_steps
from podfit.decide.workload.in_place.hold import Labelled
from podfit.decide.workload.in_place.standing import Owner, Stance
from podfit.decide.workload.pods import from_template, is_available
from podfit.decide.workload.stateful import in_place as stateful_in_place
from podfit.decide.workload.stateful.steps import Revision

COMPONENT = "in-place-rollout"
WORKERS = 5
HELD, LEFT = "RolloutHeld", "RolloutLeft"
TEXT = "Its template is followed in place: it is held, so that its controller replaces no pod before it was looked at"
KINDS: dict[str, type[Any]] = {"Deployment": Deployment, "StatefulSet": StatefulSet, "DaemonSet": DaemonSet}


class Name(NamedTuple):
    kind: str
    namespace: str
    name: str


class RelabellingController(Controller[Name]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock
        self._workloads: Mapping[str, Informer[Any]] = {kind: informers.of(type_) for kind, type_ in KINDS.items()}
        self._sets, self._pods = informers.of(ReplicaSet), informers.of(Pod)
        self._revisions = informers.of(ControllerRevision)
        self._owned_sets = Owned(client, ReplicaSet, self._sets)
        self._owned_pods = Owned(client, Pod, self._pods)
        self._owned_revisions = Owned(client, ControllerRevision, self._revisions)
        self._in_place = InPlaceRollouts(client, informers=informers, recorder=recorder, clock=clock)
        namespaces = self._in_place.namespaces
        followed = *self._workloads.values(), self._sets, self._pods, self._revisions, namespaces
        super().__init__(clock, *followed, workers=WORKERS)
        for kind, informer in self._workloads.items():
            informer.add_index(BY_NAMESPACE, by_namespace)
            add = partial(self._add, kind)
            informer.add_handler(add=add, update=partial(_newest, add))
        for owned in (self._sets, self._pods, self._revisions):
            owned.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._seen)
        namespaces.add_handler(update=self._namespace_changed)

    # ------------------------------------------------------------------ what happens

    def _add(self, kind: str, owner: Any) -> None:
        if self._in_place.asked(owner) is not None or hold.HELD in owner.metadata.annotations:
            self.queue.add(Name(kind, owner.metadata.namespace, owner.metadata.name))

    def _seen(self, obj: Pod | ReplicaSet | ControllerRevision) -> None:
        replica_set = owner_in(self._sets, obj) if isinstance(obj, Pod) else None
        for kind, informer in self._workloads.items():
            if (owner := owner_in(informer, replica_set or obj)) is not None:
                self._add(kind, owner)

    def _namespace_changed(self, old: Namespace, new: Namespace) -> None:
        if old.metadata.annotations != new.metadata.annotations:
            for kind, informer in self._workloads.items():
                for owner in informer.by_index(BY_NAMESPACE, new.metadata.name):
                    self.queue.add(Name(kind, new.metadata.name, owner.metadata.name))

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Name) -> float | None:
        owner = self._workloads[key.kind].get(key.name, key.namespace)
        if owner is None or owner.metadata.deletion_timestamp:
            return None
        asked = self._in_place.asked(owner)
        if asked is None:
            if standing.is_mine(owner):
                await self._patch(owner, standing.releasing(owner))
            return None
        seen = 0 < owner.metadata.generation <= owner.status.observed_generation
        if not seen or not standing.may_be_held(owner):
            return None  # its controller tells when it has seen it; somebody else holds it
        self.rest(key, owner.status.desired_number_scheduled if isinstance(owner, DaemonSet) else owner.status.replicas)
        if isinstance(owner, Deployment):
            return await self._deployment(owner, asked)
        return await self._labelled(owner, asked)

    async def _labelled(self, owner: Labelled, asked: Asked) -> float | None:
        revisions = self._owned_revisions.of(owner)
        labels = hold.labels_of(owner, revisions)
        if labels is None:
            return None
        pods, was = list(filter(is_active, self._owned_pods.of(owner))), standing.unheld(owner)
        fit = _candidates(was, labels, revisions, pods)
        known = {pod.metadata.uid for pod in fit}
        others = {pod.metadata.labels.get(HASH, "") for pod in pods} - {labels[HASH]}
        unfit = [pod for pod in hold.staying(was, pods, others) if pod.metadata.uid not in known]
        at_rest = hold.is_at_rest(owner)
        due = standing.stance(owner, labels[HASH], fit=len(fit), unfit=len(unfit), at_rest=at_rest)
        if due is not Stance.RESIZE:
            return await self._stand(owner, due, labels[HASH], "its template differs in more than resources")
        fates = await self._in_place.fates(owner, from_template(owner.spec.template, owner), fit, asked)
        if isinstance(was, StatefulSet):
            steps = stateful_in_place.in_place(was, fit, pods, fates, self._clock.now())
        else:
            wanted_pods = was.status.desired_number_scheduled
            steps = daemon_in_place.in_place(was, fit, pods, fates, wanted_pods, self._clock.now())
        for pod in steps.finished:
            await self._in_place.give(owner, pod, owner, labels)
        if standing.only_replaced(steps, fit):
            return await self._stand(owner, Stance.LEAVE, labels[HASH], _why(steps))
        return await self._resized(owner, steps)

    async def _deployment(self, deployment: Deployment, asked: Asked) -> float | None:
        sets = sorted_out(deployment, self._owned_sets.of(deployment))
        members = {one.metadata.uid: list(filter(is_active, self._owned_pods.of(one))) for one in sets.all}
        old = [one for one in sets.old if wanted(one) or members[one.metadata.uid]]
        if standing.is_mine(deployment) and not old and (uids := standing.to_replace(deployment)):
            return await self._replace(deployment, uids, [pod for some in members.values() for pod in some])
        can = len(old) == 1 and sets.new is None and fits(deployment, old[0])
        fit, unfit = (1, 0) if can else (0, len(old))
        revision = standing.revision_of(deployment)
        at_rest = standing.is_at_rest(deployment)
        due = standing.stance(deployment, revision, fit=fit, unfit=unfit, at_rest=at_rest)
        if due is not Stance.RESIZE:
            return await self._stand(deployment, due, revision, _more(sets, old))
        return await self._resize(deployment, old[0], in_turn(members[old[0].metadata.uid]), asked)

    async def _resize(
        self, deployment: Deployment, replica_set: ReplicaSet, pods: Sequence[Pod], asked: Asked
    ) -> float | None:
        """The pods of its ReplicaSet, which gets the new template when all of them that can have their new size."""
        made = from_template(deployment.spec.template, replica_set)
        fates = await self._in_place.fates(deployment, made, pods, asked)
        fewer = max_unavailable(deployment) if is_rolling(deployment) else wanted(deployment)
        up, now = self._available(deployment, pods), self._clock.now()
        spare = len(up) - (wanted(deployment) - fewer)
        seconds = deployment.spec.min_ready_seconds
        steps = pod_steps(pods, fates, lambda pod: is_available(pod, seconds, now), spare=spare, most=fewer)
        if len(steps.finished) + len(steps.replaced) < len(pods):
            return await self._resized(deployment, steps)
        if steps.replaced:
            await self._patch(deployment, standing.replacing(pod.metadata.uid for pod in steps.replaced))
        patch = standing.adopting(deployment.spec.template, replica_set)
        await self._patch(replica_set, patch)
        text = f"Pods of ReplicaSet {replica_set.metadata.name} were resized in place: it has the new template now"
        self._recorder.event(deployment, NORMAL, "ResizedInPlace", text)
        return None

    async def _replace(self, deployment: Deployment, uids: frozenset[str], pods: Sequence[Pod]) -> float | None:
        """Those that could not be resized: their ReplicaSet makes them anew, of the new template."""
        fewer = max_unavailable(deployment) if is_rolling(deployment) else wanted(deployment)
        up = self._available(deployment, pods)
        step = standing.room(pods, uids, up, len(up) - (wanted(deployment) - max(1, fewer)))
        for pod in step.delete:
            await self._in_place.delete(pod)
        if step.left | {pod.metadata.uid for pod in step.delete} != uids or not step.left:
            await self._patch(deployment, standing.replacing(step.left))
        return None

    def _available(self, deployment: Deployment, pods: Iterable[Pod]) -> frozenset[str]:
        now, seconds = self._clock.now(), deployment.spec.min_ready_seconds
        return frozenset(pod.metadata.uid for pod in pods if is_available(pod, seconds, now))

    async def _resized(self, owner: Owner, steps: PodSteps) -> float | None:
        return 0.0 if await self._in_place.resize(owner, steps.resize) else steps.again

    async def _stand(self, owner: Owner, due: Stance, revision: str, why: str) -> float | None:
        """Hold it, leave it, or let it be."""
        if due is Stance.HOLD:
            first = hold.HELD not in owner.metadata.annotations
            await self._patch(owner, standing.holding(owner))
            if first:
                self._recorder.event(owner, NORMAL, HELD, TEXT)
        elif due is Stance.LEAVE:
            await self._patch(owner, standing.releasing(owner, revision))
            self._recorder.event(owner, WARNING, LEFT, f"Its controller rolls it out: {why}")
        if due is not Stance.RESIZE:
            self._in_place.forget((owner.metadata.namespace, owner.metadata.name))
        return None

    async def _patch(self, obj: Object, patch: dict[str, Any]) -> None:
        """Patches it as it is known: another version is a conflict, and looked at again."""
        meta = obj.metadata
        known = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        whole = {**patch, "metadata": {**patch.get("metadata", {}), **known}}
        await self._client.patch(type(obj), meta.name, meta.namespace, whole, field_manager=COMPONENT)


def _newest(add: Callable[[Any], None], _: Any, new: Any) -> None:
    add(new)


def _candidates(
    was: Any, labels: Mapping[str, str], revisions: Sequence[ControllerRevision], pods: Sequence[Pod]
) -> list[Pod]:
    if isinstance(was, StatefulSet):
        update = Revision(labels[HASH], was.spec.template)
        return stateful_in_place.candidates(was, update, templates_in(revisions), pods)
    version = Version(labels[HASH], labels.get(GENERATION, ""))
    return daemon_in_place.candidates(was, version, templates_in(revisions, HASH), pods)


def _why(steps: PodSteps) -> str:
    names = ", ".join(pod.metadata.name for pod in steps.replaced[:5])
    return f"{len(steps.replaced)} {'pod' if len(steps.replaced) == 1 else 'pods'} cannot be resized: {names}"


def _more(sets: Sets, old: Sequence[ReplicaSet]) -> str:
    if sets.new is not None and old:
        return f"ReplicaSet {sets.new.metadata.name} has its template already"
    if len(old) > 1:
        return "pods of several templates run"
    return "its template differs in more than resources"
