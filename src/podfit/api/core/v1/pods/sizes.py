"""Whether two specs differ by sizes alone, as those before and after a resize do.

It is told by identity: what a write leaves alone is the very same object in both, so it costs no comparison of values.
"""

from collections.abc import Iterator
from itertools import compress
from operator import is_not

from msgspec.structs import astuple

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.base import Struct

_OF_SPEC, _OF_CONTAINER = frozenset(("containers", "init_containers", "resources")), frozenset(("resources",))


def differ_by_size(new: PodSpec, old: PodSpec) -> bool:
    """Whether all but the resources of containers and of the pod are the very same parts."""
    return (
        _OF_SPEC.issuperset(_otherwise(new, old))
        and _sized(new.containers, old.containers)
        and _sized(new.init_containers, old.init_containers)
    )


def _sized(new: tuple[Container, ...], old: tuple[Container, ...]) -> bool:
    if new is old:
        return True
    pairs = [(mine, other) for mine, other in zip(new, old, strict=False) if mine is not other]
    return len(new) == len(old) and not [pair for pair in pairs if not _OF_CONTAINER.issuperset(_otherwise(*pair))]


def _otherwise(new: Struct, old: Struct) -> Iterator[str]:
    return compress(new.__struct_fields__, map(is_not, astuple(new), astuple(old)))
