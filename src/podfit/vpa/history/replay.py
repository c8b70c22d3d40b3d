"""Replays a usage history into the recommender's model.

A sample that stands for an hour counts as sixty of a minute: upstream counts it once, so that eight days of history
are outweighed by three hours of living.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np

from podfit.decide.autoscaling.cluster_state import ClusterState, PodKey
from podfit.vpa.history.prometheus import Amount, History

LIVE_SECONDS = 60.0
"""Between two samples of a recommender that runs."""


AT_ONCE = 5000
"""Samples of a step, which takes some milliseconds."""


def replay(state: ClusterState, history: History, resolution: float, now: float) -> int:
    """Says how many samples were of pods whose labels are known. `resolution` in seconds."""
    return sum(steps(state, history, resolution, now))


def steps(state: ClusterState, history: History, resolution: float, now: float) -> Iterator[int]:
    """The replay by and by: each says how many samples it took."""
    containers: dict[PodKey, dict[str, None]] = {}
    for part in _parts(chain(history.cpu, history.memory)):
        for amount in part:
            containers.setdefault(amount.pod, {})[amount.container] = None
        yield 0
    gone = _add_gone(state, history, containers, now)
    weight = max(1, round(resolution / LIVE_SECONDS))

    def add_cpu(slots: Sequence[int], amounts: Sequence[Amount]) -> None:
        millicores = np.array([int(amount.amount * 1000) for amount in amounts], dtype=np.float64)
        times = np.array([amount.time for amount in amounts])
        state.model.add_cpu(np.array(slots, dtype=np.intp), millicores, times, samples=weight)

    def add_memory(slots: Sequence[int], amounts: Sequence[Amount]) -> None:
        found = np.array([int(amount.amount) for amount in amounts], dtype=np.float64)
        state.model.add_memory(np.array(slots, dtype=np.intp), found, np.array([amount.time for amount in amounts]))

    for part in _parts(history.cpu):
        yield _add(state, part, add_cpu)
    for part in _parts(history.memory):
        yield _add(state, part, add_memory)
    for key in gone:
        state.remove_pod(key)


def _parts(amounts: Iterable[Amount]) -> Iterator[list[Amount]]:
    left = iter(amounts)
    while part := list(islice(left, AT_ONCE)):
        yield part


def _add(state: ClusterState, amounts: Sequence[Amount], add: Callable[[Sequence[int], Sequence[Amount]], None]) -> int:
    known = [(slot, amount) for amount in amounts if (slot := state.slot(amount.pod, amount.container)) is not None]
    if known:
        slots, kept = zip(*known, strict=True)
        add(slots, kept)
    return len(known)


def _add_gone(
    state: ClusterState, history: History, containers: Mapping[PodKey, dict[str, None]], now: float
) -> list[PodKey]:
    """Pods that nobody has but the history."""
    labels: Mapping[PodKey, Mapping[str, str]] = history.labels
    gone = [key for key in containers if key in labels and not state.has(key)]
    for key in gone:
        state.set_pod(key, labels[key], containers[key], now)
    return gone
