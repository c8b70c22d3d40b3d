"""The controller reference rules: which objects a controller owns, adopts and releases.

An object has at most one controller. One that names this controller and is not found by its selector any more is let
go; one that has none and is found is adopted. A controller that is being deleted does neither.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.core.selectors import Matcher, Requirement

T = TypeVar("T", bound=Object)


class ClaimResult(msgspec.Struct, Generic[T], frozen=True):
    owned: tuple[T, ...] = ()
    adopt: tuple[T, ...] = ()
    release: tuple[T, ...] = ()


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def owned_by(meta: ObjectMeta, owner: ObjectMeta) -> bool:
    """Whether `owner` manages the object."""
    found = controller_of(meta)
    return found is not None and found.uid == owner.uid


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


def claims(owner: ObjectMeta, selector: Sequence[Requirement] | None, candidates: Iterable[T]) -> ClaimResult[T]:
    """`candidates` are of the owner's namespace; those of another controller are passed over."""
    owned: list[T] = []
    adopt: list[T] = []
    release: list[T] = []
    wanted = None if selector is None else Matcher(selector)
    for candidate in candidates:
        meta = candidate.metadata
        found, fits = controller_of(meta), wanted is not None and wanted.matches(meta.labels)
        if found is not None:
            if found.uid == owner.uid:
                (owned if fits else release).append(candidate)
        elif fits and not owner.deletion_timestamp and not meta.deletion_timestamp:
            adopt.append(candidate)
    return ClaimResult(tuple(owned), tuple(adopt), () if owner.deletion_timestamp else tuple(release))
