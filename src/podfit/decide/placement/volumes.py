"""Volumes in scheduling: whether a pod's claims let it run on a node."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume, class_of
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.api.meta.codec import encode
from podfit.api.meta.selectors import holds, requirements
from podfit.api.storage.v1.types import StorageClass
from podfit.core.quantity import ZERO
from podfit.decide.placement.node_filters import term_matches
from podfit.decide.placement.view import NodeInfo, Refusal
from podfit.decide.pod.volume_claims import claim_of, ephemeral_claims, not_its_own

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
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
WAITS = "WaitForFirstConsumer"


class ClaimLookup(msgspec.Struct, frozen=True):
    """How to find claims of a pod's namespace, and classes of storage; without them nothing is found.

    `knows_volumes`: where volumes may not be read, none of them stands in the way.
    """

    claim: Callable[[str, str], PersistentVolumeClaim | None] = lambda _namespace, _name: None
    storage_class: Callable[[str], StorageClass | None] = lambda _: None
    volume: Callable[[str], PersistentVolume | None] = lambda _: None
    volumes: Callable[[], Iterable[PersistentVolume]] = lambda: ()
    knows_volumes: bool = True


NO_CLAIMS = ClaimLookup()


def claims_of(pod: Pod) -> list[str]:
    """Names of the claims that a pod mounts, each once; those that it makes for itself are named after pod and
    volume."""
    return list(dict.fromkeys(name for volume in pod.spec.volumes if (name := claim_of(volume, pod))))


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BOUND in claim.metadata.annotations


def objection(pod: Pod, claims: ClaimLookup) -> str:
    """Why no node will do for the pod's claims; empty when all are bound, or it has none."""
    found: list[PersistentVolumeClaim] = []
    ephemeral = ephemeral_claims(pod)
    for name in claims_of(pod):
        claim = claims.claim(pod.metadata.namespace, name)
        if claim is None:
            if name in ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return f'persistentvolumeclaim "{name}" not found'
        if problem := not_its_own(pod, claim, ephemeral):
            return problem
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        found.append(claim)
    waiting = (claim for claim in found if not is_bound(claim))
    return "" if all(_binds_later(claim, claims) for claim in waiting) else UNBOUND


class UnboundClaim(msgspec.Struct, frozen=True):
    """`volumes` are those that it could have, were they on the node: first what is meant for it, then by size."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]


class VolumeRules(msgspec.Struct, frozen=True):
    """Where a pod may be for its claims' sake: near volumes that it has, and where those that it will have can be.

    `lost`: a claim is bound to a volume that there is not. No eviction changes any of it.
    """

    bound: tuple[PersistentVolume, ...]
    unbound: tuple[UnboundClaim, ...]
    lost: bool
    claims: ClaimLookup

    def refuse(self, view: NodeInfo) -> Refusal | None:
        elsewhere = any(not admits_node(volume, view.node) for volume in self.bound)
        checks = ((elsewhere, ELSEWHERE), (not self._can_be(view.node), NOTHING), (self.lost, LOST))
        reasons = tuple(reason for refused, reason in checks if refused)
        return Refusal("VolumeBinding", reasons, final=True) if reasons else None

    def _can_be(self, node: Node) -> bool:
        """Each claim gets a volume that is there, the smallest that will do and one for each, or can have one made."""
        left: dict[str, bool] = {}
        """By volume: whether it can be used on the node, and is not taken."""
        for unbound in self.unbound:
            claim = unbound.claim
            if claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name) != node.metadata.name:
                return False
            for volume in unbound.volumes:
                name = volume.metadata.name
                if left.get(name, True) and admits_node(volume, node):
                    left[name] = False
                    break
                left[name] = False
            else:
                if not self._is_made(claim, node):
                    return False
        return True

    def _is_made(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        storage = self.claims.storage_class(class_of(claim))
        if storage is None:
            return False
        if storage.provisioner == NO_PROVISIONER:
            return not self.claims.knows_volumes
        return _in_topology(storage, node)


def volume_rules(pod: Pod, claims: ClaimLookup) -> VolumeRules | None:
    """None for a pod without claims; of one that `objection` has nothing against."""
    names = claims_of(pod)
    if not names:
        return None
    namespace = pod.metadata.namespace
    found = [claim for name in names if (claim := claims.claim(namespace, name)) is not None]
    volumes = [claims.volume(claim.spec.volume_name) for claim in found if is_bound(claim)]
    return VolumeRules(
        bound=tuple(volume for volume in volumes if volume is not None),
        unbound=tuple(_unbound([claim for claim in found if not is_bound(claim)], claims)),
        lost=claims.knows_volumes and None in volumes,
        claims=claims,
    )


def _unbound(waiting: list[PersistentVolumeClaim], claims: ClaimLookup) -> Iterator[UnboundClaim]:
    """The claims that ask for little first. The volumes are looked through once, and again for each size or kind of
    volume that is asked for, not for each claim."""
    if not waiting:
        return
    there = [volume for volume in claims.volumes() if not volume.metadata.deletion_timestamp]
    free = sorted((volume for volume in there if is_free(volume)), key=by_size)
    meant: dict[tuple[str, str], list[PersistentVolume]] = {}
    for volume in there:
        if (ref := volume.spec.claim_ref) is not None:
            meant.setdefault((ref.namespace, ref.name), []).append(volume)
    fitting: dict[tuple[str, bytes], list[PersistentVolume]] = {}
    for claim in sorted(waiting, key=_wanted_size):
        meta, wanted = claim.metadata, (class_of(claim), encode(claim.spec))
        if wanted not in fitting:
            fitting[wanted] = [volume for volume in free if may_take(claim, volume)]
        mine = [volume for volume in meant.get((meta.namespace, meta.name), ()) if is_for(volume, claim)]
        yield UnboundClaim(claim, (*mine, *fitting[wanted]) if mine else fitting[wanted])


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume says that it is this claim's, or will be."""
    ref = volume.spec.claim_ref
    meta = claim.metadata
    return ref is not None and (ref.namespace, ref.name) == (meta.namespace, meta.name) and ref.uid in ("", meta.uid)


def by_size(volume: PersistentVolume) -> tuple[int, str]:
    """The smallest first; of equals the first name."""
    return volume.spec.capacity.get("storage", ZERO).nano, volume.metadata.name


def _wanted_size(claim: PersistentVolumeClaim) -> int:
    return claim.spec.resources.requests.get("storage", ZERO).nano


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


def is_free(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase == "Available"


def may_take(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the volume is free, and as the claim wants it."""
    spec, wanted = volume.spec, claim.spec
    return (
        is_free(volume)
        and spec.storage_class_name == class_of(claim)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and set(wanted.access_modes) <= set(spec.access_modes)
        and spec.capacity.get("storage", ZERO) >= wanted.resources.requests.get("storage", ZERO)
        and (wanted.selector is None or holds(requirements(wanted.selector), volume.metadata.labels))
    )


def _binds_later(claim: PersistentVolumeClaim, claims: ClaimLookup) -> bool:
    """Whether it is bound only when a pod with it has its node."""
    storage = claims.storage_class(class_of(claim))
    return storage is not None and storage.volume_binding_mode == WAITS


def claim_in_use(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> bool:
    """Whether a pod that has not ended mounts it."""
    return any(
        claim.metadata.name in claims_of(pod) and not not_its_own(pod, claim, ephemeral_claims(pod))
        for pod in pods
        if pod.metadata.namespace == claim.metadata.namespace and not has_ended(pod)
    )


def volume_in_use(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Bound"
