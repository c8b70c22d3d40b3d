"""A past that is read whole, of some pods, as `podfit recommend` does."""

from collections.abc import Collection, Iterator
from contextlib import aclosing

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podfit.decide.autoscaling.tracked import PodKey
from podfit.vpa.history.past_usage import Block, Past, Samples

MOST_GATHERED = 25_000_000
"""Samples, of 24 bytes: CPU and memory of a thousand containers, each minute of eight days."""


class Gathered(msgspec.Struct, frozen=True):
    """Blocks that were read whole, of some pods."""

    kept: tuple[Block, ...] = ()

    def each_block(self) -> Iterator[Block]:
        return iter(self.kept)


class TooMuchError(Exception):
    """More samples than are read whole."""


async def gathered(past: Past, pods: Collection[PodKey]) -> Gathered:
    """What a past has of these pods. Raises ConnectionError, TooMuchError."""
    kept, total = list[Block](), 0
    async with aclosing(past.blocks()) as blocks:
        async for block in blocks:
            wanted = np.array([key in pods for key, _ in block.containers], dtype=np.bool_)
            own = replace(block, cpu=_only(block.cpu, wanted), memory=_only(block.memory, wanted))
            total += sum(len(samples.series) for samples in (own.cpu, own.memory) if samples is not None)
            if total > MOST_GATHERED:
                raise TooMuchError(f"more than {MOST_GATHERED:,} samples")
            kept.append(own)
    return Gathered(tuple(kept))


def _only(samples: Samples | None, wanted: NDArray[np.bool_]) -> Samples | None:
    if samples is None:
        return None
    mask = wanted[samples.series]
    return Samples(samples.series[mask], samples.times[mask], samples.amounts[mask], samples.weight)
