"""The recorder: what the recommender sees of containers goes into the journal, as it sees it.

Each record is handed to the kernel at once, so a killed process loses nothing that it had written; the disk is waited
for once a minute, in a thread, so a machine that loses power loses a minute at most. A journal is closed after an hour,
or when it is large, and becomes a segment by a process of its own. What cannot be written is said once and left out:
recommendations do not wait for the history.
"""

import asyncio
import fcntl
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.clock import Clock
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.oom import OutOfMemory
from podfit.decide.autoscaling.tracked import PodKey
from podfit.decide.history.retention import DEFAULT_LIMITS, JOURNAL, HistoryFile, Limits, next_journal
from podfit.vpa.history.own.compaction import Wanted, compact
from podfit.vpa.history.own.files import HistoryDirectory
from podfit.vpa.history.own.journal import JournalWriter
from podfit.vpa.history.own.records import (
    NONE,
    ContainerRecord,
    OomRecord,
    RecommendationRecord,
    Record,
    SizeRecord,
    UsageRecord,
    labels_of,
    sizes_of,
    workload_of,
)

log = logging.getLogger(__name__)
SYNC_SECONDS = 60.0
LARGE, LARGEST = 8 << 20, 32 << 20
"""Bytes of a journal: of the one it is closed, beyond the other nothing is added until then."""
AT_ONCE = 20_000
"""Containers of one record."""
Container: TypeAlias = tuple[PodKey, str]


class Measured(Protocol):
    """A sample of a container: CPU in millicores, memory in bytes, None where it is not told; seconds since 1970."""

    @property
    def pod(self) -> PodKey: ...
    @property
    def container(self) -> str: ...
    @property
    def time(self) -> float: ...
    @property
    def cpu(self) -> int | None: ...
    @property
    def memory(self) -> int | None: ...


ReadThrottling = Callable[[Iterable[Pod]], Awaitable[Mapping[tuple[str, str, str], float]]]
"""The share of periods in which each container was held back since this was last asked. Raises ConnectionError."""


class Recorder:
    """Into `directory`. `compacting` makes segments of journals; `throttling` is asked before each reading."""

    def __init__(
        self,
        directory: HistoryDirectory,
        clock: Clock,
        *,
        limits: Limits = DEFAULT_LIMITS,
        compacting: Callable[[Wanted], Awaitable[None]] = compact,
        throttling: ReadThrottling | None = None,
    ) -> None:
        self._directory, self._clock, self._limits = directory, clock, limits
        self._compacting, self._read_throttling = compacting, throttling
        self._journal: JournalWriter | None = None
        self._file: HistoryFile | None = None
        self._opened = clock.monotonic()
        self._numbers: dict[Container, int] = {}
        self._pod_of: Callable[[PodKey], Pod | None] = lambda key: None
        self._told: dict[tuple[str, str, str], tuple[int, ...]] = {}
        self._problem = ""
        self._lock: int | None = None
        self._to_compact = asyncio.Event()

    @property
    def root(self) -> Path:
        return self._directory.root

    def knows(self, pod_of: Callable[[PodKey], Pod | None]) -> None:
        """How a pod is looked up that a journal has not named yet."""
        self._pod_of = pod_of

    async def run(self) -> None:
        """Until cancelled: what was appended becomes durable, and journals become segments."""
        self._open()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep())
                group.create_task(self._compact_closed())
        finally:
            self._close()
            if self._lock is not None:
                os.close(self._lock)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(SYNC_SECONDS)
            await self._sync()
            journal = self._journal
            if journal is None or journal.size > LARGE or self._clock.monotonic() - self._opened >= JOURNAL:
                self._close()
                self._open()

    # ------------------------------------------------------------ what is recorded

    async def usage(self, samples: Iterable[Measured]) -> None:
        """A reading of all containers."""
        measured = tuple(samples) if self._journal is not None else ()
        throttled = await self._throttled({sample.pod for sample in measured})
        now = self._now()
        rows: list[tuple[int, int, int, int, int]] = []
        records: list[Record] = []
        for sample in measured:
            number = self._number(sample.pod, sample.container, records)
            if number is None:
                continue
            share = throttled.get((*sample.pod, sample.container))
            ago = max(now - int(sample.time * 1000), -(1 << 40))
            amounts = (NONE if sample.cpu is None else sample.cpu, NONE if sample.memory is None else sample.memory)
            rows.append((number, ago, *amounts, NONE if share is None else round(1000 * share)))
        for first in range(0, len(rows), AT_ONCE):
            columns = [list(column) for column in zip(*rows[first : first + AT_ONCE], strict=True)]
            records.append(UsageRecord(now, *columns))
        self._append(records)

    def changed(self, old: Pod, new: Pod) -> None:
        """A pod is another than before: its sizes may be."""
        key, records = PodKey(new.metadata.namespace, new.metadata.name), list[Record]()
        before = {scaled.container.name: sizes_of(scaled) for scaled in every_container(old)}
        for scaled in every_container(new):
            name, sizes = scaled.container.name, sizes_of(scaled)
            if name in before and before[name] != sizes:
                number = self._number(key, name, records, old)
                if number is not None:
                    records.append(SizeRecord(self._now(), number, *sizes, resized=True))
        self._append(records)

    def ran_out(self, event: OutOfMemory) -> None:
        records = list[Record]()
        number = self._number(PodKey(event.namespace, event.pod), event.container, records)
        if number is not None:
            records.append(OomRecord(int(event.time.timestamp() * 1000), number, event.memory))
        self._append(records)

    def recommended(self, vpa: VerticalPodAutoscaler, status: VerticalPodAutoscalerStatus) -> None:
        """What a VPA recommends, where it is another than was last recorded."""
        if self._journal is None:
            return
        target, meta, records = vpa.spec.target_ref, vpa.metadata, list[Record]()
        workload = f"{target.kind}/{target.name}" if target is not None else ""
        for container in status.recommendation.container_recommendations if status.recommendation else ():
            amounts = (
                *(_milli(bound) for bound in (container.target, container.lower_bound, container.upper_bound)),
                *(_bytes(bound) for bound in (container.target, container.lower_bound, container.upper_bound)),
            )
            key = (meta.namespace, meta.name, container.container_name)
            if self._told.get(key) != amounts:
                self._told[key] = amounts
                names = (meta.namespace, meta.name, workload, container.container_name)
                records.append(RecommendationRecord(self._now(), *names, *amounts))
        self._append(records)

    # ------------------------------------------------------------ the journal

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _number(self, key: PodKey, container: str, records: list[Record], pod: Pod | None = None) -> int | None:
        """What stands for a container in this journal; one that it did not name yet is named by `records`. None where
        nobody knows the pod.
        """
        if (number := self._numbers.get((key, container))) is not None:
            return number
        if (pod := pod or self._pod_of(key)) is None:
            return None
        time, workload, labels = self._now(), workload_of(pod), labels_of(pod)
        for scaled in every_container(pod):
            name = scaled.container.name
            if (key, name) not in self._numbers:
                number = self._numbers[key, name] = len(self._numbers)
                records.append(ContainerRecord(number, time, *key, name, workload, labels))
                records.append(SizeRecord(time, number, *sizes_of(scaled), resized=False))
        return self._numbers.get((key, container))

    def _append(self, records: list[Record]) -> None:
        if not records or self._journal is None or self._journal.size > LARGEST:
            return
        try:
            self._journal.append(records)
        except OSError as error:
            self._said(f"not written: {error}")
            self._close()  # numbers of this journal may not be in it

    def _open(self) -> None:
        self._numbers.clear()
        try:
            self._directory.create()
            self._hold()
            files = self._directory.files()
            if sum(file.size for file in files) > 2 * self._limits.size:
                raise OSError(f"it has more than {2 * self._limits.size} bytes, and no compaction makes room")
            self._file = next_journal(files, self._clock.now().timestamp())
            self._journal = JournalWriter(self._directory.path(self._file))
        except OSError as error:
            self._said(f"not recorded: {error}")
        else:
            self._problem, self._opened = "", self._clock.monotonic()
            self._to_compact.set()

    def _hold(self) -> None:
        """One recorder at a time writes here. Raises OSError."""
        if self._lock is None:
            handle = os.open(self._directory.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise
            self._lock = handle

    def _close(self) -> None:
        journal, self._journal, self._file = self._journal, None, None
        self._numbers.clear()
        if journal is not None:
            with suppress(OSError):
                journal.sync()
            journal.close()

    async def _sync(self) -> None:
        if self._journal is not None:
            try:
                await asyncio.to_thread(self._journal.sync)
            except OSError as error:
                self._said(f"not written: {error}")

    async def _compact_closed(self) -> None:
        """Beside the writing: a minute that is long for the one is not long for the other."""
        while True:
            await self._to_compact.wait()
            self._to_compact.clear()
            active, now = self._file.name if self._file is not None else "", self._clock.now().timestamp()
            root = str(self._directory.root)
            try:
                await self._compacting(Wanted(directory=root, now=now, active=active, limits=self._limits))
            except (ConnectionError, OSError) as error:
                self._said(f"kept as journals: {error}")

    async def _throttled(self, keys: Iterable[PodKey]) -> Mapping[tuple[str, str, str], float]:
        if self._read_throttling is None:
            return {}
        pods = [pod for key in keys if (pod := self._pod_of(key)) is not None]
        try:
            return await self._read_throttling(pods)
        except (ConnectionError, ValueError) as error:
            self._said(f"without throttling: {error}")
            return {}

    def _said(self, problem: str) -> None:
        """A warning, until something else is wrong or nothing is."""
        if problem != self._problem:
            log.warning("history %s", problem)
        self._problem = problem


def _milli(amounts: ResourceList) -> int:
    found = amounts.get(CPU)
    return NONE if found is None else found.milli()


def _bytes(amounts: ResourceList) -> int:
    found = amounts.get(MEMORY)
    return NONE if found is None else found.value()
