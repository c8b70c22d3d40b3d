"""The replica sets of a deployment: creates, scales and deletes them, with events."""

from collections.abc import Iterable

from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, DeploymentCondition, ReplicaSet
from podfit.api.meta.owners import identity_of, is_controlled_by
from podfit.client.events import EventRecorder
from podfit.client.rest import Client
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.deployment import revisions
from podfit.decide.workload.deployment import status as statuses
from podfit.decide.workload.deployment.revisions import REVISION, Sets
from podfit.decide.workload.deployment.sizes import new_size, wanted

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

    async def with_new(self, deployment: Deployment, sets: Sets) -> tuple[Deployment, Sets]:
        """The new replica set, made if there is none. Raises ApiError when it cannot be made."""
        if sets.new is not None:
            return deployment, sets
        made = revisions.made(deployment)
        made = replace(made, spec=replace(made.spec, replicas=new_size(deployment, sets.old, 0)))
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
        """With the revision in its annotations, and how it goes where it has a deadline for that; one write."""
        noted = revisions.numbered(deployment, revision)
        if progress is not None and statuses.has_deadline(deployment):
            noted = replace(noted, status=statuses.with_condition(noted.status, progress))
        return deployment if noted == deployment else await self._client.update_status(noted)

    async def scale(self, deployment: Deployment, replicas: ReplicaSet, size: int) -> ReplicaSet:
        """With this size, and annotations that tell the deployment's."""
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

    async def delete(self, sets: Iterable[ReplicaSet]) -> None:
        for replica_set in sets:
            try:
                await self._client.delete(ReplicaSet, replica_set.metadata.name, replica_set.metadata.namespace)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
