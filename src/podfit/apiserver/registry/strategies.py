"""What may be written where: how a new object is completed, what of an update counts, which rules refuse it.

A kind has one main door and one for each subresource that takes objects. The rules themselves are pure functions of
`api.validation` and `decide`; this table says which of them guard which door.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition, CustomResourceDefinitionStatus, storage_version
from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment
from podfit.api.batch.v1.types import Job
from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.cluster_validation import validate_namespace_finalizers
from podfit.api.core.v1.namespaces.types import Namespace, NamespaceStatus
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim, PersistentVolumeClaimStatus
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, PersistentVolumeStatus
from podfit.api.core.v1.pods.types import GATED, Pod, PodCondition, PodStatus
from podfit.api.core.v1.pods.validation import status as pod_status
from podfit.api.core.v1.pods.validation import updates as pod_updates
from podfit.api.core.v1.services.types import Service
from podfit.api.registry import ResourceInfo
from podfit.api.storage.v1.defaults import with_sources
from podfit.api.structural.custom import Custom, is_custom
from podfit.api.validation import validate_create, validate_status, validate_update
from podfit.apiserver.registry.custom_scale import only_rescaled
from podfit.apiserver.registry.service_allocation import created, updated
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, invalid
from podfit.decide import certificates
from podfit.decide.pod.qos import qos_class
from podfit.decide.resize.validation import prepare_resize, validate_resize
from podfit.decide.workload.workloads import changed_daemon_set, new_daemon_set, new_job
from podfit.net.requests import certificate_problem, request_problem

NAMESPACE_FINALIZER = "kubernetes"

Prepare = Callable[[Any, Any, FeatureGates], Any]
Validate = Callable[[Any, Any, FeatureGates], list[FieldError]]


class Door(msgspec.Struct, frozen=True):
    """`prepare(new, old, gates)` keeps of a new object what this door may change; `validate` names what is wrong."""

    prepare: Prepare
    validate: Validate
    writes_dropped: bool = False
    """Whether a request is written even when all that it asked for was dropped; upstream does so for resize (PQ-1)."""


def prepare_create(info: ResourceInfo, obj: Any, gates: FeatureGates) -> Any:
    """A new object as it will be stored; the status is for whoever runs it to write."""
    match obj:
        case Pod():
            status = PodStatus(phase="Pending", qos_class=qos_class(obj, gates), conditions=_held_back(obj))
            return replace(obj, metadata=replace(obj.metadata, generation=1), status=status)
        case Namespace():
            finalizers = tuple(dict.fromkeys((*obj.spec.finalizers, NAMESPACE_FINALIZER)))
            spec = replace(obj.spec, finalizers=finalizers)
            return replace(obj, spec=spec, status=NamespaceStatus(phase="Active"))
        case Lease():
            return _uncoordinated(obj)
        case Service():
            return created(obj)
        case PersistentVolumeClaim():
            return replace(with_sources(obj), status=PersistentVolumeClaimStatus(phase="Pending"))
        case PersistentVolume():
            since = obj.metadata.creation_timestamp
            return replace(obj, status=PersistentVolumeStatus(phase="Pending", last_phase_transition_time=since))
        case CustomResourceDefinition():
            stored = CustomResourceDefinitionStatus(stored_versions=tuple(filter(None, (storage_version(obj),))))
            return replace(obj, metadata=replace(obj.metadata, generation=1), status=stored)
        case Custom():
            rest = {name: value for name, value in obj.rest.items() if name != "status" or not info.has_status}
            return replace(obj, metadata=replace(obj.metadata, generation=1), rest=rest)
        case DaemonSet():
            obj = new_daemon_set(obj)
        case Job():
            obj = new_job(obj)
    if info.counted is not None:
        obj = replace(obj, metadata=replace(obj.metadata, generation=1))
    return replace(obj, status=type(obj.status)()) if info.has_status else obj


def _uncoordinated(lease: Lease) -> Lease:
    """Without coordinated leader election, which is off by default, nobody has its fields."""
    return replace(lease, spec=replace(lease.spec, strategy="", preferred_holder=""))


def _held_back(pod: Pod) -> tuple[PodCondition, ...]:
    """A pod with gates says from the start that nobody will schedule it yet."""
    if not pod.spec.scheduling_gates:
        return ()
    condition = PodCondition(
        type="PodScheduled",
        status="False",
        last_transition_time=pod.metadata.creation_timestamp,
        reason="SchedulingGated",
        message=GATED,
    )
    return (condition,)


def check_create(obj: Any, gates: FeatureGates) -> list[FieldError]:
    errors = validate_create(obj, gates)
    if isinstance(obj, CertificateSigningRequest) and (problem := request_problem(obj.spec.request)):
        errors.insert(0, invalid("spec.request", obj.spec.request, problem))
    return errors


def door(info: ResourceInfo, subresource: str) -> Door:
    """The door of a kind or of its subresource."""
    if is_custom(info.type):
        return {"status": _CUSTOM_STATUS, "scale": _CUSTOM_SCALE}.get(subresource, _CUSTOM)
    if own := _DOORS.get((info.type, subresource)):
        return own
    if subresource == "scale":
        return Door(partial(_scale, info), validate_update)
    return _STATUS if subresource == "status" else Door(partial(_main, info), validate_update)


def _main(info: ResourceInfo, new: Any, old: Any, _gates: FeatureGates) -> Any:
    """All but the status, which has a door of its own; the generation counts changes of what it is about."""
    if info.has_status:
        new = replace(new, status=old.status)
    if isinstance(new, DaemonSet):
        new = changed_daemon_set(new, old)
    if info.counted is None:
        return new
    generation = old.metadata.generation + (info.counted(new) != info.counted(old))
    return replace(new, metadata=replace(new.metadata, generation=generation))


def _scale(info: ResourceInfo, new: Any, old: Any, gates: FeatureGates) -> Any:
    """The number of pods and nothing else."""
    kept = replace(old.metadata, managed_fields=new.metadata.managed_fields)
    return _main(info, replace(old, metadata=kept, spec=replace(old.spec, replicas=new.spec.replicas)), old, gates)


def _namespace(new: Namespace, old: Namespace, _gates: FeatureGates) -> Namespace:
    return replace(new, spec=old.spec, status=old.status)


def _claim(new: PersistentVolumeClaim, old: PersistentVolumeClaim, _gates: FeatureGates) -> PersistentVolumeClaim:
    return replace(with_sources(new), status=old.status)


def _finalize(new: Namespace, old: Namespace, _gates: FeatureGates) -> Namespace:
    return replace(new, status=old.status)


def _definition(new: Any, old: Any, _gates: FeatureGates) -> Any:
    kept, name = old.status, storage_version(new)
    if name and name not in kept.stored_versions:
        kept = replace(kept, stored_versions=(*kept.stored_versions, name))
    generation = old.metadata.generation + (new.spec != old.spec)
    return replace(new, metadata=replace(new.metadata, generation=generation), status=kept)


def _custom(new: Custom, old: Custom, _gates: FeatureGates) -> Custom:
    """Where the status is written apart it stays; whatever else changes is a new generation."""
    rest = new.rest
    if new.declared.has_status:
        kept = {name: value for name, value in old.rest.items() if name == "status"}
        rest = {name: value for name, value in rest.items() if name != "status"} | kept
    generation = old.metadata.generation + (rest != old.rest)
    return replace(new, metadata=replace(new.metadata, generation=generation), rest=rest)


def _custom_scale(new: Custom, old: Custom, gates: FeatureGates) -> Custom:
    kept = replace(old.metadata, managed_fields=new.metadata.managed_fields)
    return _custom(replace(only_rescaled(new, old), metadata=kept), old, gates)


def _custom_status(new: Custom, old: Custom, _gates: FeatureGates) -> Custom:
    rest = {name: value for name, value in old.rest.items() if name != "status"}
    rest |= {name: value for name, value in new.rest.items() if name == "status"}
    return replace(old, metadata=replace(old.metadata, managed_fields=new.metadata.managed_fields), rest=rest)


def _status(new: Any, old: Any, _gates: FeatureGates) -> Any:
    kept = replace(new.metadata, owner_references=old.metadata.owner_references)
    return replace(new, metadata=kept, spec=old.spec)


def _deployment_status(new: Deployment, old: Deployment, gates: FeatureGates) -> Any:
    labels = replace(new.metadata, labels=old.metadata.labels)
    return _status(replace(new, metadata=labels), old, gates)


def _answered(new: CertificateSigningRequest, old: CertificateSigningRequest, _gates: FeatureGates) -> list[FieldError]:
    errors, data = validate_status(new, old), new.status.certificate
    if data and data != old.status.certificate and (problem := certificate_problem(data)):
        errors.append(invalid("status.certificate", "<certificate data>", problem))
    return errors


def _judged(new: CertificateSigningRequest, old: CertificateSigningRequest, _gates: FeatureGates) -> list[FieldError]:
    from podfit.api.certificates.v1.validation import validate_approval

    return validate_approval(new, old)


_STATUS = Door(_status, lambda new, old, _: validate_status(new, old))
_CUSTOM_SCALE = Door(_custom_scale, validate_update)
_CUSTOM = Door(_custom, validate_update)
_CUSTOM_STATUS = Door(_custom_status, lambda new, old, _: validate_status(new, old))
_DOORS: dict[tuple[type, str], Door] = {
    (Pod, ""): Door(lambda new, old, _: pod_updates.prepare_pod_update(new, old), validate_update),
    (Pod, "resize"): Door(prepare_resize, validate_resize, writes_dropped=True),
    (Pod, "status"): Door(
        lambda new, old, _: pod_updates.prepare_status_update(new, old),
        lambda new, old, _: pod_status.validate_status_update(new, old),
    ),
    (Pod, "ephemeralcontainers"): Door(
        lambda new, old, _: pod_updates.prepare_ephemeral_update(new, old), pod_updates.validate_ephemeral_update
    ),
    (CustomResourceDefinition, ""): Door(_definition, validate_update),
    (Service, ""): Door(lambda new, old, _: updated(new, old), validate_update),
    (Deployment, "status"): Door(_deployment_status, lambda new, old, _: validate_status(new, old)),
    (PersistentVolumeClaim, ""): Door(_claim, validate_update),
    (CertificateSigningRequest, ""): Door(lambda new, old, _: certificates.unchanged(new, old), validate_update),
    (CertificateSigningRequest, "status"): Door(lambda new, old, _: certificates.answered(new, old), _answered),
    (CertificateSigningRequest, "approval"): Door(lambda new, old, _: certificates.judged(new, old), _judged),
    (Lease, ""): Door(lambda new, _old, _: _uncoordinated(new), validate_update),
    (Namespace, ""): Door(_namespace, validate_update),
    (Namespace, "finalize"): Door(_finalize, lambda new, old, _: validate_namespace_finalizers(new, old)),
}
