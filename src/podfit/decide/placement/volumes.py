"""Claims of pods: whether a pod with them can be placed, and when a claim or a volume may go."""

from collections.abc import Callable, Iterable

import msgspec

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.api.storage.v1.types import StorageClass

PROTECTION: dict[type[Object], str] = {
    PersistentVolumeClaim: "kubernetes.io/pvc-protection",
    PersistentVolume: "kubernetes.io/pv-protection",
}
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_BOUND = "pv.kubernetes.io/bind-completed"
_LATER = "WaitForFirstConsumer"


class Claims(msgspec.Struct, frozen=True):
    """How to find claims of a pod's namespace, and classes of storage; without them nothing is found."""

    claim: Callable[[str, str], PersistentVolumeClaim | None] = lambda _namespace, _name: None
    storage_class: Callable[[str], StorageClass | None] = lambda _: None


NO_CLAIMS = Claims()


def claims_of(pod: Pod) -> list[str]:
    """Names of the claims that a pod mounts; those that it makes for itself are named after pod and volume."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return names


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and _BOUND in claim.metadata.annotations


def objection(pod: Pod, claims: Claims) -> str:
    """Why no node will do for the pod's claims; empty when all are bound, or it has none."""
    found: list[PersistentVolumeClaim] = []
    for name in claims_of(pod):
        claim = claims.claim(pod.metadata.namespace, name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        found.append(claim)
    waiting = [persistent_volume_claim for persistent_volume_claim in found if not is_bound(persistent_volume_claim)]
    if any(not _binds_later(persistent_volume_claim, claims) for persistent_volume_claim in waiting):
        return UNBOUND
    return "node(s) didn't find available persistent volumes to bind" if waiting else ""


def _binds_later(claim: PersistentVolumeClaim, claims: Claims) -> bool:
    """Whether it is bound only when a pod with it has its node."""
    storage = claims.storage_class(claim.spec.storage_class_name or "")
    return storage is not None and storage.volume_binding_mode == _LATER


def claim_in_use(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> bool:
    """Whether a pod that has not ended mounts it."""
    return any(
        claim.metadata.name in claims_of(pod)
        for pod in pods
        if pod.metadata.namespace == claim.metadata.namespace and pod.status.phase not in ("Succeeded", "Failed")
    )


def volume_in_use(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Bound"
