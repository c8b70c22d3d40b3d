"""Volume binding: which volume a claim gets, and what both say when bound."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.references import ObjectReference
from podfit.decide.placement.volumes import BOUND, admits_node, by_size, is_for, may_take

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
OLD_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
STORAGE = "storage"


class Bound(msgspec.Struct, frozen=True):
    """Both halves, each None where nothing is to be written."""

    volume: PersistentVolume | None
    claim: PersistentVolumeClaim | None


def best(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node | None
) -> PersistentVolume | None:
    """One that is meant for the claim, else the smallest that will do; on this node, if it has to be there."""
    volumes = [volume for volume in volumes if not volume.metadata.deletion_timestamp]
    if (meant := next((volume for volume in volumes if is_for(volume, claim)), None)) is not None:
        return meant
    fitting = [volume for volume in volumes if may_take(claim, volume) and (node is None or admits_node(volume, node))]
    return min(fitting, key=by_size, default=None)


def bind(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Bound:
    """The specs of both; their statuses follow."""
    meta, ref = claim.metadata, volume.spec.claim_ref
    new_volume = None
    if ref is None or ref.uid != meta.uid:
        told = ObjectReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        annotations = volume.metadata.annotations | ({BY_CONTROLLER: "yes"} if ref is None else {})
        new_volume = replace(
            volume,
            metadata=replace(volume.metadata, annotations=annotations),
            spec=replace(volume.spec, claim_ref=told),
        )
    new_claim = None
    if claim.spec.volume_name != volume.metadata.name or BOUND not in meta.annotations:
        annotations = {**meta.annotations, BOUND: "yes"}
        if not claim.spec.volume_name:
            annotations[BY_CONTROLLER] = "yes"
        new_claim = replace(
            claim,
            metadata=replace(meta, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.metadata.name),
        )
    return Bound(new_volume, new_claim)


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim with the status of one that is bound."""
    status = replace(
        claim.status, phase="Bound", access_modes=volume.spec.access_modes, capacity=dict(volume.spec.capacity)
    )
    return replace(claim, status=status)
