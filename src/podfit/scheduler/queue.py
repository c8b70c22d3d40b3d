"""Pods without a node: those to try now, and those that wait for the cluster to change.

A pod that fitted nowhere is not polled. It waits with its verdict until a change that could turn it arrives; tries that
follow each other quickly are spaced by a growing pause, and a sweep every few minutes catches what no event told.
"""

import asyncio
import heapq
import itertools
from dataclasses import dataclass

from podfit.api.core.pods import Pod
from podfit.core.clock import Clock, Timer
from podfit.decide.place import Unschedulable
from podfit.decide.requeue import Change, worth_retrying

FIRST_PAUSE = 1.0  # seconds between the first two tries, doubling
LONGEST_PAUSE = 10.0
SWEEP = 300.0  # seconds after which a waiting pod is tried whatever happened

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    verdict: Unschedulable
    since: float


class SchedulingQueue:
    """One consumer calls `pop`; everything else is synchronous, for informer handlers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[Key, Pod] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._active: set[Key] = set()
        self._waiting: dict[Key, _Waiting] = {}
        self._tries: dict[Key, int] = {}
        self._paused: dict[Key, Timer] = {}
        self._order = itertools.count()
        self._wake = asyncio.Event()

    def add(self, key: Key, pod: Pod) -> None:
        """A pod without a node appeared, or changed in a way that may let it fit."""
        self._pods[key] = pod
        self._waiting.pop(key, None)
        self._activate(key)

    def refresh(self, key: Key, pod: Pod) -> None:
        """Its object is newer, but nothing that matters for placing it changed."""
        if key in self._pods:
            self._pods[key] = pod

    def remove(self, key: Key) -> None:
        """It was bound, deleted, or belongs to another scheduler now."""
        self._pods.pop(key, None)
        self._waiting.pop(key, None)
        self._tries.pop(key, None)
        self._active.discard(key)
        if timer := self._paused.pop(key, None):
            timer.cancel()

    def park(self, key: Key, verdict: Unschedulable) -> None:
        """It was tried and fits nowhere."""
        if key in self._pods:
            self._waiting[key] = _Waiting(verdict, self._clock.monotonic())

    def retry_later(self, key: Key) -> None:
        """It was tried and something failed that has nothing to do with room."""
        if key in self._pods:
            self._pause(key, self._pause_after(key))

    def changed(self, change: Change) -> None:
        """Wake the waiting pods that this change may help."""
        for key, waiting in list(self._waiting.items()):
            if worth_retrying(waiting.verdict, change):
                self._wake_up(key, waiting)

    def sweep(self) -> None:
        """Wake what has waited longer than `SWEEP`."""
        now = self._clock.monotonic()
        for key, waiting in list(self._waiting.items()):
            if now - waiting.since >= SWEEP:
                self._wake_up(key, waiting)

    async def pop(self) -> tuple[Key, Pod]:
        """The next pod to try: highest priority first, then in order of arrival."""
        while True:
            while self._heap:
                *_, key = heapq.heappop(self._heap)
                if key in self._active:
                    self._active.discard(key)
                    self._tries[key] = self._tries.get(key, 0) + 1
                    return key, self._pods[key]
            self._wake.clear()
            await self._wake.wait()

    def _wake_up(self, key: Key, waiting: _Waiting) -> None:
        del self._waiting[key]
        self._pause(key, self._pause_after(key) - (self._clock.monotonic() - waiting.since))

    def _pause_after(self, key: Key) -> float:
        return float(min(FIRST_PAUSE * 2 ** (self._tries.get(key, 1) - 1), LONGEST_PAUSE))

    def _pause(self, key: Key, seconds: float) -> None:
        if seconds <= 0:
            self._activate(key)
        elif key not in self._paused:
            self._paused[key] = self._clock.call_later(seconds, lambda: self._activate(key))

    def _activate(self, key: Key) -> None:
        if timer := self._paused.pop(key, None):
            timer.cancel()
        if key in self._active or key not in self._pods:
            return
        self._active.add(key)
        heapq.heappush(self._heap, (-(self._pods[key].spec.priority or 0), next(self._order), key))
        self._wake.set()
