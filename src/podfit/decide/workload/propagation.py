"""Deletion propagation: the finalizers of foreground and orphan deletion.

    Background   the object goes, its dependents are deleted after it    no finalizer of this kind
    Foreground   its dependents go first                                 foregroundDeletion
    Orphan       its dependents stay, and forget it                      orphan

What the request says comes before what the object already carries, and that before the kind's own way.
"""

from collections.abc import Sequence

from podfit.api.meta.v1.types import DeleteOptions

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
FOREGROUND_FINALIZER, ORPHAN_FINALIZER = "foregroundDeletion", "orphan"


def wanted_finalizers(options: DeleteOptions, present: Sequence[str], *, default: str = BACKGROUND) -> tuple[str, ...]:
    """The finalizers of an object that is being deleted; `default` is its kind's policy."""
    kept = [finalizer for finalizer in present if finalizer not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)]
    policy = _policy(options, present, default)
    if policy == ORPHAN:
        kept.append(ORPHAN_FINALIZER)
    if policy == FOREGROUND:
        kept.append(FOREGROUND_FINALIZER)
    return tuple(kept)


def _policy(options: DeleteOptions, present: Sequence[str], default: str) -> str:
    if options.orphan_dependents is not None:
        return ORPHAN if options.orphan_dependents else BACKGROUND
    if options.propagation_policy:
        return options.propagation_policy
    if ORPHAN_FINALIZER in present:
        return ORPHAN
    return FOREGROUND if FOREGROUND_FINALIZER in present else default
