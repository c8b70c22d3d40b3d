"""Replays past usage into the recommender's model."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.model import NOBODY
from podfit.decide.autoscaling.tracked import PodKey
from podfit.vpa.history.past_usage import Block, Container, Past, PastOom, Samples


class Blocks(Protocol):
    """Samples that were read whole."""

    def each_block(self) -> Iterator[Block]: ...


def replay(state: ClusterState, history: Blocks) -> int:
    """At once, of pods that live. Says how many samples were of containers that are known."""
    return sum(_take(state, block) for block in history.each_block())


async def fill(state: ClusterState, past: Past, now: float) -> int:
    """Fills it by and by, also with pods that are gone, whose labels are known; says how many samples were taken.
    Raises ConnectionError."""
    gone = _add_gone(state, past, now)
    taken = 0
    try:
        async with aclosing(past.blocks()) as blocks:
            async for block in blocks:
                taken += _take(state, block)
                await asyncio.sleep(0)
    finally:
        for key in gone:
            state.remove_pod(key)
    return taken


def _add_gone(state: ClusterState, past: Past, now: float) -> list[PodKey]:
    """Pods that nobody has but the history."""
    gone = list[PodKey]()
    for key, pod in past.pods.items():
        if pod.labels is not None and not state.has(key):
            state.set_pod(key, pod.labels, pod.containers, now)
            gone.append(key)
    return gone


def _take(state: ClusterState, block: Block) -> int:
    slots = np.array([_slot(state, container) for container in block.containers], dtype=np.intp)
    taken = 0
    if block.cpu is not None:
        known, samples = _known(slots, block.cpu)
        state.model.add_cpu(known, samples.amounts, samples.times, samples=samples.weight)
        taken += len(known)
        slots_of, sums = _as_a_whole(state, block, block.cpu)
        state.model.add_cpu(slots_of, sums.amounts, sums.times, samples=sums.weight)
    if block.memory is not None:
        known, samples = _known(slots, block.memory)
        state.model.add_memory(known, samples.amounts, samples.times)
        taken += len(known)
        slots_of, sums = _as_a_whole(state, block, block.memory)
        state.model.add_memory(slots_of, sums.amounts, sums.times)
    for oom in block.ooms:
        _ran_out(state, oom)
    return taken


def _as_a_whole(state: ClusterState, block: Block, samples: Samples) -> tuple[NDArray[np.intp], Samples]:
    """Sums of the containers of pods that are sized as a whole, where all were measured at the same time."""
    nothing = np.empty(0, dtype=np.intp)
    heads = np.array([_whole(state, container) for container in block.containers] if state.own else [], dtype=np.intp)
    own = heads[samples.series] if len(heads) else nothing
    mask = own != NOBODY
    if not mask.any():
        return nothing, Samples(nothing, np.empty(0), np.empty(0), samples.weight)
    needed = {head: state.containers_of(key) for key, head in _keys(state, block)}
    pairs = np.stack((own[mask].astype(np.float64), samples.times[mask]), axis=1)
    found, inverse, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse.reshape(-1), weights=samples.amounts[mask])
    slots = found[:, 0].astype(np.intp)
    complete = counts == np.array([needed[slot] for slot in slots.tolist()])
    order = np.argsort(found[complete, 1], kind="stable")
    slots = slots[complete][order]
    return slots, Samples(slots, found[complete, 1][order], sums[complete][order], samples.weight)


def _keys(state: ClusterState, block: Block) -> Iterator[tuple[PodKey, int]]:
    for key in dict.fromkeys(key for key, _ in block.containers):
        head = state.own.whole(key)
        if head is not None:
            yield key, head


def _whole(state: ClusterState, container: Container) -> int:
    head = state.own.whole(container[0])
    return NOBODY if head is None else head


def _slot(state: ClusterState, container: Container) -> int:
    slot = state.slot(*container)
    return NOBODY if slot is None else slot


def _known(slots: np.ndarray[tuple[int, ...], np.dtype[np.intp]], samples: Samples) -> tuple[np.ndarray, Samples]:
    """Those of containers that are known, with their slots."""
    own = slots[samples.series]
    mask = own != NOBODY
    return own[mask], Samples(samples.series[mask], samples.times[mask], samples.amounts[mask], samples.weight)


def _ran_out(state: ClusterState, oom: PastOom) -> None:
    slot = state.slot(*oom.container)
    if slot is not None:
        state.model.add_oom(slot, oom.memory, oom.time)
    whole = state.own.whole(oom.container[0])
    if whole is not None:
        state.model.add_oom(whole, 0, oom.time)
