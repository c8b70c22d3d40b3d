"""Feeds pods, their samples and their OOMs into the model.

Pods are taken in as their watch tells of them. One that is gone leaves after the samples and OOMs of the next pass have
been counted, so that the last ones are not lost (V-040).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import Selector
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.container_view import every_container
from podfit.decide.autoscaling.oom import OutOfMemory, evicted, ran_out
from podfit.decide.autoscaling.quality import Quality
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.workload.daemon.nodes import node_of
from podfit.vpa.history.own.recorder import Recorder
from podfit.vpa.recommender.usage import Sample

BY_NAMESPACE = "namespace"
_Counted: TypeAlias = tuple[int, int, float]
"""A slot of the model, millicores or bytes, and the time."""
AHEAD = 300.0
"""Seconds by which the clock of who tells of usage may be ahead: after a sample of next year none would be newer."""
MOST_OOMS = 5000
"""That wait for the next pass; more push the oldest out."""


class Pods:
    """All pods. With `selected_only` those that no VPA selects take no memory; `sidecars` are counted as other
    containers are. `told_of_oom` hears of pods whose containers ran out of memory, which `count_ooms` counts."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        state: ClusterState,
        namespace: str = "",
        *,
        selected_only: bool = False,
        sidecars: bool = True,
        quality: Quality,
        told_of_oom: Callable[[PodKey], None] = lambda _: None,
        recorder: Recorder | None = None,
    ) -> None:
        self._clock, self._state, self._selected_only, self._sidecars = clock, state, selected_only, sidecars
        self._quality, self._gone, self._leaving = quality, set[PodKey](), set[PodKey]()
        self._told_of_oom = told_of_oom
        self._ooms: deque[OutOfMemory] = deque(maxlen=MOST_OOMS)
        by_namespace = {BY_NAMESPACE: lambda pod: (pod.metadata.namespace,)}
        pods = Informer(
            client, Pod, clock=clock, namespace=namespace, fields="status.phase!=Pending", indexes=by_namespace
        )
        pods.add_handler(add=self._seen, update=self._changed, delete=self._left)
        events = Informer(client, Event, clock=clock, namespace=namespace, fields="reason=Evicted")
        events.add_handler(add=lambda event: self._note_ooms(evicted(event)))
        self._all, self._recorder = pods, recorder
        if recorder is not None:
            recorder.knows(lambda key: pods.get(key.name, key.namespace))
        self.informers = (pods, events)

    def select(self) -> None:
        """After VPAs have changed (V-046)."""
        for pod in self._all.list() if self._selected_only else ():
            key = PodKey(pod.metadata.namespace, pod.metadata.name)
            if self._state.is_selected(key.namespace, pod.metadata.labels):
                self._seen(pod)
            elif self._state.has(key):
                self._state.remove_pod(key)

    def of(self, vpa: VpaKey, selector: Selector) -> Iterator[PodKey]:
        """The pods that a VPA selects."""
        for pod in self._all.by_index(BY_NAMESPACE, vpa.namespace):
            if selector.matches(pod.metadata.labels):
                yield PodKey(pod.metadata.namespace, pod.metadata.name)

    def get(self, key: PodKey) -> Pod | None:
        """The pod as its watch told of it last."""
        return self._all.get(key.name, key.namespace)

    def count(self, samples: Iterable[Sample]) -> int:
        """Says how many are of containers that are known."""
        latest = self._clock.now().timestamp() + AHEAD
        found = [
            (slot, sample)
            for sample in samples
            if sample.time <= latest and (slot := self._state.slot(sample.pod, sample.container)) is not None
        ]
        cpu = [(slot, sample.cpu, sample.time) for slot, sample in found if sample.cpu is not None]
        memory = [(slot, sample.memory, sample.time) for slot, sample in found if sample.memory is not None]
        cpu_as_a_whole, memory_as_a_whole = self._as_a_whole(sample for _, sample in found)
        model = self._state.model
        for told, add, resource, unit in ((cpu, model.add_cpu, CPU, 1000), (memory, model.add_memory, MEMORY, 1)):
            if told:
                columns = zip(*told, strict=True)
                slots, amounts, times = (np.array(column) for column in columns)
                taken = add(slots.astype(np.intp), amounts.astype(np.float64), times)
                self._quality.used(resource, model.containers.aggregate[slots[taken]], amounts[taken] / unit)
        for told, add in ((cpu_as_a_whole, model.add_cpu), (memory_as_a_whole, model.add_memory)):
            if told:
                slots, amounts, times = (np.array(column) for column in zip(*told, strict=True))
                add(slots.astype(np.intp), amounts.astype(np.float64), times)
        return len(found)

    def _as_a_whole(self, samples: Iterable[Sample]) -> tuple[list[_Counted], list[_Counted]]:
        """Sums of the containers of pods that are sized as a whole: CPU and memory. One whose containers are not all
        measured counts for nothing.
        """
        by_pod: dict[PodKey, dict[str, Sample]] = {}
        for sample in samples if self._state.own else ():
            by_pod.setdefault(sample.pod, {})[sample.container] = sample
        sums: tuple[list[_Counted], list[_Counted]] = [], []
        for key, every in by_pod.items():
            slot = self._state.own.whole(key)
            if slot is None or len(every) != self._state.containers_of(key):
                continue
            time = max(sample.time for sample in every.values())
            of_cpu, of_memory = [one.cpu for one in every.values()], [one.memory for one in every.values()]
            for counted, amounts in zip(sums, (of_cpu, of_memory), strict=True):
                known = [amount for amount in amounts if amount is not None]
                if len(known) == len(amounts):
                    counted.append((slot, sum(known), time))
        return sums

    def count_ooms(self) -> None:
        while self._ooms:
            event = self._ooms.popleft()
            if self._recorder is not None:
                self._recorder.ran_out(event)
            key = PodKey(event.namespace, event.pod)
            slot, whole = self._state.slot(key, event.container), self._state.own.whole(key)
            if slot is not None:
                self._ran_out(slot, event)
            if whole is not None:
                self._pod_ran_out(whole, key, event)

    def _ran_out(self, slot: int, event: OutOfMemory) -> None:
        model = self._state.model
        needed = model.needed_after_oom(slot, event.memory)
        time = min(event.time.timestamp(), self._clock.now().timestamp())
        if model.add_oom(slot, event.memory, time):
            rows = model.containers.aggregate[np.array([slot])]
            self._quality.used(MEMORY, rows, np.array([needed]), oom=True)

    def _pod_ran_out(self, slot: int, key: PodKey, event: OutOfMemory) -> None:
        """As a whole: beside what it requests so."""
        pod = self._all.get(key.name, key.namespace)
        level = pod.spec.resources if pod is not None else None
        asked = level.requests.get(MEMORY) if level is not None else None
        time = min(event.time.timestamp(), self._clock.now().timestamp())
        self._state.model.add_oom(slot, 0 if asked is None else asked.value(), time)

    def drop_gone(self) -> None:
        """Those that were gone when this was last done: an OOM may be told of after its pod (V-040)."""
        for key in self._leaving:
            if self._state.has(key):
                self._state.remove_pod(key)
        self._gone, self._leaving = set(), self._gone

    def _seen(self, pod: Pod) -> None:
        key = PodKey(pod.metadata.namespace, pod.metadata.name)
        self._gone.discard(key)
        self._leaving.discard(key)
        if self._selected_only and not self._state.is_selected(key.namespace, pod.metadata.labels):
            return
        names = [scaled.container.name for scaled in every_container(pod) if self._sidecars or not scaled.sidecar]
        self._state.set_pod(key, pod.metadata.labels, names, self._clock.now().timestamp(), node_of(pod))

    def _changed(self, old: Pod, new: Pod) -> None:
        self._note_ooms(ran_out(old, new))
        if self._recorder is not None:
            self._recorder.changed(old, new)
        self._seen(new)

    def _note_ooms(self, told: Iterable[OutOfMemory]) -> None:
        for event in told:
            self._ooms.append(event)
            self._told_of_oom(PodKey(event.namespace, event.pod))

    def _left(self, pod: Pod) -> None:
        self._gone.add(PodKey(pod.metadata.namespace, pod.metadata.name))
