"""The recommender's model: histograms by aggregate, and for each container its current memory window.

    container  one of a pod that is seen now       slot ─▶ aggregate
    aggregate  (namespace, container name, labels of the pod): all replicas of one workload share it

A container may be followed by others, which stand for it in aggregates of a VPA's own: its samples are theirs, too.

Everything is in arrays, and samples come in batches. A container may occur several times in one, in the order of its
samples, as in a history. CPU is whole millicores, memory whole bytes, times are seconds since 1970.

Memory counts by its peak: of each container one value for each interval (24 hours), dated at the interval's end. While
the interval lasts a larger value takes the place of the one before (V-022, V-023).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from podfit.decide.autoscaling.batches import Slots, newest_before, window_peaks
from podfit.decide.autoscaling.buckets import CPU_BUCKETS, FINE_CPU_BUCKETS, FINE_MEMORY_BUCKETS, MEMORY_BUCKETS
from podfit.decide.autoscaling.flags import DEFAULT_FLAGS, MemoryFlags, OomFlags, RecommenderFlags
from podfit.decide.autoscaling.histograms import Floats, HistogramBank, Rows

CPU_WEIGHT, MEMORY_WEIGHT = 0.1, 1.0
"""Of a sample, whatever the container requests (V-020)."""
LARGEST = 1e14
"""Of millicores and of bytes."""
NEVER = -np.inf
NOBODY = -1
Mask: TypeAlias = NDArray[np.bool_]


class Aggregates:
    """`first`, `last` and `count` are of CPU samples; the last four come from flags, or from a container's policy."""

    def __init__(self, flags: RecommenderFlags) -> None:
        self.flags = flags
        self.slots = Slots()
        self.cpu = HistogramBank(FINE_CPU_BUCKETS if flags.fine_buckets else CPU_BUCKETS, flags.cpu_half_life)
        self.memory = HistogramBank(
            FINE_MEMORY_BUCKETS if flags.fine_buckets else MEMORY_BUCKETS, flags.memory_half_life
        )
        self.first: Floats = np.empty(0)
        self.last: Floats = np.empty(0)
        self.created: Floats = np.empty(0)
        self.interval: Floats = np.empty(0)
        self.lifetime: Floats = np.empty(0)
        self.bump_ratio: Floats = np.empty(0)
        self.min_bump: Floats = np.empty(0)
        self.count = np.empty(0, dtype=np.int64)

    def new(self, number: int, now: float) -> Rows:
        """That many, empty, with the settings of the flags."""
        rows = self.slots.take(number)
        if self.slots.capacity > self.cpu.size:
            self.cpu.extend(self.slots.capacity)
            self.memory.extend(self.slots.capacity)
            for name in ("first", "last", "created", "interval", "lifetime", "bump_ratio", "min_bump", "count"):
                setattr(self, name, self.slots.grown(getattr(self, name)))
        self.first[rows], self.last[rows], self.created[rows], self.count[rows] = np.inf, NEVER, now, 0
        self.configure(rows)
        return rows

    def configure(self, rows: Rows, memory: MemoryFlags | None = None, oom: OomFlags | None = None) -> None:
        """Settings for these; those of the flags where none are given, so an override that is gone is forgotten."""
        memory, oom = memory or self.flags.memory, oom or self.flags.oom
        self.interval[rows], self.lifetime[rows] = memory.interval, memory.interval * memory.count
        self.bump_ratio[rows], self.min_bump[rows] = oom.bump_up_ratio, oom.min_bump_up_bytes

    def free(self, rows: Rows) -> None:
        self.cpu.clear(rows)
        self.memory.clear(rows)
        self.slots.give_back(rows)

    def expired(self, now: float) -> Mask:
        """Those that got no CPU sample, or since they were made have had none, for as long as an aggregate lives.

        Shape [capacity]; V-035.
        """
        since = np.where(self.count > 0, self.last, self.created)
        return self.slots.used & (now - since >= self.lifetime)


class Containers:
    """`window_end` is minus infinity before the first memory sample; peaks are those of the window. `follower` is who
    gets the same samples, NOBODY for none.
    """

    def __init__(self) -> None:
        self.slots = Slots()
        self.follower = np.empty(0, dtype=np.intp)
        self.aggregate = np.empty(0, dtype=np.intp)
        self.last_cpu: Floats = np.empty(0)
        self.last_memory: Floats = np.empty(0)
        self.window_end: Floats = np.empty(0)
        self.usage_peak: Floats = np.empty(0)
        self.oom_peak: Floats = np.empty(0)

    def new(self, aggregates: Rows) -> Rows:
        """One for each of `aggregates`, without samples."""
        slots = self.slots.take(len(aggregates))
        if self.slots.capacity > len(self.aggregate):
            for name in ("aggregate", "follower", "last_cpu", "last_memory", "window_end", "usage_peak", "oom_peak"):
                setattr(self, name, self.slots.grown(getattr(self, name)))
        self.aggregate[slots], self.follower[slots] = aggregates, NOBODY
        self.last_cpu[slots] = self.last_memory[slots] = self.window_end[slots] = NEVER
        self.usage_peak[slots] = self.oom_peak[slots] = 0
        return slots

    def free(self, slots: Rows) -> None:
        self.slots.give_back(slots)


class Model:
    def __init__(self, flags: RecommenderFlags = DEFAULT_FLAGS) -> None:
        self.aggregates = Aggregates(flags)
        self.containers = Containers()

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        tables = (self.aggregates, self.containers)
        arrays = [var for table in tables for var in vars(table).values() if isinstance(var, np.ndarray)]
        own: int = sum(array.nbytes for array in arrays)
        return own + self.aggregates.cpu.nbytes + self.aggregates.memory.nbytes

    def add_cpu(self, slots: Rows, millicores: Floats, times: Floats, *, samples: int = 1) -> Mask:
        """Which samples were taken: those of at least 0 that are newer than the container's last (V-021).

        Each of them counts as `samples` of the model.
        """
        table, total = self.containers, self.aggregates
        if (followed := table.follower[slots] != NOBODY).any():
            self.add_cpu(table.follower[slots[followed]], millicores[followed], times[followed], samples=samples)
        taken: Mask = millicores >= 0
        taken[taken] = times[taken] > newest_before(slots[taken], times[taken], table.last_cpu)
        slots, times = slots[taken], times[taken]
        np.maximum.at(table.last_cpu, slots, times)
        rows = table.aggregate[slots]
        total.cpu.add(rows, np.minimum(millicores[taken], LARGEST) / 1000, CPU_WEIGHT * samples, times)
        np.minimum.at(total.first, rows, times)
        np.maximum.at(total.last, rows, times)
        np.add.at(total.count, rows, samples)
        return taken

    def add_memory(self, slots: Rows, amounts: Floats, times: Floats) -> Mask:
        """Which samples were taken: those of at least 0 that are not older than the container's last (V-021)."""
        table = self.containers
        if (followed := table.follower[slots] != NOBODY).any():
            self.add_memory(table.follower[slots[followed]], amounts[followed], times[followed])
        taken: Mask = amounts >= 0
        taken[taken] = times[taken] >= newest_before(slots[taken], times[taken], table.last_memory)
        slots, amounts, times = slots[taken], np.minimum(amounts[taken], LARGEST), times[taken]
        interval = self.aggregates.interval[table.aggregate[slots]]
        for batch in window_peaks(slots, amounts, times, table.window_end[slots], interval):
            self._peaks(*batch, oom=False)
        np.maximum.at(table.last_memory, slots, times)
        return taken

    def add_oom(self, slot: int, requested: int, time: float) -> bool:
        """That a container ran out of memory with this request; False when that is too long ago (V-024, V-025).

        The peak of earlier such events is left out of `used`, so several at one request do not add up.
        """
        table, row = self.containers, self.containers.aggregate[slot]
        if table.follower[slot] != NOBODY:
            self.add_oom(int(table.follower[slot]), requested, time)
        if time < table.last_memory[slot] - self.aggregates.interval[row]:
            return False
        needed = self.needed_after_oom(slot, requested)
        self._peaks(np.array([slot]), np.array([needed]), np.array([time]), oom=True)
        table.last_memory[slot] = max(table.last_memory[slot], time)
        return True

    def needed_after_oom(self, slot: int, requested: int) -> float:
        """Bytes that a container is taken to need that ran out of its memory."""
        row = self.containers.aggregate[slot]
        used = max(float(requested), float(self.containers.usage_peak[slot]))
        needed = max(used + self.aggregates.min_bump[row], np.trunc(used * self.aggregates.bump_ratio[row]))
        return min(float(needed), LARGEST)

    def _peaks(self, slots: Rows, amounts: Floats, times: Floats, *, oom: bool) -> None:
        """Count the values that are their window's largest; windows that are over are followed by those of `times`.

        Each container once.
        """
        table = self.containers
        ends, before = table.window_end[slots], np.maximum(table.usage_peak[slots], table.oom_peak[slots])
        counted = (times >= ends) | (amounts > before)
        slots, (amounts, times, ends, before) = slots[counted], np.stack((amounts, times, ends, before))[:, counted]
        rows = table.aggregate[slots]
        interval = self.aggregates.interval[rows]
        ends = np.where(np.isinf(ends), times, ends)
        opens = times >= ends
        larger = ~opens
        self.aggregates.memory.subtract(rows[larger], before[larger], MEMORY_WEIGHT, ends[larger])
        ends = np.where(opens, ends + np.floor((times - ends) / interval) * interval + interval, ends)
        table.window_end[slots] = ends
        table.usage_peak[slots[opens]] = table.oom_peak[slots[opens]] = 0
        peaks = table.oom_peak if oom else table.usage_peak
        peaks[slots] = amounts
        self.aggregates.memory.add(rows, amounts, MEMORY_WEIGHT, ends)
