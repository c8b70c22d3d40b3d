"""Initial usage: what containers of one image and name used before, in one workload of one namespace.

    sample ─▶ Place (namespace, workload, container, image) ─▶ its Learnt: how many samples fell into each bucket

Nothing of a place is told before it has 20 samples of 3 pods. All samples count alike, so some fat ones move the 90th
percentile no further than to where as many honest ones would be left out: 20 among 180 to the largest honest one.
Old samples fade as new ones come, not with time, since a CronJob may run once a week.

All of it is bounded: a place has at most 4,095 samples, a namespace 256 places, all together 4,096. The place that was
seen longest ago makes room, of the namespace itself or of the one with most places, so that nobody's pods cost another
namespace what is known of it before that one has its share.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.buckets import FINE_CPU_BUCKETS, FINE_MEMORY_BUCKETS

SHARE = 0.9
"""Of the samples that the amount is not exceeded by."""
LEAST_SAMPLES, LEAST_PODS = 20, 3
MOST_SAMPLES = 4096
"""At which all counts of a place are halved."""
MOST_PLACES, MOST_IN_NAMESPACE = 4096, 256
LONGEST_IMAGE = 1024
"""Characters; an image of a longer name is not remembered."""
DAY_OF_MINUTES = 1440
_MIB = 1 << 20
_CPU_ENDS, _MEMORY_ENDS = FINE_CPU_BUCKETS.ends, FINE_MEMORY_BUCKETS.ends


class Place(NamedTuple):
    """`group`, `kind` and `workload` name the topmost controller; one that is made anew is the same workload."""

    namespace: str
    group: str
    kind: str
    workload: str
    container: str
    image: str


class Sample(NamedTuple):
    """CPU in millicores, memory in bytes, None where it is not told; `time` in seconds since 1970."""

    time: float
    cpu: int | None
    memory: int | None


class KnownUsage(msgspec.Struct, frozen=True):
    """What is told of a place; `confidence` is 1 after as many samples as a day has minutes."""

    amounts: ResourceList
    samples: int
    pods: int

    @property
    def confidence(self) -> float:
        return min(1.0, self.samples / DAY_OF_MINUTES)


class _Counted:
    """Samples of one resource by bucket."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total = 0

    def add(self, index: int) -> None:
        self.counts[index] = self.counts.get(index, 0) + 1
        self.total += 1
        if self.total >= MOST_SAMPLES:
            self.counts = {index: count // 2 for index, count in self.counts.items() if count > 1}
            self.total = sum(self.counts.values())

    def take(self, counts: dict[int, int]) -> None:
        self.counts, self.total = dict(counts), sum(counts.values())

    def percentile(self, ends: tuple[float, ...]) -> float:
        """What stands for the bucket in which the 90th percentile is: its upper border, of `ends`."""
        below, wanted = 0, SHARE * self.total
        for index in sorted(self.counts):
            below += self.counts[index]
            if below >= wanted:
                return ends[index]
        return 0.0


class _Learnt:
    __slots__ = ("cpu", "memory", "pods", "seen")

    def __init__(self) -> None:
        self.cpu, self.memory = _Counted(), _Counted()
        self.pods, self.seen = 0, -math.inf

    def known(self) -> KnownUsage | None:
        if self.pods < LEAST_PODS:
            return None
        amounts, samples = dict[str, Quantity](), list[int]()
        if self.cpu.total >= LEAST_SAMPLES:
            amounts[CPU] = Quantity.of_milli(math.ceil(self.cpu.percentile(_CPU_ENDS) * 1000 - 1e-9))
            samples.append(self.cpu.total)
        if self.memory.total >= LEAST_SAMPLES:
            mebibytes = math.ceil(self.memory.percentile(_MEMORY_ENDS) / _MIB)
            amounts[MEMORY] = Quantity.of_bytes(mebibytes * _MIB)
            samples.append(self.memory.total)
        return KnownUsage(amounts, min(samples), self.pods) if samples else None


class _Living(NamedTuple):
    """A container of a pod that lives: where it was last counted, and when."""

    place: Place
    time: float


class SavedPlace(msgspec.Struct, frozen=True, array_like=True):
    """The samples of a place by bucket, how many pods gave them, and when the last one was taken."""

    place: Place
    cpu: dict[int, int]
    memory: dict[int, int]
    pods: int
    seen: float


class SavedUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What is known, to be read again. `living` has UID, container, the number of its place and the last sample's time
    of each container of a pod that lives, so that a pod counts once whoever restarts.
    """

    version: int = 1
    places: list[SavedPlace] = []
    living: list[tuple[str, str, int, float]] = []


class InitialUsage:
    def __init__(self) -> None:
        self._namespaces: dict[str, dict[Place, _Learnt]] = {}
        self._places = 0
        self._living: dict[str, dict[str, _Living]] = {}
        """By UID and container."""

    def __len__(self) -> int:
        return self._places

    def add(self, place: Place, uid: str, sample: Sample) -> bool:
        """Whether it was counted: one of a container that is not newer than its last is not."""
        containers = self._living.setdefault(uid, {})
        before = containers.get(place.container)
        if len(place.image) > LONGEST_IMAGE or (before is not None and sample.time <= before.time):
            return False
        containers[place.container] = _Living(place, sample.time)
        learnt = self._learnt(place)
        if before is None or before.place != place:
            learnt.pods += 1
        learnt.seen = max(learnt.seen, sample.time)
        if sample.cpu is not None and sample.cpu >= 0:
            learnt.cpu.add(FINE_CPU_BUCKETS.index(sample.cpu / 1000))
        if sample.memory is not None and sample.memory >= 0:
            learnt.memory.add(FINE_MEMORY_BUCKETS.index(float(sample.memory)))
        return True

    def saved(self) -> SavedUsage:
        places = [(place, learnt) for known in self._namespaces.values() for place, learnt in known.items()]
        numbers = {place: number for number, (place, _) in enumerate(places)}
        return SavedUsage(
            places=[
                SavedPlace(place, dict(learnt.cpu.counts), dict(learnt.memory.counts), learnt.pods, learnt.seen)
                for place, learnt in places
            ],
            living=[
                (uid, container, numbers[living.place], living.time)
                for uid, containers in self._living.items()
                for container, living in containers.items()
                if living.place in numbers
            ],
        )

    def restore(self, saved: SavedUsage) -> None:
        """Into an empty one. Raises ValueError for what `saved` never gives, and then it is as it was."""
        counts = [(place.cpu, _CPU_ENDS) for place in saved.places] + [
            (place.memory, _MEMORY_ENDS) for place in saved.places
        ]
        if saved.version != 1 or len(saved.places) > MOST_PLACES:
            raise ValueError(f"version {saved.version} with {len(saved.places)} places")
        for buckets, ends in counts:
            if any(not 0 <= index < len(ends) or number < 1 for index, number in buckets.items()):
                raise ValueError("samples of a bucket that there is not")
            if sum(buckets.values()) >= MOST_SAMPLES:
                raise ValueError(f"{sum(buckets.values())} samples of a place")
        if any(not 0 <= number < len(saved.places) for _, _, number, _ in saved.living):
            raise ValueError("a container of a place that there is not")
        for known in saved.places:
            learnt = self._learnt(known.place)
            learnt.cpu.take(known.cpu)
            learnt.memory.take(known.memory)
            learnt.pods, learnt.seen = known.pods, known.seen
        for uid, container, number, time in saved.living:
            self._living.setdefault(uid, {})[container] = _Living(saved.places[number].place, time)

    def keep(self, uids: Collection[str]) -> None:
        """These pods live, the others are gone; what they used stays."""
        for uid in [uid for uid in self._living if uid not in uids]:
            del self._living[uid]

    def keep_namespaces(self, namespaces: Collection[str]) -> None:
        """Forget what was learnt elsewhere."""
        for namespace in [namespace for namespace in self._namespaces if namespace not in namespaces]:
            self._places -= len(self._namespaces.pop(namespace))

    def known(self, place: Place) -> KnownUsage | None:
        """None before there are enough samples."""
        learnt = self._namespaces.get(place.namespace, {}).get(place)
        return learnt.known() if learnt is not None else None

    def _learnt(self, place: Place) -> _Learnt:
        places = self._namespaces.setdefault(place.namespace, {})
        learnt = places.get(place)
        if learnt is None:
            if len(places) >= MOST_IN_NAMESPACE:
                self._forget_oldest(places)
            elif self._places >= MOST_PLACES:
                self._forget_oldest(max(self._namespaces.values(), key=len))
            learnt = places[place] = _Learnt()
            self._places += 1
        return learnt

    def _forget_oldest(self, places: dict[Place, _Learnt]) -> None:
        del places[min(places, key=lambda place: places[place].seen)]
        self._places -= 1
