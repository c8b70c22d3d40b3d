"""The annotation in which a pod carries its burst ceiling (docs/burst.md).

Only `pods/resize` sets, changes or removes it, and judges it there. Every other write keeps what is stored, as it does
with the status, and a new pod begins without it.
"""

from msgspec.structs import replace

from podfit.api.meta.v1.types import ObjectMeta

CEILING = "podfit.dev/burst-ceiling"


def with_ceiling_of(stored: ObjectMeta | None, meta: ObjectMeta) -> ObjectMeta:
    """`meta` with the ceiling that `stored` has, and no other; the same object where it has that."""
    text = stored.annotations.get(CEILING) if stored is not None else None
    if meta.annotations.get(CEILING) == text:
        return meta
    annotations = {name: value for name, value in meta.annotations.items() if name != CEILING}
    return replace(meta, annotations=annotations if text is None else {**annotations, CEILING: text})
