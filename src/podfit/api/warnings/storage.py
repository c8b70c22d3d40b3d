"""Warnings about volumes, claims and what provides them, in nodes and in runtime classes."""

from collections.abc import Callable, Iterator
from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claim_validation import claim_warnings
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import CLASS_ANNOTATION, PersistentVolume
from podfit.api.core.v1.pods.validation.deprecations import NODE_LABELS
from podfit.api.meta.base import Object
from podfit.api.node.v1.types import RuntimeClass
from podfit.api.storage.v1.types import CSIDriver, StorageClass
from podfit.api.warnings.addresses import of_networks

MOUNT_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
_ANNOTATIONS = {
    CLASS_ANNOTATION: 'deprecated since v1.8; use "storageClassName" attribute instead',
    MOUNT_ANNOTATION: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_RECYCLE = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
_SOURCES = (
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photon_persistent_disk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scale_io", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def of_volume(volume: PersistentVolume) -> Iterator[str]:
    spec = volume.spec
    for key, text in _ANNOTATIONS.items():
        if key in volume.metadata.annotations:
            yield f"metadata.annotations[{key}]: {text}"
    if spec.persistent_volume_reclaim_policy == "Recycle":
        yield f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"
    wanted = spec.node_affinity.required if spec.node_affinity else None
    for index, term in enumerate(wanted.node_selector_terms if wanted else ()):
        for position, expression in enumerate(term.match_expressions):
            if expression.key in NODE_LABELS:
                path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}].matchExpressions[{position}].key"
                yield f"{path}: {expression.key} is {NODE_LABELS[expression.key]}"
    for attribute, name, text in _SOURCES:
        if getattr(spec, attribute) is not None:
            yield f"spec.{name}: {text}"


def of_claim(claim: PersistentVolumeClaim) -> Iterator[str]:
    if CLASS_ANNOTATION in claim.metadata.annotations:
        yield f"metadata.annotations[{CLASS_ANNOTATION}]: {_ANNOTATIONS[CLASS_ANNOTATION]}"
    yield from claim_warnings(claim.spec, "spec")


def of_class(storage: StorageClass) -> Iterator[str]:
    for index, term in enumerate(storage.allowed_topologies):
        for position, expression in enumerate(term.match_label_expressions):
            if expression.key in NODE_LABELS:
                path = f"allowedTopologies[{index}].matchLabelExpressions[{position}].key"
                yield f"{path}: {NODE_LABELS[expression.key]}"


def of_driver(driver: CSIDriver, old: CSIDriver | None) -> Iterator[str]:
    """Only who asks for tokens anew is told."""
    spec = driver.spec
    asked = spec.token_requests and (old is None or spec.token_requests != old.spec.token_requests)
    if asked and spec.service_account_token_in_secrets is None:
        yield _TOKENS


def of_runtime_class(runtime: RuntimeClass) -> Iterator[str]:
    for key in sorted(runtime.scheduling.node_selector if runtime.scheduling else ()):
        if key in NODE_LABELS:
            yield f"scheduling.nodeSelector: {NODE_LABELS[key]}"


def of_node(node: Node) -> Iterator[str]:
    if node.spec.external_id:
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    yield from of_networks(node.spec.pod_cidrs, "spec.podCIDRs")


WARNINGS: dict[type[Object], Callable[[Any, Any], Iterator[str]]] = {
    CSIDriver: of_driver,
    Node: lambda new, _: of_node(new),
    PersistentVolume: lambda new, _: of_volume(new),
    PersistentVolumeClaim: lambda new, _: of_claim(new),
    RuntimeClass: lambda new, _: of_runtime_class(new),
    StorageClass: lambda new, _: of_class(new),
}
