"""Claims of a pod's volumes: those that it names, and those that are made for its generic ephemeral volumes."""

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.owners import identity_of, is_controlled_by


def claim_of(volume: Volume, pod: Pod) -> str:
    """The claim behind a volume; an ephemeral volume's is called `POD-VOLUME`. Empty when there is none."""
    if volume.persistent_volume_claim:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral else ""


def ephemeral_claims(pod: Pod) -> frozenset[str]:
    return frozenset(claim_of(volume, pod) for volume in pod.spec.volumes if volume.ephemeral)


def not_its_own(pod: Pod, claim: PersistentVolumeClaim, ephemeral: frozenset[str]) -> str:
    """Why a claim is not for an ephemeral volume of the pod, although it has the name; empty for every other claim.
    `ephemeral` are the pod's `ephemeral_claims`.

    Only the pod that controls such a claim may use it, as upstream's `VolumeIsForPod`.
    """
    meta = claim.metadata
    if meta.name not in ephemeral:
        return ""
    if is_controlled_by(meta, identity_of(pod)):
        return ""
    place = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return f"PVC {meta.namespace}/{meta.name} was not created for pod {place} (pod is not owner)"
