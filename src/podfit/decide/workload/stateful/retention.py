"""The claim retention policy of a stateful set, as owner references of claims.

deleted: Delete   the set, so that claims go with it
scaled: Delete    the pod, while it is beyond the set's size, so that its claims go when it does
Retain            nobody
"""

from msgspec.structs import replace

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import ObjectIdentity, controller_of, identity_of, is_controlled_by, named_by, reference_to
from podfit.api.meta.v1.types import OwnerReference
from podfit.decide.workload.stateful import identity

DELETE = "Delete"


def owned(owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim) -> PersistentVolumeClaim | None:
    """The claim with the owners it is to have; None when it has them, or is somebody else's."""
    identities = identity_of(owner), identity_of(pod)
    if controller_of(claim.metadata) is not None and not any(
        is_controlled_by(claim.metadata, identity) for identity in identities
    ):
        return None
    policy = owner.spec.persistent_volume_claim_retention_policy
    deleted = policy is not None and policy.when_deleted == DELETE
    scaled = policy is not None and policy.when_scaled == DELETE
    condemned = not identity.is_wanted(owner, pod)
    wanted: OwnerReference | None = None
    if scaled and condemned and pod.metadata.uid:
        wanted = reference_to(pod)
    elif deleted and not (scaled and condemned):
        wanted = reference_to(owner)
    ours = [_name(identity) for identity in identities]
    others = tuple(
        reference
        for reference in claim.metadata.owner_references
        if _name(named_by(reference, claim.metadata.namespace)) not in ours
    )
    references = others if wanted is None else (*others, wanted)
    if references == claim.metadata.owner_references:
        return None
    return replace(claim, metadata=replace(claim.metadata, owner_references=references))


def is_stale(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether it belongs to an earlier pod of this name and is on its way out."""
    identity, meta = identity_of(pod), claim.metadata
    owners = [named_by(reference, meta.namespace) for reference in meta.owner_references]
    return any(_name(owner) == _name(identity) and owner != identity for owner in owners)


def _name(identity: ObjectIdentity) -> ObjectIdentity:
    """The name of an object and of all that had it before."""
    return identity._replace(uid="")
