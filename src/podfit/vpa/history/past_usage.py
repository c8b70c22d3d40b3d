"""The interface of what keeps usage: a recommender starts from any `Past`.

    pods      whose usage it has: containers, and labels, by which a pod that is gone belongs to a VPA
    blocks    their samples, by and by, each container's in the order of time

`prometheus.py` makes one of a server that speaks PromQL, `own/` one of podfit's own segments. For another database
write a function from seconds since 1970 to a `Past` of the days before (`ReadPast`); it raises ConnectionError where
there is no answer, and the recommender begins with an empty model then. Hand it to `Recommender(history=...)`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from podfit.decide.autoscaling.histograms import Floats
from podfit.decide.autoscaling.tracked import PodKey

Container: TypeAlias = tuple[PodKey, str]
MOST_OF_BLOCK = 50_000
"""Samples: they are counted in one turn of the event loop."""


class Samples(msgspec.Struct, frozen=True):
    """Arrays of one length. `series` are places in the block's `containers`; times are seconds since 1970, amounts
    millicores of CPU or bytes of memory. Each counts as `weight` samples of a minute.
    """

    series: NDArray[np.intp]
    times: Floats
    amounts: Floats
    weight: int = 1


class PastOom(msgspec.Struct, frozen=True):
    """A container ran out of memory: bytes that it had asked for, seconds since 1970."""

    container: Container
    memory: int
    time: float


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """At most `MOST_OF_BLOCK` samples of each; `ooms` happened while they were taken."""

    containers: Sequence[Container]
    cpu: Samples | None = None
    memory: Samples | None = None
    ooms: tuple[PastOom, ...] = ()


class PastPod(msgspec.Struct, frozen=True):
    """`labels` as they were last; None where they are not known, which leaves the pod out unless it lives."""

    containers: tuple[str, ...]
    labels: Mapping[str, str] | None


class Past(Protocol):
    @property
    def pods(self) -> Mapping[PodKey, PastPod]: ...

    def blocks(self) -> AsyncGenerator[Block, None]:
        """Once. Raises ConnectionError; what was counted until then stays."""


ReadPast = Callable[[float], Awaitable[Past]]
