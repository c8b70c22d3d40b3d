"""What becomes of a claim without a volume: it gets one, it waits, or a provisioner is asked for one."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, class_of
from podfit.api.storage.v1.types import StorageClass
from podfit.decide.placement.volumes import NO_PROVISIONER, SELECTED_NODE, WAITS, is_bound, is_for
from podfit.decide.workload.events import NORMAL, WARNING, WorkloadEvent
from podfit.decide.workload.volume_binding import OLD_PROVISIONER, PROVISIONER, best


class Binds(msgspec.Struct, frozen=True):
    """To this volume."""

    volume: PersistentVolume


class Waits(msgspec.Struct, frozen=True):
    """`ask` is the claim as it asks a provisioner, where it does not yet."""

    told: WorkloadEvent | None = None
    ask: PersistentVolumeClaim | None = None


def unbound(
    claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], storage: StorageClass | None, node: Node | None
) -> Binds | Waits:
    """`storage` is the claim's class, `node` the one that the scheduler has selected for its first pod."""
    if claim.spec.volume_name:
        return _named(claim, volumes)
    selected = bool(claim.metadata.annotations.get(SELECTED_NODE))
    first_consumer = storage is not None and storage.volume_binding_mode == WAITS
    if first_consumer and not selected and not any(is_for(volume, claim) for volume in volumes):
        text = "waiting for first consumer to be created before binding"
        return Waits(WorkloadEvent(NORMAL, "WaitForFirstConsumer", text))
    if (volume := best(claim, volumes, node)) is not None:
        return Binds(volume)
    if storage is None or storage.provisioner == NO_PROVISIONER:
        return Waits(_nobody_provides(claim, storage))
    return _asking(claim, storage.provisioner)


def _named(claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]) -> Binds | Waits:
    volume = next((volume for volume in volumes if volume.metadata.name == claim.spec.volume_name), None)
    if volume is None or not (volume.spec.claim_ref is None or is_for(volume, claim)):
        return Waits()
    return Binds(volume)


def is_asked(provisioner: str, claim: PersistentVolumeClaim, storage: StorageClass | None) -> bool:
    """Whether this provisioner is to make a volume for the claim, on the node that the scheduler has selected.

    The class has to be the provisioner's own: everybody who makes a claim can write the annotations of one.
    """
    annotations = claim.metadata.annotations
    asked = annotations.get(PROVISIONER) == provisioner and bool(annotations.get(SELECTED_NODE))
    return asked and not is_bound(claim) and storage is not None and storage.provisioner == provisioner


def _nobody_provides(claim: PersistentVolumeClaim, storage: StorageClass | None) -> WorkloadEvent:
    text = "no persistent volumes available for this claim and no storage class is set"
    if not (name := class_of(claim)):
        return WorkloadEvent(NORMAL, "FailedBinding", text)
    missing = f'storageclass.storage.k8s.io "{name}" not found'
    nobody = f"no volume plugin matched name: {NO_PROVISIONER}"
    return WorkloadEvent(WARNING, "ProvisioningFailed", missing if storage is None else nobody)


def _asking(claim: PersistentVolumeClaim, provisioner: str) -> Waits:
    text = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
        "manually by the system administrator. If volume creation is delayed, please verify that the provisioner "
        "is running and correctly registered."
    )
    told = WorkloadEvent(NORMAL, "ExternalProvisioning", text)
    if claim.metadata.annotations.get(PROVISIONER) == provisioner:
        return Waits(told)
    asked = {PROVISIONER: provisioner, OLD_PROVISIONER: provisioner}
    meta = replace(claim.metadata, annotations=claim.metadata.annotations | asked)
    return Waits(told, ask=replace(claim, metadata=meta))
