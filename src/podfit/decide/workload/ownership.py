"""Garbage collection of one object, by its owners and dependents.

    owner     solid    it is there                       dangling   it is not, or not any more
              waiting  it is being deleted in the foreground: it waits for its dependents
              unknown  its kind cannot be looked up: nothing is decided on it

An object goes when no owner of it is solid or unknown, and at least one was named. While one is solid the others are
only forgotten.
"""

from collections.abc import Container, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

import msgspec

from podfit.api.meta.owners import ObjectIdentity, named_by, names
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.decide.workload.propagation import BACKGROUND, FOREGROUND, FOREGROUND_FINALIZER, ORPHAN, ORPHAN_FINALIZER


class OwnerState(Enum):
    SOLID = "solid"
    DANGLING = "dangling"
    WAITING = "waiting"
    UNKNOWN = "unknown"


class Keep(msgspec.Struct, frozen=True):
    """Nothing is to be done."""


class Forget(msgspec.Struct, frozen=True):
    """Take these owners off the object: it has others."""

    owners: frozenset[ObjectIdentity]


class Delete(msgspec.Struct, frozen=True):
    """Delete the object. `unblock`: first stop blocking the owners, because this object waits for dependents itself."""

    policy: str
    unblock: bool = False


Verdict: TypeAlias = Keep | Forget | Delete


def is_waiting(meta: ObjectMeta) -> bool:
    """Whether the object is being deleted in the foreground."""
    return bool(meta.deletion_timestamp) and FOREGROUND_FINALIZER in meta.finalizers


def is_orphaning(meta: ObjectMeta) -> bool:
    return bool(meta.deletion_timestamp) and ORPHAN_FINALIZER in meta.finalizers


def judge(meta: ObjectMeta, owners: Mapping[ObjectIdentity, OwnerState], dependents: Sequence[ObjectMeta]) -> Verdict:
    """`owners` are all that the object names; `dependents` are what names the object."""
    if meta.deletion_timestamp or not meta.owner_references:
        return Keep()
    found = set(owners.values())
    if OwnerState.UNKNOWN in found:
        return Keep()
    gone = frozenset(identity for identity, owner in owners.items() if owner is not OwnerState.SOLID)
    if OwnerState.SOLID in found:
        return Forget(gone) if gone else Keep()
    if OwnerState.WAITING in found and dependents:
        # A dependent that waits as well closes a circle, which nobody could leave: this object lets its owners go.
        return Delete(FOREGROUND, unblock=any(is_waiting(dependent) for dependent in dependents))
    if ORPHAN_FINALIZER in meta.finalizers:
        return Delete(ORPHAN)
    return Delete(FOREGROUND if FOREGROUND_FINALIZER in meta.finalizers else BACKGROUND)


def owners_of(meta: ObjectMeta) -> list[ObjectIdentity]:
    """All that the object names as its owners, as far as they are of its namespace."""
    return [named_by(reference, meta.namespace) for reference in meta.owner_references]


def blocks(meta: ObjectMeta, owner: ObjectIdentity) -> bool:
    """Whether this object keeps that owner from going."""
    return any(
        reference.block_owner_deletion and names(reference, meta.namespace, owner)
        for reference in meta.owner_references
    )


def without(meta: ObjectMeta, owners: Container[ObjectIdentity]) -> tuple[OwnerReference, ...]:
    """The references of the object to other owners than these, which it names as `owners_of` has them."""
    return tuple(reference for reference in meta.owner_references if named_by(reference, meta.namespace) not in owners)
