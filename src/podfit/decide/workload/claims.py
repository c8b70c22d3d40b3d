"""The controller reference rules: which objects a controller owns, adopts and releases.

An object has at most one controller. One that names this controller and is not found by its selector any more is let
go; one that has none and is found is adopted. A controller that is being deleted does neither.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

from podfit.api.meta.base import Object
from podfit.api.meta.owners import controller_of, identity_of, is_controlled_by
from podfit.core.selectors import Matcher, Requirement

T = TypeVar("T", bound=Object)


class ClaimResult(msgspec.Struct, Generic[T], frozen=True):
    owned: tuple[T, ...] = ()
    adopt: tuple[T, ...] = ()
    release: tuple[T, ...] = ()


def claims(owner: Object, selector: Sequence[Requirement] | None, candidates: Iterable[T]) -> ClaimResult[T]:
    """`candidates` of another controller, or of another namespace than the owner's, are passed over."""
    owned: list[T] = []
    adopt: list[T] = []
    release: list[T] = []
    identity, going = identity_of(owner), bool(owner.metadata.deletion_timestamp)
    wanted = None if selector is None else Matcher(selector)
    for candidate in candidates:
        meta = candidate.metadata
        if meta.namespace != identity.namespace:
            continue
        fits = wanted is not None and wanted.matches(meta.labels)
        if is_controlled_by(meta, identity):
            (owned if fits else release).append(candidate)
        elif fits and not going and not meta.deletion_timestamp and controller_of(meta) is None:
            adopt.append(candidate)
    return ClaimResult(tuple(owned), tuple(adopt), () if going else tuple(release))
