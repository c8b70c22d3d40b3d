"""The ephemeral volume controller: makes the claims of pods' generic ephemeral volumes; they go with their pods.

pod comes, or a claim goes ─▶ the claims that its volumes lack
"""

from collections.abc import Iterable

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.pod_control import WARNING, namespace_ends
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.pod.volume_claims import ephemeral_claims, not_its_own
from podfit.decide.workload.ephemeral_claims import claim_for, ephemeral_volumes

COMPONENT = "ephemeral_volume"
WORKERS = 5
_BY_CLAIM = "ephemeral claim"


def _by_claim(pod: Pod) -> Iterable[str]:
    """Claims of its ephemeral volumes, be they its own or none of its."""
    return [f"{pod.metadata.namespace}/{name}" for name in ephemeral_claims(pod)]


class EphemeralVolumeController(Controller[Key]):
    """Keys are namespace and name of a pod."""

    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder = client, recorder
        self._pods, self._claims = informers.of(Pod), informers.of(PersistentVolumeClaim)
        super().__init__(clock, self._pods, self._claims, workers=WORKERS)
        self._pods.add_index(_BY_CLAIM, _by_claim)
        self._pods.add_handler(add=self._pod_seen)
        self._claims.add_handler(delete=self._claim_gone)

    def _pod_seen(self, pod: Pod) -> None:
        if ephemeral_volumes(pod):
            self.queue.add(key_of(pod))

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        for pod in self._pods.by_index(_BY_CLAIM, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self.queue.add(key_of(pod))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        pod = self._pods.get(name, namespace)
        if pod is None or pod.metadata.deletion_timestamp:
            return None
        ephemeral = ephemeral_claims(pod)
        for volume in ephemeral_volumes(pod):
            wanted = claim_for(pod, volume)
            found = self._claims.get(wanted.metadata.name, namespace)
            if found is not None:
                if problem := not_its_own(pod, found, ephemeral):
                    self._tell(pod, volume.name, problem)
                continue
            try:
                await self._client.create(wanted)
            except ApiError as error:
                if namespace_ends(error):
                    return None
                self._tell(pod, volume.name, f"create PVC {wanted.metadata.name}: {error.message}")
                raise
        return None

    def _tell(self, pod: Pod, volume: str, problem: str) -> None:
        self._recorder.event(pod, WARNING, "FailedBinding", f"ephemeral volume {volume}: {problem}")
