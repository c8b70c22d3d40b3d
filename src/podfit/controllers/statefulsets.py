"""The stateful set controller: numbered pods with claims of their own, created and deleted in order.

    set, pods or claims change ─▶ claim the pods ─▶ which revisions there are ─▶ decide.workload.stateful ─▶ status

Nothing is awaited: the names of pods are known beforehand, so none can be made twice, and deletions name the UID.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import ControllerRevision
from podfit.api.apps.v1.statefulsets import StatefulSet, StatefulSetStatus
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.phase import FAILED
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_of
from podfit.api.meta.selectors import requirements
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.in_place import InPlaceRollouts
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.controllers.revisions import Revisions
from podfit.controllers.selecting import Selecting
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.hashes import content_hash
from podfit.decide.workload.history import HASH, data_of, named, next_number, superfluous, template_in, templates_in
from podfit.decide.workload.in_place.fates import PodSteps
from podfit.decide.workload.pods import from_template, next_available
from podfit.decide.workload.stateful import identity, in_place, retention
from podfit.decide.workload.stateful.status import status_of
from podfit.decide.workload.stateful.steps import Action, Complete, Create, Delete, NextSteps, Revision, plan
from podfit.net.loop_turns import beside


class StatefulPods:
    def __init__(self, client: Client, informers: Informers, recorder: EventRecorder) -> None:
        self._client, self._recorder = client, recorder
        self.claims = informers.of(PersistentVolumeClaim)

    async def take(self, owner: StatefulSet, action: Action) -> None:
        """Raises ApiError as the server refuses it."""
        match action:
            case Create(pod):
                await self._create(owner, pod)
            case Delete(pod, recreating):
                await self._delete(owner, pod, recreating=recreating)
            case Complete(pod):
                await self._claim(owner, pod)
                if (labelled := identity.relabelled(pod)) is not None:
                    await self._client.update(labelled)

    async def keep(self, owner: StatefulSet, pod: Pod) -> None:
        """Give its claims the owners that the retention policy wants."""
        for wanted in identity.claims_of(owner, identity.ordinal(pod)):
            found = self.claims.get(wanted.metadata.name, wanted.metadata.namespace)
            changed = retention.owned(owner, pod, found) if found is not None else None
            if changed is not None:
                await self._client.update(changed)

    async def _create(self, owner: StatefulSet, pod: Pod) -> None:
        if any(retention.is_stale(pod, claim) for claim in self._present(owner, pod)):
            return  # the claims of the pod before are going: there is another look when they have
        name = pod.metadata.name
        await self._claim(owner, pod, creating=True)
        try:
            made = await self._client.create(pod)
        except ApiError as error:
            if error.reason != "AlreadyExists" and not namespace_ends(error):
                self._tell(owner, WARNING, "FailedCreate", f"Create Pod {name}", f"failed error: {error.message}")
            raise
        self._tell(owner, NORMAL, "SuccessfulCreate", f"Create Pod {name}", "successful")
        await self.keep(owner, made)

    def _present(self, owner: StatefulSet, pod: Pod) -> list[PersistentVolumeClaim]:
        wanted = identity.claims_of(owner, identity.ordinal(pod))
        found = (self.claims.get(claim.metadata.name, claim.metadata.namespace) for claim in wanted)
        return [claim for claim in found if claim is not None]

    async def _claim(self, owner: StatefulSet, pod: Pod, *, creating: bool = False) -> None:
        """Make the claims that are missing; `creating`: before the pod itself, which is not made when this fails."""
        present = {claim.metadata.name for claim in self._present(owner, pod)}
        for wanted in identity.claims_of(owner, identity.ordinal(pod)):
            name = wanted.metadata.name
            if name in present:
                continue
            what = f"Create Claim {name}"
            try:
                await self._client.create(wanted)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    continue  # the copy was behind
                what, how = f"{what} for Pod {pod.metadata.name}", f"failed error: {error.message}"
                self._tell(owner, WARNING, "FailedCreate", what, how)
                if creating:
                    how = f"failed error: failed to create PVC {name}: {error.message}"
                    self._tell(owner, WARNING, "FailedCreate", f"Create Pod {pod.metadata.name}", how)
                raise
            self._tell(owner, NORMAL, "SuccessfulCreate", f"{what} Pod {pod.metadata.name}", "success")

    async def _delete(self, owner: StatefulSet, pod: Pod, *, recreating: bool) -> None:
        meta = pod.metadata
        if recreating:
            failed = pod.status.phase == FAILED
            kind, reason = (WARNING, "RecreatingFailedPod") if failed else (NORMAL, "RecreatingTerminatedPod")
            how = "failed" if failed else "terminated"
            place = f"{owner.metadata.namespace}/{owner.metadata.name}"
            self._recorder.event(owner, kind, reason, f"StatefulSet {place} is recreating {how} Pod {meta.name}")
        try:
            await self._client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code == NOT_FOUND:
                return
            self._tell(owner, WARNING, "FailedDelete", f"Delete Pod {meta.name}", f"failed error: {error.message}")
            raise
        self._tell(owner, NORMAL, "SuccessfulDelete", f"Delete Pod {meta.name}", "successful")

    def _tell(self, owner: StatefulSet, kind: str, reason: str, what: str, how: str) -> None:
        self._recorder.event(owner, kind, reason, f"{what} in StatefulSet {owner.metadata.name} {how}")


COMPONENT = "statefulset-controller"
WORKERS = 5
_HASH = "controller.kubernetes.io/hash"


class StatefulSetController(Controller[Key]):
    def __init__(
        self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock, in_place: bool = True
    ) -> None:
        """Without `in_place` rollouts are as upstream's."""
        self._client, self._clock = client, clock
        self._sets, self._pods = informers.of(StatefulSet), informers.of(Pod)
        self._owned = Owned(client, Pod, self._pods)
        self._selecting = Selecting(self._sets, lambda owner: requirements(owner.spec.selector))
        self._revisions: Revisions[StatefulSet] = Revisions(client, informers)
        self._writer = StatefulPods(client, informers, recorder)
        self._in_place = InPlaceRollouts(client, informers=informers, recorder=recorder, clock=clock, off=not in_place)
        followed = self._sets, self._pods, self._revisions.informer, self._writer.claims, self._in_place.namespaces
        super().__init__(clock, *followed, workers=WORKERS)
        self._sets.add_handler(
            add=lambda new: self.queue.add(key_of(new)), update=lambda _, new: self.queue.add(key_of(new))
        )
        self._pods.add_handler(add=self._pod_seen, update=self._pod_changed, delete=self._pod_seen)
        self._writer.claims.add_handler(delete=self._claim_gone)

    # ------------------------------------------------------------------ what happens

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if controller_of(old.metadata) != controller_of(new.metadata):
            self._pod_seen(old)
        self._pod_seen(new)

    def _pod_seen(self, pod: Pod) -> None:
        if controller_of(pod.metadata) is not None:
            if (manager := owner_in(self._sets, pod)) is not None:
                self.queue.add(key_of(manager))
            return
        for namespace, name in self._selecting.keys(pod.metadata):
            owner = self._sets.get(name, namespace)
            if owner is not None and identity.is_member(owner, pod):
                self.queue.add(key_of(owner))

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        """A pod may have waited for it to go."""
        for reference in claim.metadata.owner_references:
            if reference.kind in ("StatefulSet", "Pod"):
                name = reference.name if reference.kind == "StatefulSet" else reference.name.rpartition("-")[0]
                self.queue.add((claim.metadata.namespace, name))

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        owner = self._sets.get(name, namespace)
        if owner is None:
            return None
        found = [*self._owned.of(owner), *self._owned.orphans(namespace)]
        members = [pod for pod in found if identity.is_member(owner, pod)]
        pods = await self._owned.claim(owner, requirements(owner.spec.selector), members)
        revisions = await self._revisions.of(owner)
        current, update, collisions = await self._revised(owner, revisions)
        now = self._clock.now()
        versions = _version(owner, current), _version(owner, update)
        resized = await self._resized(owner, versions[1], revisions, pods)
        step = await beside(len(pods), plan, owner, *versions, pods, now, kept=resized.kept)
        names = current.metadata.name, update.metadata.name
        told = status_of(owner, *names, pods, now, collisions=collisions, updating=step.updating)
        try:
            await self._act(owner, step, pods)
            await self._carry_out(owner, resized, update.metadata.name)
        except (ApiError, ConnectionError):
            await self._say(owner, told)
            raise
        await self._say(owner, told)
        in_use = (*names, *(pod.metadata.labels.get(HASH, "") for pod in pods))
        await self._revisions.delete(superfluous(revisions, owner.spec.revision_history_limit, in_use))
        self.rest(key, len(pods))
        waits = resized.again, next_available(pods, owner.spec.min_ready_seconds, now)
        return min((seconds for seconds in waits if seconds is not None), default=None)

    async def _say(self, owner: StatefulSet, told: StatefulSetStatus) -> None:
        if told != owner.status:
            await self._client.update_status(replace(owner, status=told))

    async def _resized(
        self, owner: StatefulSet, update: Revision, revisions: list[ControllerRevision], pods: Sequence[Pod]
    ) -> PodSteps:
        """Which pods are resized instead of replaced, if that was asked for."""
        asked, key = self._in_place.asked(owner), key_of(owner)
        if asked is None or all(pod.metadata.labels.get(HASH) == update.name for pod in pods):
            self._in_place.forget(key)
            return PodSteps()
        old = in_place.candidates(owner, update, templates_in(revisions), pods)
        if not old:
            return PodSteps()
        fates = await self._in_place.fates(owner, from_template(update.template, owner), old, asked)
        return in_place.in_place(owner, old, pods, fates, self._clock.now())

    async def _carry_out(self, owner: StatefulSet, resized: PodSteps, revision: str) -> None:
        for pod in resized.finished:
            await self._in_place.give(owner, pod, owner, {HASH: revision})
        if await self._in_place.resize(owner, resized.resize):
            self.queue.add(key_of(owner))

    async def _act(self, owner: StatefulSet, step: NextSteps, pods: Sequence[Pod]) -> None:
        if not owner.metadata.deletion_timestamp:
            for pod in pods:
                await self._writer.keep(owner, pod)
        for action in step.actions:
            await self._writer.take(owner, action)

    async def _revised(
        self, owner: StatefulSet, revisions: list[ControllerRevision]
    ) -> tuple[ControllerRevision, ControllerRevision, int]:
        """The revision that was rolled out last, the one of the present template, and how many names were taken."""
        collisions = owner.status.collision_count or 0
        wanted, number = data_of(owner.spec.template), next_number(revisions)
        same = [revision for revision in revisions if revision.data == wanted]
        update: ControllerRevision | None = None
        if same and same[-1] is revisions[-1]:
            update = revisions[-1]
        elif same:
            update = await self._revisions.renumber(same[-1], number)
        while update is None:
            digest = content_hash(owner.spec.template, collisions)
            update = await self._revisions.create(named(owner, digest, number, {_HASH: digest}))
            collisions += update is None
        known = (*revisions, update)
        current = next(
            (revision for revision in known if revision.metadata.name == owner.status.current_revision), update
        )
        return current, update, collisions


def _version(owner: StatefulSet, revision: ControllerRevision) -> Revision:
    name = revision.metadata.name
    if revision.data == data_of(owner.spec.template):
        return Revision(name, owner.spec.template)
    return Revision(name, template_in(revision))
