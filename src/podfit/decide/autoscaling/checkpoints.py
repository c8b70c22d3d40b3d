"""Converts histograms to and from VerticalPodAutoscalerCheckpoint objects (V-014, V-037)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isinf

import msgspec
import numpy as np
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import (
    HistogramCheckpoint,
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
)
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.times import format_time, parse_time
from podfit.decide.autoscaling.buckets import (
    CPU_BUCKETS,
    FINE_CPU_BUCKETS,
    FINE_MEMORY_BUCKETS,
    MEMORY_BUCKETS,
    Buckets,
    rebucketed,
)
from podfit.decide.autoscaling.estimate import Merged
from podfit.decide.autoscaling.histograms import HistogramBank, check_indices
from podfit.decide.autoscaling.model import Aggregates

VERSION = "v3"
"""Of upstream's form."""
FINE_VERSION = "podfit.dev/v1"
"""Of the same form with finer buckets, which upstream refuses."""
FORMS = {VERSION: (CPU_BUCKETS, MEMORY_BUCKETS), FINE_VERSION: (FINE_CPU_BUCKETS, FINE_MEMORY_BUCKETS)}
"""Other versions are refused."""
OF_SLICES = {VERSION: "podfit.dev/slice-v3", FINE_VERSION: "podfit.dev/slice-v1"}
"""Of the same forms for a slice of a VPA, or its pods as a whole, which upstream would take for a container's."""
COUNTS_SECONDS, NEAR_SECONDS = 7 * 86_400.0, 3600.0
"""What is older hardly counts; and by how much later a history may begin than the checkpoints beside it."""
SLICE, SLICED_BY = "podfit.dev/slice", "podfit.dev/aggregation"
"""Annotations of these."""
LARGEST_WEIGHT = 2**32 - 1
LARGEST_TOTAL = 1e60
"""A sample counts at most 2^101, so no number of them comes near."""
AHEAD = 3600.0
"""Seconds by which the clock of whoever wrote a checkpoint may be ahead."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SavedHistogram(msgspec.Struct, frozen=True):
    """`weights`: bucket to its share; `reference` in seconds since 1970, minus infinity when there is none."""

    weights: Mapping[int, int]
    total: float
    reference: float


def time_text(seconds: float) -> str | None:
    """Whole seconds; what lies before the year 1 is no time."""
    return None if isinf(seconds) else _text(int(seconds))


@lru_cache(maxsize=1024)  # most containers of a pass have the same times
def _text(seconds: int) -> str:
    return format_time(_EPOCH + timedelta(seconds=seconds))


def time_seconds(text: str | None) -> float:
    """ValueError when it is no time."""
    return -np.inf if text is None else (parse_time(text) - _EPOCH).total_seconds()


def saved(bank: HistogramBank) -> Iterator[HistogramCheckpoint]:
    """One for each row."""
    shares = bank.shares()
    for row in range(bank.size):
        (filled,) = shares[row].nonzero()
        yield HistogramCheckpoint(
            reference_timestamp=time_text(bank.reference[row]),
            bucket_weights=dict(zip(map(str, filled.tolist()), shares[row, filled].tolist(), strict=True)),
            total_weight=float(bank.total[row]),
        )


def read(checkpoint: HistogramCheckpoint) -> SavedHistogram:
    """ValueError for what is no bucket, weight or time."""
    weights: dict[int, int] = {}
    for index, weight in checkpoint.bucket_weights.items():
        if not isinstance(weight, int) or isinstance(weight, bool) or not 0 <= weight <= LARGEST_WEIGHT:
            raise ValueError(f"bucketWeights[{index}] must be a whole number from 0 to {LARGEST_WEIGHT}")
        weights[int(index)] = weight
    if not 0 <= checkpoint.total_weight <= LARGEST_TOTAL:
        raise ValueError(f"totalWeight must be a number from 0 to {LARGEST_TOTAL:g}, not {checkpoint.total_weight}")
    return SavedHistogram(weights, checkpoint.total_weight, time_seconds(checkpoint.reference_timestamp))


def load(bank: HistogramBank, row: int, checkpoint: HistogramCheckpoint, buckets: Buckets | None = None) -> None:
    """Into a row, normally an empty one; `buckets` are the checkpoint's, where they are others than the bank's.

    ValueError says what is wrong, and the row is as before.
    """
    found = read(checkpoint)
    weights = found.weights
    if buckets is not None and buckets != bank.buckets:
        check_indices(weights, buckets.count)
        weights = rebucketed(weights, buckets, bank.buckets)
    bank.load(row, weights, found.total, found.reference)


def checkpoints(known: Merged, now: float) -> Iterator[VerticalPodAutoscalerCheckpointStatus]:
    """One for each container of which something is known."""
    for place, (cpu, memory) in enumerate(zip(saved(known.cpu), saved(known.memory), strict=True)):
        yield VerticalPodAutoscalerCheckpointStatus(
            last_update_time=time_text(now),
            version=FINE_VERSION if known.cpu.buckets == FINE_CPU_BUCKETS else VERSION,
            cpu_histogram=cpu,
            memory_histogram=memory,
            first_sample_start=time_text(known.first[place]),
            last_sample_start=time_text(known.last[place]),
            total_samples_count=int(known.count[place]),
        )


def named(
    namespace: str, vpa: str, container: str, status: VerticalPodAutoscalerCheckpointStatus
) -> VerticalPodAutoscalerCheckpoint:
    return VerticalPodAutoscalerCheckpoint(
        metadata=ObjectMeta(name=f"{vpa}-{container}", namespace=namespace),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=vpa, container_name=container),
        status=status,
    )


def named_slice(
    vpa: tuple[str, str], by: tuple[str, str], container: str, status: VerticalPodAutoscalerCheckpointStatus
) -> VerticalPodAutoscalerCheckpoint:
    """`vpa` is its namespace and name, `by` the aggregation and the slice; a container without a name is the pod."""
    (namespace, name), (aggregation, slice_name) = vpa, by
    ending = hashlib.sha256(f"{aggregation} {slice_name}".encode()).hexdigest()[:12]
    return VerticalPodAutoscalerCheckpoint(
        metadata=ObjectMeta(
            name=f"{name}-{container or 'pod'}-{ending}",
            namespace=namespace,
            annotations={SLICED_BY: aggregation, SLICE: slice_name},
        ),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=name, container_name=container),
        status=replace(status, version=OF_SLICES[status.version]),
    )


def reaches_further(began: float, kept: Iterable[VerticalPodAutoscalerCheckpoint], now: float) -> bool:
    """Whether a history that was begun then lacks nothing that counts of what these checkpoints have."""
    firsts = (checkpoint.status.first_sample_start for checkpoint in kept)
    first = min((parse_time(text).timestamp() for text in firsts if text), default=now)
    return began <= max(first, now - COUNTS_SECONDS) + NEAR_SECONDS


def is_of_slice(checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
    return checkpoint.status.version in OF_SLICES.values()


def slice_named(checkpoint: VerticalPodAutoscalerCheckpoint) -> tuple[str, str]:
    """The aggregation, and the slice."""
    annotations = checkpoint.metadata.annotations
    return annotations.get(SLICED_BY, ""), annotations.get(SLICE, "")


def restore_slice(aggregates: Aggregates, row: int, status: VerticalPodAutoscalerCheckpointStatus, now: float) -> None:
    """Does for a slice what `restore` does."""
    form = next(form for form, version in OF_SLICES.items() if version == status.version)
    restore(aggregates, row, replace(status, version=form), now)


def restore(aggregates: Aggregates, row: int, status: VerticalPodAutoscalerCheckpointStatus, now: float) -> None:
    """Into an empty aggregate. ValueError says why it cannot be used; the row may then hold a part of it."""
    if status.version not in FORMS:
        raise ValueError(f"unsupported checkpoint version {status.version!r}: only {VERSION} can be loaded")
    cpu, memory = FORMS[status.version]
    _check_times(aggregates, row, status, now)
    if status.total_samples_count < 0:
        raise ValueError(f"totalSamplesCount must be at least 0, not {status.total_samples_count}")
    load(aggregates.cpu, row, status.cpu_histogram, cpu)
    load(aggregates.memory, row, status.memory_histogram, memory)
    aggregates.count[row] = status.total_samples_count
    if status.total_samples_count:
        aggregates.first[row] = time_seconds(status.first_sample_start)
        aggregates.last[row] = time_seconds(status.last_sample_start)


def _check_times(aggregates: Aggregates, row: int, status: VerticalPodAutoscalerCheckpointStatus, now: float) -> None:
    """ValueError for times to come: beside them all that is known would weigh nothing, and nothing would ever expire.

    A reference is rounded, so it may be half of a half-life ahead, and a peak of memory counts at its window's end.
    """
    times = {
        "firstSampleStart": (status.first_sample_start, 0.0),
        "lastSampleStart": (status.last_sample_start, 0.0),
        "cpuHistogram.referenceTimestamp": (status.cpu_histogram.reference_timestamp, aggregates.cpu.half_life),
        "memoryHistogram.referenceTimestamp": (
            status.memory_histogram.reference_timestamp,
            aggregates.memory.half_life + float(aggregates.interval[row]),
        ),
    }
    for name, (text, more) in times.items():
        if text is not None and time_seconds(text) > now + AHEAD + more:
            raise ValueError(f"{name} {text} is yet to come")
