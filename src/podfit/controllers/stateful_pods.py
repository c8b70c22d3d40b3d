"""The pods and claims of a stateful set: created and deleted, with events."""

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.core.errors import ApiError
from podfit.decide.workload.stateful import identity, retention
from podfit.decide.workload.stateful.steps import Action, Complete, Create, Delete


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
            failed = pod.status.phase == "Failed"
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
