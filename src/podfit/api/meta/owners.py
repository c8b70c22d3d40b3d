"""Owner references: which object one names, and what controls an object.

A reference names one object only: of this API group, kind, name and UID, and of the namespace in which the reference
stands, or of none where the owner is cluster-scoped. A UID alone proves nothing: whoever reads it can write it into a
reference anywhere. The version of a reference does not count, since references outlive versions.

Everybody who asks whose an object is asks here: the controllers, the garbage collector, the scheduler, the autoscaler,
the kubelet, admission and the answers.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import OwnerReference

CHAIN_LIMIT = 8
"""So many owners above one another are followed. A pod of a CronJob has two, of a Deployment two."""


class ObjectIdentity(NamedTuple):
    """One object, not its successor of the same name. `namespace` is empty for a cluster-scoped one."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str


class HasOwners(Protocol):
    """Metadata, as far as owners go: the whole of it, or what was decoded of it."""

    @property
    def owner_references(self) -> Sequence[OwnerReference]: ...


class Placed(HasOwners, Protocol):
    """And where the object is."""

    @property
    def namespace(self) -> str: ...


def group_of(api_version: str) -> str:
    """`apps` of `apps/v1`; empty for `v1`."""
    return api_version.rpartition("/")[0]


def identity_of(obj: Object) -> ObjectIdentity:
    meta = obj.metadata
    return ObjectIdentity(group_of(obj.api_version), obj.kind, meta.namespace, meta.name, meta.uid)


def named_by(reference: OwnerReference, namespace: str) -> ObjectIdentity:
    """What a reference of an object in this namespace names, unless that is cluster-scoped."""
    return ObjectIdentity(group_of(reference.api_version), reference.kind, namespace, reference.name, reference.uid)


def names(reference: OwnerReference, namespace: str, owner: ObjectIdentity) -> bool:
    """Whether a reference of an object in this namespace names that owner."""
    if reference.uid != owner.uid or owner.namespace not in ("", namespace):
        return False
    return named_by(reference, owner.namespace) == owner


def controller_of(meta: HasOwners) -> OwnerReference | None:
    """The reference to what manages the object. Whether there is such an object is another question."""
    for reference in meta.owner_references:
        if reference.controller:
            return reference
    return None


def controller_named(meta: Placed, namespace: str = "") -> ObjectIdentity | None:
    """What manages the object, as it says itself; `namespace` is that of an object which does not say its own yet."""
    reference = controller_of(meta)
    return None if reference is None else named_by(reference, meta.namespace or namespace)


def is_controlled_by(meta: Placed, owner: ObjectIdentity) -> bool:
    """Whether that object manages this one."""
    reference = controller_of(meta)
    return reference is not None and names(reference, meta.namespace, owner)


def reference_to(owner: Object) -> OwnerReference:
    """As the objects that `owner` manages bear it."""
    return OwnerReference(
        name=owner.metadata.name,
        api_version=owner.api_version,
        block_owner_deletion=True,
        controller=True,
        kind=owner.kind,
        uid=owner.metadata.uid,
    )
