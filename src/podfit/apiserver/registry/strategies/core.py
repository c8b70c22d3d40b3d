"""Strategies of the core group: namespaces, services, volumes and their claims; those of pods are in `pods`."""

from msgspec.structs import replace

from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.namespaces.types import Namespace, NamespaceStatus
from podfit.api.core.v1.namespaces.validation import validate_namespace_finalizers
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim, PersistentVolumeClaimStatus
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, PersistentVolumeStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.storage.v1.defaults import with_sources
from podfit.apiserver.registry.service_allocation import created, updated
from podfit.apiserver.registry.strategies import pods
from podfit.apiserver.registry.strategies.strategy import (
    DeleteStrategy,
    Strategy,
    UpdateStrategy,
    check_before_contents,
)
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError

NAMESPACE_FINALIZER = "kubernetes"


def _new_namespace(_info: ResourceInfo, obj: Namespace, _gates: FeatureGates) -> Namespace:
    finalizers = tuple(dict.fromkeys((*obj.spec.finalizers, NAMESPACE_FINALIZER)))
    return replace(obj, spec=replace(obj.spec, finalizers=finalizers), status=NamespaceStatus(phase="Active"))


def _changed_namespace(_info: ResourceInfo, new: Namespace, old: Namespace, _gates: FeatureGates) -> Namespace:
    return replace(new, spec=old.spec, status=old.status)


def _finalized(_info: ResourceInfo, new: Namespace, old: Namespace, _gates: FeatureGates) -> Namespace:
    return replace(new, status=old.status)


def _finalizer_errors(new: Namespace, old: Namespace, _gates: FeatureGates) -> list[FieldError]:
    return validate_namespace_finalizers(new, old)


def _marked_namespace(obj: Namespace) -> Namespace:
    return replace(
        obj,
        metadata=replace(obj.metadata, deletion_grace_period_seconds=None),
        status=replace(obj.status, phase="Terminating"),
    )


def _has_contents(obj: Namespace) -> bool:
    """The first request marks a namespace, even where nothing is left in it."""
    return bool(obj.spec.finalizers) or not obj.metadata.deletion_timestamp


def _new_service(_info: ResourceInfo, obj: Service, _gates: FeatureGates) -> Service:
    return created(obj)


def _changed_service(_info: ResourceInfo, new: Service, old: Service, _gates: FeatureGates) -> Service:
    return updated(new, old)


def _unrouted(service: Service, routed: bool) -> tuple[str, ...]:
    """A headless service promises no more than its endpoints, and one of another name is the DNS server's."""
    if routed or service.spec.type == "ExternalName" or service.spec.cluster_ip == "None":
        return ()
    told = "podfit's nodes route no service where they are simulated, or pods on the host's network: clients have to"
    return (f"{told} use the addresses of its endpoints, not spec.clusterIP",)


def _new_claim(_info: ResourceInfo, obj: PersistentVolumeClaim, _gates: FeatureGates) -> PersistentVolumeClaim:
    return replace(with_sources(obj), status=PersistentVolumeClaimStatus(phase="Pending"))


def _changed_claim(
    _info: ResourceInfo, new: PersistentVolumeClaim, old: PersistentVolumeClaim, _gates: FeatureGates
) -> PersistentVolumeClaim:
    return replace(with_sources(new), status=old.status)


def _new_volume(_info: ResourceInfo, obj: PersistentVolume, _gates: FeatureGates) -> PersistentVolume:
    since = obj.metadata.creation_timestamp
    return replace(obj, status=PersistentVolumeStatus(phase="Pending", last_phase_transition_time=since))


def _new_node(_info: ResourceInfo, obj: Node, _gates: FeatureGates) -> Node:
    """The Node with its status: a kubelet registers with what its machine has."""
    return obj


_ANSWERED_WITH_OBJECT = Strategy(delete=DeleteStrategy(answered_with_object=True))
STRATEGIES: dict[type[Object], Strategy] = {
    Pod: pods.STRATEGY,
    Namespace: Strategy(
        prepare_create=_new_namespace,
        update=UpdateStrategy(prepare=_changed_namespace),
        subresources={"finalize": UpdateStrategy(prepare=_finalized, validate=_finalizer_errors)},
        delete=DeleteStrategy(
            preconditions=check_before_contents,
            mark=_marked_namespace,
            held=_has_contents,
            propagates=False,
            answered_with_object=True,
        ),
    ),
    Service: Strategy(
        prepare_create=_new_service, update=UpdateStrategy(prepare=_changed_service), unsupported_fields=_unrouted
    ),
    PersistentVolumeClaim: Strategy(prepare_create=_new_claim, update=UpdateStrategy(prepare=_changed_claim)),
    PersistentVolume: Strategy(prepare_create=_new_volume),
    Node: Strategy(prepare_create=_new_node),
    ServiceAccount: _ANSWERED_WITH_OBJECT,
    ResourceQuota: _ANSWERED_WITH_OBJECT,
}
