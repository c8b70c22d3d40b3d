"""The deployment controller: a replica set for each revision of the template, and the rollout between them.

    deployment, its replica sets or pods change
      ─▶ claim the replica sets ─▶ the revision of the new one is set right
      ─▶ its size changed, or it is paused: scale as it is      else: one step of the rollout, or of one in place
      ─▶ status

A step is taken from what the replica sets say; what it brings about comes back by the watch, for the next step.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of, identity_of, is_controlled_by
from podfit.api.meta.selectors import is_empty, requirements
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.in_place import InPlaceRollouts
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.controllers.selecting import Selecting
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.deployment import in_place, revisions
from podfit.decide.workload.deployment import status as statuses
from podfit.decide.workload.deployment.revisions import HASH, REVISION, Sets, cleanable, sorted_out
from podfit.decide.workload.deployment.sizes import Scale, is_rolling, new_size, wanted
from podfit.decide.workload.deployment.steps import old_pods_run, recreating, resizing, rolling, was_scaled
from podfit.decide.workload.in_place.asking import Asked
from podfit.decide.workload.in_place.fates import OTHER_TEMPLATE, Fate, Replaced
from podfit.decide.workload.pods import from_template

SCALING = "ScalingReplicaSet"


class DeploymentSets:
    def __init__(self, client: Client, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock

    async def revised(self, deployment: Deployment, sets: Sets) -> tuple[Deployment, Sets]:
        """The new replica set, if there is one, and the deployment with the revision that they have."""
        new = sets.new
        if new is None:
            return deployment, sets
        kept = revisions.annotated(deployment, new, revisions.next_revision(sets), exists=True)
        if kept.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            kept = replace(kept, spec=replace(kept.spec, min_ready_seconds=deployment.spec.min_ready_seconds))
        if kept is not new:
            new = await self._client.update(kept)
        text = f'Found new replica set "{new.metadata.name}"'
        made = None
        if statuses.condition(deployment.status, statuses.PROGRESSING) is None:
            made = statuses.new_condition(statuses.PROGRESSING, "True", statuses.FOUND, text, self._clock.now())
        deployment = await self._noted(deployment, new.metadata.annotations.get(REVISION, ""), made)
        return deployment, sets.with_new(new)

    async def with_new(self, deployment: Deployment, sets: Sets, *, in_place: bool = False) -> tuple[Deployment, Sets]:
        """The new replica set, made if there is none; `in_place`: without pods of its own. Raises ApiError when it
        cannot be made."""
        if sets.new is not None:
            return deployment, sets
        made = revisions.made(deployment)
        size = 0 if in_place else new_size(deployment, sets.old, 0)
        made = replace(made, spec=replace(made.spec, replicas=size))
        revision = revisions.next_revision(sets)
        made = revisions.annotated(deployment, made, revision, exists=False)
        try:
            new = await self._client.create(made)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return deployment, sets.with_new(await self._existing(deployment, made.metadata.name, error))
            await self._failed(deployment, made, error)
            raise
        name, now = new.metadata.name, self._clock.now()
        if wanted(new) > 0:
            self._recorder.event(deployment, NORMAL, SCALING, f"Scaled up replica set {name} from 0 to {wanted(new)}")
        text = f'Created new replica set "{name}"'
        created = statuses.new_condition(statuses.PROGRESSING, "True", statuses.CREATED, text, now)
        return await self._noted(deployment, str(revision), created), sets.with_new(new)

    async def _existing(self, deployment: Deployment, name: str, error: ApiError) -> ReplicaSet:
        """Ours, which the watch has not brought yet; or another's, whose name is avoided from now on."""
        found = await self._client.get(ReplicaSet, name, deployment.metadata.namespace)
        if is_controlled_by(found.metadata, identity_of(deployment)) and revisions.same_template(deployment, found):
            return found
        status = replace(deployment.status, collision_count=(deployment.status.collision_count or 0) + 1)
        await self._client.update_status(replace(deployment, status=status))
        raise error

    async def _failed(self, deployment: Deployment, made: ReplicaSet, error: ApiError) -> None:
        if namespace_ends(error):
            return
        text = f'Failed to create new replica set "{made.metadata.name}": {error.message}'
        reason = statuses.CREATE_ERROR
        if statuses.has_deadline(deployment):
            failed = statuses.new_condition(statuses.PROGRESSING, "False", reason, text, self._clock.now())
            status = statuses.with_condition(deployment.status, failed)
            if status != deployment.status:
                await self._client.update_status(replace(deployment, status=status))
        self._recorder.event(deployment, WARNING, reason, text)

    async def _noted(self, deployment: Deployment, revision: str, progress: DeploymentCondition | None) -> Deployment:
        """The deployment with the revision in its annotations, and how it goes where it has a deadline for that; one
        write."""
        noted = revisions.numbered(deployment, revision)
        if progress is not None and statuses.has_deadline(deployment):
            noted = replace(noted, status=statuses.with_condition(noted.status, progress))
        return deployment if noted == deployment else await self._client.update_status(noted)

    async def scale(self, deployment: Deployment, replicas: ReplicaSet, size: int) -> ReplicaSet:
        """Writes it with this size, and annotations that tell the deployment's."""
        sized = revisions.sized(deployment, replicas, size)
        if sized is replicas:
            return replicas
        changed = await self._client.update(sized)
        before, name = wanted(replicas), replicas.metadata.name
        if before != size:
            way = "up" if size > before else "down"
            text = f"Scaled {way} replica set {name} from {before} to {size}"
            self._recorder.event(deployment, NORMAL, SCALING, text)
        return changed

    async def hold(self, sets: Iterable[ReplicaSet]) -> None:
        for replica_set in sets:
            await self._client.update(in_place.with_hold(replica_set))

    async def release(self, steps: Iterable[Scale]) -> None:
        """End a hold with these sizes."""
        for replica_set, size in steps:
            await self._client.update(in_place.released(replica_set, size))

    async def delete(self, sets: Iterable[ReplicaSet]) -> None:
        for replica_set in sets:
            try:
                await self._client.delete(ReplicaSet, replica_set.metadata.name, replica_set.metadata.namespace)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise


COMPONENT = "deployment-controller"
WORKERS = 5
_SELECTING_ALL = "This deployment is selecting all pods. A non-empty selector is required."


class DeploymentController(Controller[Key]):
    def __init__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock, in_place: bool = True
    ) -> None:
        """Without `in_place` rollouts are as upstream's."""
        self._client, self._recorder, self._clock = client, recorder, clock
        self._deployments, self._sets = informers.of(Deployment), informers.of(ReplicaSet)
        self._pods = informers.of(Pod)
        self._owned = Owned(client, ReplicaSet, self._sets)
        self._selecting = Selecting(self._deployments, lambda deployment: requirements(deployment.spec.selector))
        self._owned_pods = Owned(client, Pod, self._pods)
        self._writer = DeploymentSets(client, recorder, clock)
        self._in_place = InPlaceRollouts(client, informers=informers, recorder=recorder, clock=clock, off=not in_place)
        followed = self._deployments, self._sets, self._pods, self._in_place.namespaces
        super().__init__(clock, *followed, workers=WORKERS)
        self._deployments.add_handler(
            add=lambda new: self.queue.add(key_of(new)), update=lambda _, new: self.queue.add(key_of(new))
        )
        self._sets.add_handler(add=self._set_seen, update=self._set_changed, delete=self._set_seen)
        self._pods.add_handler(update=self._pod_changed, delete=self._pod_gone)

    # ------------------------------------------------------------------ what happens

    def _set_seen(self, obj: ReplicaSet) -> None:
        if (owner := self._owner(obj)) is not None:
            self.queue.add(key_of(owner))
        elif controller_of(obj.metadata) is None:
            self._orphaned(obj)

    def _set_changed(self, old: ReplicaSet, new: ReplicaSet) -> None:
        changed = controller_of(old.metadata) != controller_of(new.metadata)
        if changed and (before := self._owner(old)) is not None:
            self.queue.add(key_of(before))
        if (owner := self._owner(new)) is not None:
            self.queue.add(key_of(owner))
        elif controller_of(new.metadata) is None and (changed or old.metadata.labels != new.metadata.labels):
            self._orphaned(new)

    def _orphaned(self, obj: ReplicaSet) -> None:
        for key in self._selecting.keys(obj.metadata):
            self.queue.add(key)

    def _pod_changed(self, _: Pod, new: Pod) -> None:
        """A rollout in place goes by what nodes say of its pods."""
        found = owner_in(self._sets, new)
        owner = self._owner(found) if found is not None else None
        if owner is not None and self._in_place.asked(owner) and not statuses.is_complete(owner, owner.status):
            self.queue.add(key_of(owner))

    def _pod_gone(self, pod: Pod) -> None:
        """A deployment that replaces all pods at once waits for the last to go."""
        found = owner_in(self._sets, pod)
        owner = self._owner(found) if found is not None else None
        if owner is None or is_rolling(owner):
            return
        if not any(self._owned_pods.of(replica_set) for replica_set in self._owned.of(owner)):
            self.queue.add(key_of(owner))

    def _owner(self, obj: ReplicaSet) -> Deployment | None:
        return owner_in(self._deployments, obj)

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        deployment = self._deployments.get(name, namespace)
        if deployment is None:
            return None
        if deployment.spec.selector is None or is_empty(deployment.spec.selector):
            await self._refuse(deployment)
            return None
        found = [*self._owned.of(deployment), *self._owned.orphans(namespace)]
        sets = await self._owned.claim(deployment, requirements(deployment.spec.selector), found)
        going = bool(deployment.metadata.deletion_timestamp)
        if not going and (noted := statuses.pausing(deployment, self._clock.now())) is not None:
            deployment = await self._say(deployment, statuses.with_condition(deployment.status, noted))
        deployment, known = await self._writer.revised(deployment, sorted_out(deployment, sets))
        if going:
            await self._say(deployment, statuses.counted(deployment, known, self._clock.now()))
            return None
        asked = self._in_place.asked(deployment)
        waits = deployment.spec.paused or was_scaled(deployment, known)
        if in_place.is_held(known) and (waits or asked is None or not in_place.is_in_place(deployment, known)):
            await self._writer.release(in_place.releasing(deployment, known, self._members(known)).release)
            await self._say(deployment, statuses.of_rollout(deployment, known, self._clock.now()))
            return None
        if waits:
            change = resizing(deployment, known)
            await self._apply(deployment, change.steps, always=change.always)
            if deployment.spec.paused:
                await self._writer.delete(cleanable(deployment, known.old))
            await self._say(deployment, statuses.counted(deployment, known, self._clock.now()))
            return None
        again: float | None = None
        if asked is not None and in_place.is_in_place(deployment, known):
            deployment, known, again = await self._resize(deployment, known, asked)
        else:
            self._in_place.forget(key)
            rollout = self._roll if is_rolling(deployment) else self._recreate
            deployment, known = await rollout(deployment, known)
        status = statuses.of_rollout(deployment, known, self._clock.now())
        if status == deployment.status:
            waits_for = again, statuses.look_again(deployment, self._clock.now())
            return min((seconds for seconds in waits_for if seconds is not None), default=None)
        await self._say(deployment, status)
        return again

    async def _refuse(self, deployment: Deployment) -> None:
        self._recorder.event(deployment, "Warning", "SelectingAll", _SELECTING_ALL)
        generation = deployment.metadata.generation
        if deployment.status.observed_generation < generation:
            await self._say(deployment, replace(deployment.status, observed_generation=generation))

    async def _say(self, deployment: Deployment, status: DeploymentStatus) -> Deployment:
        if status == deployment.status:
            return deployment
        return await self._client.update_status(replace(deployment, status=status))

    # ------------------------------------------------------------------ sizes

    async def _apply(self, deployment: Deployment, steps: Iterable[Scale], *, always: bool = False) -> None:
        """Give them these sizes; with `always` their annotations are set right even where the size stays.

        A status is told of the sets as they were before, as upstream does: their own tells when they have acted on it.
        """
        current: dict[str, ReplicaSet] = {}
        for obj, size in steps:
            known = current.get(obj.metadata.uid, obj)
            if always or wanted(known) != size:
                current[obj.metadata.uid] = await self._writer.scale(deployment, known, size)

    # ------------------------------------------------------------------ a rollout

    async def _roll(self, deployment: Deployment, sets: Sets) -> tuple[Deployment, Sets]:
        deployment, sets = await self._writer.with_new(deployment, sets)
        if sets.new is None:
            return deployment, sets
        if steps := rolling(deployment, sets.new, sets):
            await self._apply(deployment, steps)
        else:
            await self._tidy(deployment, sets)
        return deployment, sets

    async def _resize(self, deployment: Deployment, sets: Sets, asked: Asked) -> tuple[Deployment, Sets, float | None]:
        """A step of a rollout in place; the third tells after how many seconds to look again."""
        deployment, sets = await self._writer.with_new(deployment, sets, in_place=True)
        if sets.new is None:
            return deployment, sets, None
        pods, fates = self._members(sets), dict[str, Fate]()
        made = from_template(sets.new.spec.template, sets.new)
        fit = [pod for old in sets.old if in_place.fits(deployment, old) for pod in pods[old.metadata.uid]]
        for old in sets.old:
            fates |= {pod.metadata.uid: Replaced(OTHER_TEMPLATE) for pod in pods[old.metadata.uid]}
        fates |= await self._in_place.fates(deployment, made, fit, asked)
        step = in_place.in_place(deployment, sets, pods, fates, self._clock.now())
        refused = await self._in_place.resize(deployment, step.resize)
        await self._writer.hold(step.hold)
        labels = {HASH: sets.new.metadata.labels.get(HASH, "")}
        for pod in step.give:
            await self._in_place.give(deployment, pod, sets.new, labels)
        for pod in step.delete:
            await self._in_place.delete(pod)
        await self._apply(deployment, step.scale)
        await self._writer.release(step.release)
        return deployment, sets, 0.0 if refused else step.again

    def _members(self, sets: Sets) -> dict[str, list[Pod]]:
        """The pods of each replica set that count, by its UID, as the copies tell it."""
        return {one.metadata.uid: list(filter(is_active, self._owned_pods.of(one))) for one in sets.all}

    async def _recreate(self, deployment: Deployment, sets: Sets) -> tuple[Deployment, Sets]:
        if steps := recreating(sets):
            await self._apply(deployment, steps)
            return deployment, sets
        if old_pods_run(sets, (pod for replica_set in sets.old for pod in self._owned_pods.of(replica_set))):
            return deployment, sets
        deployment, sets = await self._writer.with_new(deployment, sets)
        if sets.new is not None:
            await self._apply(deployment, [Scale(sets.new, wanted(deployment))])
            await self._tidy(deployment, sets)
        return deployment, sets

    async def _tidy(self, deployment: Deployment, sets: Sets) -> None:
        if statuses.is_complete(deployment, deployment.status):
            await self._writer.delete(cleanable(deployment, sets.old))
