"""Duplicate owner references: the same reference counts once, which a warning says."""

from msgspec.structs import replace

from podfit.api.meta.base import ObjectT
from podfit.api.meta.v1.types import OwnerReference

_ADVICE = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
    "please fix your requests; duplicate UID(s) observed: "
)
SENT = f".metadata.ownerReferences contains duplicate entries; {_ADVICE}"
ADMITTED = f".metadata.ownerReferences contains duplicate entries after mutating admission happens; {_ADVICE}"


def with_owners_once(obj: ObjectT, text: str) -> tuple[ObjectT, list[str]]:
    """The object with each reference once, and the warning `text` with the uids of those that were dropped."""
    owners: tuple[OwnerReference, ...] = obj.metadata.owner_references
    kept = dict.fromkeys(owners)
    if len(kept) == len(owners):
        return obj, []
    seen: set[OwnerReference] = set()
    dropped = []
    for owner in owners:
        if owner in seen:
            dropped.append(owner.uid)
        seen.add(owner)
    return replace(obj, metadata=replace(obj.metadata, owner_references=tuple(kept))), [text + ", ".join(dropped)]
