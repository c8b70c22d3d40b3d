"""The scheduling queue: active pods, pods in backoff, and unschedulable pods.

    active ──pop──▶ tried ──▶ placed
      ▲               └────▶ waiting ──a change that can help──▶ pausing ──▶ active
      └─────────────────────────────────────────────────────────────┘

A pod that fitted nowhere is not polled. It waits with its verdict until a change that could turn it arrives, and a
sweep every few minutes catches what no event told. Tries that follow each other quickly are spaced by a growing pause,
but only while others want their turn: when nobody else is active, the pause of a pod that lacked room is cut short. The
pause after an error always lasts, since trying harder does not heal an API server.
"""

import asyncio
import heapq
import itertools

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock, Timer
from podfit.decide.placement.place import NO_NAMESPACES
from podfit.decide.placement.requeue import Change, ClaimChanged, Waiting, worth_retrying
from podfit.decide.placement.view import NamespaceLabels
from podfit.scheduler.names import scheduler_of

FIRST_PAUSE = 1.0  # seconds between the first two tries, doubling
LONGEST_PAUSE = 10.0
SWEEP = 300.0  # seconds after which a waiting pod is tried whatever happened

Key = tuple[str, str]
"""Namespace and name."""


class _Parked(msgspec.Struct, frozen=True):
    why: Waiting
    since: float


class _Pause(msgspec.Struct, frozen=True):
    until: float
    timer: Timer
    failed: bool  # after an error rather than for want of room


class SchedulingQueue:
    """One consumer calls `pop`; everything else is synchronous, for informer handlers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[Key, Pod] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._active: set[Key] = set()
        self._parked: dict[Key, _Parked] = {}
        self._mounting: dict[Key, dict[Key, None]] = {}  # by claim the parked pods that wait for it
        self._pauses: dict[Key, _Pause] = {}
        self._tries: dict[Key, int] = {}
        self._arrived: dict[Key, float] = {}
        self._order = itertools.count()
        self._wake = asyncio.Event()
        self.news = 0
        """Grows with every change that could help a pod, its own among them."""

    def add(self, key: Key, pod: Pod) -> None:
        """A pod without a node appeared, or changed in a way that may let it fit."""
        self._pods[key] = pod
        self._arrived.setdefault(key, self._clock.monotonic())
        self._unpark(key)
        self._activate(key)

    def refresh(self, key: Key, pod: Pod) -> None:
        """Its object is newer, but nothing that matters for placing it changed."""
        if key in self._pods:
            self._pods[key] = pod
            self.news += 1

    def remove(self, key: Key) -> None:
        """It was bound, deleted, or belongs to another scheduler now."""
        self._pods.pop(key, None)
        self._unpark(key)
        self._tries.pop(key, None)
        self._arrived.pop(key, None)
        self._active.discard(key)
        if pause := self._pauses.pop(key, None):
            pause.timer.cancel()

    def knows(self, key: Key) -> bool:
        return key in self._pods

    def record(self, key: Key) -> tuple[int, float]:
        """How often the pod was tried, and when it came."""
        return self._tries.get(key, 0), self._arrived.get(key, self._clock.monotonic())

    def waiting(self, key: Key) -> Waiting | None:
        """Why the pod waits for the cluster to change, when it does."""
        parked = self._parked.get(key)
        return parked.why if parked else None

    def sizes(self) -> dict[str, int]:
        return {"active": len(self._active), "backoff": len(self._pauses), "unschedulable": len(self._parked)}

    def refused_by(self, name: str, scheduler: str) -> int:
        """How many of those that ask for this scheduler wait after the filter of this name refused some node."""
        return sum(
            name in parked.why.verdict.filters and scheduler_of(parked.why.subject.pod) == scheduler
            for parked in self._parked.values()
        )

    def park(self, key: Key, why: Waiting, *, news: int | None = None) -> None:
        """It was tried and fits nowhere. `news` are those that the try has seen, where others could come meanwhile:
        with more of them it is tried again, since nobody asked whether they help."""
        if key in self._pods:
            self._unpark(key)
            parked = self._parked[key] = _Parked(why, self._clock.monotonic())
            for name in why.claims:
                self._mounting.setdefault((key[0], name), {})[key] = None
            if news is not None and news != self.news:
                self._wake_up(key, parked)

    def retry_later(self, key: Key) -> None:
        """It was tried and something failed that has nothing to do with room."""
        self._unpark(key)
        if key in self._pods and key not in self._active:
            self._pause(key, self._pause_after(key), failed=True)

    def changed(self, change: Change, *, namespaces: NamespaceLabels = NO_NAMESPACES) -> None:
        """Wake the waiting pods that this change may help."""
        self.news += 1
        for key, parked in self._concerned(change):
            if worth_retrying(parked.why, change, namespaces=namespaces):
                self._wake_up(key, parked)

    def _concerned(self, change: Change) -> list[tuple[Key, _Parked]]:
        """Those to be asked: of a claim the ones that wait for it."""
        if not isinstance(change, ClaimChanged):
            return list(self._parked.items())
        return [(key, self._parked[key]) for key in self._mounting.get((change.namespace, change.name), ())]

    def _unpark(self, key: Key) -> None:
        parked = self._parked.pop(key, None)
        for name in parked.why.claims if parked else ():
            claim = key[0], name
            del self._mounting[claim][key]
            if not self._mounting[claim]:
                del self._mounting[claim]

    def sweep(self) -> None:
        """Wake what has waited longer than `SWEEP`."""
        now = self._clock.monotonic()
        for key, parked in list(self._parked.items()):
            if now - parked.since >= SWEEP:
                self._wake_up(key, parked)

    async def pop(self) -> tuple[Key, Pod]:
        """The next pod to try: highest priority first, then in order of arrival."""
        while True:
            if (key := self._next()) is not None:
                self._tries[key] = self._tries.get(key, 0) + 1
                return key, self._pods[key]
            self._wake.clear()
            await self._wake.wait()

    def _next(self) -> Key | None:
        while self._heap:
            *_, key = heapq.heappop(self._heap)
            if key in self._active:
                self._active.discard(key)
                return key
        early = min(((pause.until, key) for key, pause in self._pauses.items() if not pause.failed), default=None)
        if early is None:
            return None
        self._pauses.pop(early[1]).timer.cancel()
        return early[1]

    def _wake_up(self, key: Key, parked: _Parked) -> None:
        self._unpark(key)
        self._pause(key, self._pause_after(key) - (self._clock.monotonic() - parked.since), failed=False)

    def _pause_after(self, key: Key) -> float:
        return float(min(FIRST_PAUSE * 2 ** (self._tries.get(key, 1) - 1), LONGEST_PAUSE))

    def _pause(self, key: Key, seconds: float, *, failed: bool) -> None:
        if seconds <= 0:
            self._activate(key)
        elif key not in self._pauses:
            timer = self._clock.call_later(seconds, lambda: self._activate(key))
            self._pauses[key] = _Pause(self._clock.monotonic() + seconds, timer, failed)
            self._wake.set()

    def _activate(self, key: Key) -> None:
        if pause := self._pauses.pop(key, None):
            pause.timer.cancel()
        if key in self._active or key not in self._pods:
            return
        self._active.add(key)
        heapq.heappush(self._heap, (-(self._pods[key].spec.priority or 0), next(self._order), key))
        self._wake.set()
