"""Volumes in scheduling: whether a pod's claims let it run on a node."""

from collections.abc import Callable, Iterable

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.api.meta.selectors import holds, requirements
from podfit.api.storage.v1.types import StorageClass
from podfit.core.quantity import ZERO
from podfit.decide.placement.node_filters import term_matches
from podfit.decide.placement.view import NodeInfo, Refusal

PROTECTION: dict[type[Object], str] = {
    PersistentVolumeClaim: "kubernetes.io/pvc-protection",
    PersistentVolume: "kubernetes.io/pv-protection",
}
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim that is bound later: the node that its pod gets."""
HOSTNAME = "kubernetes.io/hostname"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ELSEWHERE = Refusal("VolumeBinding", ("node(s) didn't match PersistentVolume's node affinity",), final=True)
NOTHING = Refusal("VolumeBinding", ("node(s) didn't find available persistent volumes to bind",), final=True)
WAITS = "WaitForFirstConsumer"


class ClaimLookup(msgspec.Struct, frozen=True):
    """How to find claims of a pod's namespace, and classes of storage; without them nothing is found."""

    claim: Callable[[str, str], PersistentVolumeClaim | None] = lambda _namespace, _name: None
    storage_class: Callable[[str], StorageClass | None] = lambda _: None
    volume: Callable[[str], PersistentVolume | None] = lambda _: None
    volumes: Callable[[], Iterable[PersistentVolume]] = lambda: ()


NO_CLAIMS = ClaimLookup()


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
    return bool(claim.spec.volume_name) and BOUND in claim.metadata.annotations


def objection(pod: Pod, claims: ClaimLookup) -> str:
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
    waiting = (claim for claim in found if not is_bound(claim))
    return "" if all(_binds_later(claim, claims) for claim in waiting) else UNBOUND


class VolumeRules(msgspec.Struct, frozen=True):
    """Where a pod may be for its claims' sake: near volumes that it has, and where those that it will have can be."""

    bound: tuple[PersistentVolume, ...]
    unbound: tuple[PersistentVolumeClaim, ...]
    claims: ClaimLookup

    def refuse(self, view: NodeInfo) -> Refusal | None:
        if any(not admits_node(volume, view.node) for volume in self.bound):
            return ELSEWHERE
        return None if all(self._can_be(claim, view.node) for claim in self.unbound) else NOTHING

    def _can_be(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        if claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name) != node.metadata.name:
            return False
        storage = self.claims.storage_class(claim.spec.storage_class_name or "")
        if storage is None:
            return False
        if storage.provisioner != NO_PROVISIONER:
            return _in_topology(storage, node)
        return any(may_take(claim, volume) and admits_node(volume, node) for volume in self.claims.volumes())


def volume_rules(pod: Pod, claims: ClaimLookup) -> VolumeRules | None:
    """None for a pod without claims; of one that `objection` has nothing against."""
    names = claims_of(pod)
    if not names:
        return None
    namespace = pod.metadata.namespace
    found = [claim for name in names if (claim := claims.claim(namespace, name)) is not None]
    volumes = (claims.volume(claim.spec.volume_name) for claim in found if is_bound(claim))
    return VolumeRules(
        bound=tuple(volume for volume in volumes if volume is not None),
        unbound=tuple(claim for claim in found if not is_bound(claim)),
        claims=claims,
    )


def admits_node(volume: PersistentVolume, node: Node) -> bool:
    """Whether the volume can be used on this node."""
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    return not terms or any(term_matches(term, node) for term in terms)


def _in_topology(storage: StorageClass, node: Node) -> bool:
    labels = node.metadata.labels
    return not storage.allowed_topologies or any(
        all(labels.get(wanted.key) in wanted.values for wanted in term.match_label_expressions)
        for term in storage.allowed_topologies
    )


def may_take(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the volume is free, and as the claim wants it."""
    spec, wanted = volume.spec, claim.spec
    return (
        spec.claim_ref is None
        and volume.status.phase == "Available"
        and spec.storage_class_name == (wanted.storage_class_name or "")
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and set(wanted.access_modes) <= set(spec.access_modes)
        and spec.capacity.get("storage", ZERO) >= wanted.resources.requests.get("storage", ZERO)
        and (wanted.selector is None or holds(requirements(wanted.selector), volume.metadata.labels))
    )


def _binds_later(claim: PersistentVolumeClaim, claims: ClaimLookup) -> bool:
    """Whether it is bound only when a pod with it has its node."""
    storage = claims.storage_class(claim.spec.storage_class_name or "")
    return storage is not None and storage.volume_binding_mode == WAITS


def claim_in_use(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> bool:
    """Whether a pod that has not ended mounts it."""
    return any(
        claim.metadata.name in claims_of(pod)
        for pod in pods
        if pod.metadata.namespace == claim.metadata.namespace and pod.status.phase not in ("Succeeded", "Failed")
    )


def volume_in_use(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Bound"
