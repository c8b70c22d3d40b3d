"""The two latest points of each container and node, and the usage between them.

The rules are metrics-server's (`pkg/storage`): a reading moves to `previous` when a newer one arrives, unless the
container began anew in between. A container younger than an interval, but at least ten seconds old, is measured from
its start. Nothing is told of a pod while one of its containers has a single reading.
"""

from collections.abc import Iterator, Mapping

import msgspec

FRESH_SECONDS = 10.0
"""The least age at which a new container is measured from its start."""

PodKey = tuple[str, str]
"""Namespace and name."""


class Point(msgspec.Struct, frozen=True):
    """Times in seconds since 1970 (`started` 0: not told), `cpu` in billionths of core-seconds so far, memory in
    bytes."""

    started: float
    time: float
    cpu: int
    memory: int


class Usage(msgspec.Struct, frozen=True):
    """CPU in billionths of a core, the mean over the `window` seconds before `time`; memory in bytes at `time`."""

    time: float
    window: float
    cpu: int
    memory: int


class Batch(msgspec.Struct, frozen=True):
    """What one round of questions gave."""

    nodes: Mapping[str, Point] = msgspec.field(default_factory=dict)
    pods: Mapping[PodKey, Mapping[str, Point]] = msgspec.field(default_factory=dict)


class PodUsage(msgspec.Struct, frozen=True):
    """The usage of each container; `time` and `window` are those of the one that was read first."""

    time: float
    window: float
    containers: Mapping[str, Usage]


class Points:
    """`interval` is the time from one batch to the next, in seconds."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._nodes: Mapping[str, Point] = {}
        self._nodes_before: dict[str, Point] = {}
        self._pods: Mapping[PodKey, Mapping[str, Point]] = {}
        self._pods_before: dict[PodKey, dict[str, Point]] = {}

    def store(self, batch: Batch) -> None:
        """Who is not in the batch is forgotten: its kubelet did not tell of it."""
        self._nodes_before = {
            name: earlier
            for name, point in batch.nodes.items()
            if (earlier := _earlier(point, self._nodes.get(name), self._nodes_before.get(name))) is not None
        }
        self._pods_before = {key: dict(self._before(key, points)) for key, points in batch.pods.items()}
        self._nodes, self._pods = batch.nodes, batch.pods

    def _before(self, key: PodKey, points: Mapping[str, Point]) -> Iterator[tuple[str, Point]]:
        last, previous = self._pods.get(key, {}), self._pods_before.get(key, {})
        for name, point in points.items():
            age = point.time - point.started if point.started else 0.0
            if FRESH_SECONDS <= age < self._interval:
                yield name, Point(point.started, point.started, 0, point.memory)
                continue
            known = last.get(name)
            if known is not None and point.started >= known.time:
                continue  # it began anew
            if (earlier := _earlier(point, known, previous.get(name))) is not None:
                yield name, earlier

    def is_new(self, node: str) -> bool:
        """Whether it was not read before."""
        return node not in self._nodes

    @property
    def has_nodes(self) -> bool:
        """Whether there is anything to tell, which is what being ready means."""
        return bool(self._nodes_before)

    def node(self, name: str) -> Usage | None:
        """None until it was read twice."""
        point, earlier = self._nodes.get(name), self._nodes_before.get(name)
        return _usage(point, earlier) if point is not None and earlier is not None else None

    def pod(self, key: PodKey) -> PodUsage | None:
        """None while a container of it has no rate to tell."""
        points, earlier = self._pods.get(key, {}), self._pods_before.get(key, {})
        if not points or points.keys() - earlier.keys():
            return None
        found = {name: used for name, point in points.items() if (used := _usage(point, earlier[name])) is not None}
        if not found:
            return None
        first = min(found.values(), key=lambda used: used.time)
        return PodUsage(first.time, first.window, found)


def _earlier(point: Point, last: Point | None, previous: Point | None) -> Point | None:
    """What `point` is compared with: the last reading, or that before it when nothing was measured since."""
    if last is None or point.time > last.time:
        return last
    return previous if previous is not None and previous.time < point.time else None


def _usage(point: Point, earlier: Point) -> Usage | None:
    """None when the counter began anew."""
    if point.started < earlier.started or point.cpu < earlier.cpu or point.time <= earlier.time:
        return None
    window = point.time - earlier.time
    return Usage(point.time, window, int((point.cpu - earlier.cpu) / window), point.memory)
