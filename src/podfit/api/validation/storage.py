"""Persistent volumes, claims, storage classes and runtime classes."""

from msgspec.structs import replace

from podfit.api.base import Object, ResourceList
from podfit.api.core.claims import PersistentVolumeClaim
from podfit.api.core.persistent import PersistentVolume
from podfit.api.node import RuntimeClass
from podfit.api.storage import CSIDriver, CSINode, StorageClass
from podfit.api.validation import names
from podfit.api.validation.claims import claim_spec
from podfit.api.validation.csi_nodes import validate_csi_node, validate_csi_node_update
from podfit.api.validation.meta import immutable, validate_labels
from podfit.api.validation.persistent import validate_volume, validate_volume_update
from podfit.api.validation.resources import amount
from podfit.api.validation.rules import Rules
from podfit.api.validation.scheduling import validate_tolerations
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported

_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def validate_claim(claim: PersistentVolumeClaim) -> list[FieldError]:
    return claim_spec(claim.spec, "spec")


def validate_claim_update(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """Once made a claim stays as it is, but for growing when it is bound."""
    errors = validate_claim(new)
    after, before = new.spec, old.spec
    if not before.volume_name:
        before = replace(before, volume_name=after.volume_name)
    if before.storage_class_name is None:
        before = replace(before, storage_class_name=after.storage_class_name)
    if new.status.phase == "Bound":
        resources = replace(before.resources, requests=_grown(before.resources.requests, after.resources.requests))
        before = replace(before, resources=resources, volume_attributes_class_name=after.volume_attributes_class_name)
    if after != before:
        errors.append(forbidden("spec", _FIXED))
    size, former = after.resources.requests.get("storage"), old.spec.resources.requests.get("storage")
    if new.status.phase == "Bound" and size is not None and former is not None and size < former:
        given = old.status.capacity.get("storage")
        if given is None or size <= given:
            text = "field can not be less than status.capacity"
            errors.append(forbidden("spec.resources.requests.storage", text))
    return errors + immutable(new.spec.volume_mode, old.spec.volume_mode, "volumeMode")


def _grown(old: ResourceList, new: ResourceList) -> ResourceList:
    return {**old, **({"storage": new["storage"]} if "storage" in new else {})}


def validate_class(storage: StorageClass) -> list[FieldError]:
    name = storage.provisioner
    errors = [] if name else [required("provisioner")]
    if name:
        errors += [invalid("provisioner", name, text) for text in names.qualified(name.lower())]
    if "" in storage.parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if storage.reclaim_policy not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", storage.reclaim_policy, ("Delete", "Retain")))
    modes = ("Immediate", "WaitForFirstConsumer")
    if storage.volume_binding_mode not in modes:
        errors.append(unsupported("volumeBindingMode", storage.volume_binding_mode, modes))
    return errors


def validate_class_update(new: StorageClass, old: StorageClass) -> list[FieldError]:
    errors = [
        forbidden(name, f"updates to {name} are forbidden.")
        for name, after, before in (
            ("parameters", new.parameters, old.parameters),
            ("provisioner", new.provisioner, old.provisioner),
            ("reclaimPolicy", new.reclaim_policy, old.reclaim_policy),
        )
        if after != before
    ]
    return errors + immutable(new.volume_binding_mode, old.volume_binding_mode, "volumeBindingMode")


def validate_runtime_class(runtime: RuntimeClass) -> list[FieldError]:
    errors = [invalid("handler", runtime.handler, text) for text in names.dns_label(runtime.handler)]
    for name, size in sorted(runtime.overhead.pod_fixed.items()) if runtime.overhead else ():
        errors += amount(name, size, f"overhead.podFixed[{name}]")
    if runtime.scheduling is not None:
        errors += validate_labels(runtime.scheduling.node_selector, "scheduling.nodeSelector")
        errors += validate_tolerations(runtime.scheduling.tolerations, "scheduling.tolerations")
    return errors


def validate_runtime_class_update(new: RuntimeClass, old: RuntimeClass) -> list[FieldError]:
    return validate_runtime_class(new) + immutable(new.handler, old.handler, "handler")


RULES: dict[type[Object], Rules] = {
    PersistentVolumeClaim: Rules(create=validate_claim, update=validate_claim_update),
    PersistentVolume: Rules(create=validate_volume, update=validate_volume_update),
    StorageClass: Rules(create=validate_class, update=validate_class_update),
    CSIDriver: Rules(),
    CSINode: Rules(create=validate_csi_node, update=validate_csi_node_update),
    RuntimeClass: Rules(create=validate_runtime_class, update=validate_runtime_class_update),
}
