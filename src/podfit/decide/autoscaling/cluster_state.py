"""The recommender's cluster state: pods and VPAs over the arrays of its model; each step is linear in what it touches.

    pod ─ its container ─▶ slot of the model ─▶ aggregate of (namespace, labels, container name)
    VPA ─ selector ─▶ groups of pods with equal labels ─▶ their aggregates, and those restored from checkpoints

What was restored stays with its VPA as long as that exists, even while no pod of it is found.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from podfit.api.autoscaling_k8s.v1 import (
    PodResourcePolicy,
    RecommendedPodResources,
    VerticalPodAutoscalerCheckpoint,
    VerticalPodAutoscalerCheckpointStatus,
)
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import Selector
from podfit.decide.autoscaling import checkpoints
from podfit.decide.autoscaling.estimate import Estimates, Merged, confidence, estimate
from podfit.decide.autoscaling.flags import DEFAULT_FLAGS, RecommenderFlags
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.matching import Matching
from podfit.decide.autoscaling.merged_rows import AggregateRows, merge, take_out_open_windows
from podfit.decide.autoscaling.model import Model
from podfit.decide.autoscaling.own_aggregates import OwnAggregates
from podfit.decide.autoscaling.policies import Override, aggregation, is_off, override, policy_of
from podfit.decide.autoscaling.recommendation import Amounts, Numbers, recommendation
from podfit.decide.autoscaling.scope import NO_RULES, PodFacts, Rules
from podfit.decide.autoscaling.status import Estimated
from podfit.decide.autoscaling.tracked import Group, Known, PodKey, TrackedPod, TrackedVpa
from podfit.decide.autoscaling.tracked import VpaKey as VpaKey

NOTHING_RESTORED: Mapping[str, tuple[int, ...]] = {}


AT_ONCE = 1024
"""Containers whose histograms are merged together: as many as fit a processor's cache."""


class ClusterState:
    """All that is recommended from. With `upstream_compatible` a policy's percentiles do not count, nor does its
    minimum lower the pod's."""

    def __init__(
        self, flags: RecommenderFlags = DEFAULT_FLAGS, gates: Gates = NO_GATES, *, upstream_compatible: bool = False
    ) -> None:
        self.flags, self.gates, self._upstream_compatible = flags, gates, upstream_compatible
        self.model = Model(flags)
        self._matching: Matching[VpaKey, Group] = Matching()
        self._groups: dict[Group, Known] = {}
        self._pods: dict[PodKey, TrackedPod] = {}
        self._vpas: dict[VpaKey, TrackedVpa] = {}
        self.own = OwnAggregates(self.model, self._configure, self._overrides_of)
        """Of slices, and of pods as a whole."""

    # ------------------------------------------------------------ pods

    def set_pod(
        self, key: PodKey, labels: Mapping[str, str], containers: Iterable[str], now: float, node: str = ""
    ) -> None:
        """A pod that is seen, with the containers that it has now. Past samples stay with the labels it had (V-026)."""
        group, names = Group(key.namespace, tuple(sorted(labels.items()))), tuple(dict.fromkeys(containers))
        before = self._pods.get(key)
        if before is not None and (before.group, before.names, before.node) == (group, names, node):
            return
        if before is not None:
            self.own.unlink(key, before.slots)
        known, table = self._known(group, labels, names, now), self.model.containers
        known.living += 1
        slots: dict[str, int] = {}
        if before is not None:
            self._groups[before.group].living -= 1
            slots = before.by_name
            table.free(np.array([slot for name, slot in slots.items() if name not in names], dtype=np.intp))
        for name in names:
            if name in slots:
                table.aggregate[slots[name]] = known.rows[name]
        new = [name for name in names if name not in slots]
        taken = table.new(np.array([known.rows[name] for name in new], dtype=np.intp))
        slots |= zip(new, taken.tolist(), strict=True)
        self._pods[key] = TrackedPod(group, names, tuple(slots[name] for name in names), node)
        self._link(key, now)

    def _link(self, key: PodKey, now: float) -> None:
        """To what the VPAs that select a pod count of their own."""
        if self.own:
            pod = self._pods[key]
            facts = PodFacts(key.name, pod.node, dict(pod.group.labels))
            self.own.link(key, facts, pod.by_name, self._matching.selectors_of(pod.group), now)

    def _link_anew(self, keys: list[PodKey], now: float, change: Callable[[], None] = lambda: None) -> None:
        """`change` is done while they are linked to nothing."""
        for key in keys:
            self.own.unlink(key, self._pods[key].slots)
        change()
        for key in keys:
            self._link(key, now)

    def remove_pod(self, key: PodKey) -> None:
        """KeyError when it is not there."""
        pod = self._pods.pop(key)
        self.own.unlink(key, pod.slots)
        self._groups[pod.group].living -= 1
        self.model.containers.free(np.array(pod.slots, dtype=np.intp))

    def forget_ended(self, now: float) -> int:
        """Drop what was learnt of pods that are gone, when it has expired or is nothing; says how many aggregates.

        What is known of pods that live stays, however long there have been no samples (V-035).
        """
        table = self.model.aggregates
        ended = table.expired(now) | (table.slots.used & (table.count == 0))
        dropped: list[int] = []
        for group in [group for group, known in self._groups.items() if not known.living]:
            rows = self._groups[group].rows
            gone = [name for name, row in rows.items() if ended[row]]
            dropped += [rows.pop(name) for name in gone]
            if not rows:
                self._forget_group(group)
        table.free(np.array(dropped, dtype=np.intp))
        number = len(dropped) + self.own.forget_ended(ended)
        self._link_anew(self.own.waiting(), now)
        return number

    def _forget_group(self, group: Group) -> None:
        for key in self._matching.selectors_of(group):
            self._vpas[key].groups.remove(group)
        self._matching.remove_group(group)
        del self._groups[group]

    def has(self, key: PodKey) -> bool:
        """Whether a pod is seen now."""
        return key in self._pods

    def is_selected(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a VPA selects pods of these labels."""
        return self._matching.is_selected(namespace, labels)

    def selected_by(self, key: PodKey) -> list[VpaKey]:
        """The VPAs that select a pod which is seen now."""
        pod = self._pods.get(key)
        return list(self._matching.selectors_of(pod.group)) if pod is not None else []

    def slot(self, key: PodKey, container: str) -> int | None:
        """Where the model has a container; None when it is not known."""
        pod = self._pods.get(key)
        return pod.slots[pod.names.index(container)] if pod is not None and container in pod.names else None

    def containers_of(self, key: PodKey) -> int:
        """How many containers of a pod that is seen are counted."""
        return len(self._pods[key].names)

    def add_sample(self, key: PodKey, container: str, time: float, *, cpu: int | None, memory: int | None) -> None:
        """Millicores and bytes at a time; of a container that is not known, nothing."""
        slot = self.slot(key, container)
        if slot is None:
            return
        slots, times = np.array([slot], dtype=np.intp), np.array([time])
        if cpu is not None:
            self.model.add_cpu(slots, np.array([cpu], dtype=np.float64), times)
        if memory is not None:
            self.model.add_memory(slots, np.array([memory], dtype=np.float64), times)

    def _known(self, group: Group, labels: Mapping[str, str], names: Iterable[str], now: float) -> Known:
        """A group with rows for these containers, new ones where there are none."""
        known = self._groups.get(group)
        if known is None:
            self._groups[group] = known = Known()
            self._matching.add_group(group, group.namespace, labels)
            for key in self._matching.selectors_of(group):
                self._vpas[key].groups.append(group)
        rows = known.rows
        new = [name for name in names if name not in rows]
        rows.update(zip(new, self.model.aggregates.new(len(new), now).tolist(), strict=True))
        if new and self.gates.per_vpa_config:
            for key in self._matching.selectors_of(group):
                self._configure(self._vpas[key].policy, {name: rows[name] for name in new})
        return known

    # ------------------------------------------------------------ VPAs

    def set_vpa(
        self,
        key: VpaKey,
        selector: Selector,
        policy: PodResourcePolicy | None,
        rules: Rules = NO_RULES,
        now: float = 0.0,
    ) -> None:
        """A VPA as it is now; what was restored for it stays when its selector changes."""
        vpa = self._vpas.get(key)
        if vpa is not None and (vpa.selector, vpa.policy, self.own.rules(key)) == (selector, policy, rules):
            return
        sliced = rules.any or self.own.rules(key).any
        before = set(vpa.groups) if vpa is not None else set[Group]()
        kept = self._forget(key) if vpa is not None else NOTHING_RESTORED
        self._matching.add_selector(key, key.namespace, selector)
        self._vpas[key] = vpa = TrackedVpa(selector, policy, list(self._matching.groups_of(key)), kept)
        for group in vpa.groups:
            self._configure(policy, self._groups[group].rows)
        if sliced:
            self._link_anew(self._pods_of(before.union(vpa.groups)), now, lambda: self.own.set_vpa(key, rules, policy))

    def remove_vpa(self, key: VpaKey) -> None:
        """Removes it with what was restored for it. KeyError when it is not there."""
        groups, sliced = set(self._vpas[key].groups), self.own.rules(key).any
        rows = [row for slots in self._forget(key).values() for row in slots]
        self.model.aggregates.free(np.array(rows, dtype=np.intp))
        if sliced:
            self._link_anew(self._pods_of(groups), 0.0, lambda: self.own.remove_vpa(key))

    def _pods_of(self, groups: set[Group]) -> list[PodKey]:
        return [key for key, pod in self._pods.items() if pod.group in groups]

    def _forget(self, key: VpaKey) -> Mapping[str, tuple[int, ...]]:
        """Take a VPA out; its aggregates have the settings of the flags, or of another VPA that is for them."""
        vpa = self._vpas.pop(key)
        self._matching.remove_selector(key)
        for group in vpa.groups:
            self._configure(None, self._groups[group].rows)
            for other in self._matching.selectors_of(group):
                self._configure(self._vpas[other].policy, self._groups[group].rows)
        return vpa.restored

    def _configure(self, policy: PodResourcePolicy | None, rows: Mapping[str, int]) -> None:
        """What a policy says of windows and of memory after an OOM, with the gate PerVPAConfig."""
        if not self.gates.per_vpa_config:
            return
        for name, row in rows.items():
            memory, oom = aggregation(policy_of(policy, name), self.flags)
            self.model.aggregates.configure(np.array([row]), memory, oom)

    def has_vpa(self, key: VpaKey) -> bool:
        return key in self._vpas

    @property
    def vpas(self) -> list[VpaKey]:
        return list(self._vpas)

    def pods_of(self, key: VpaKey) -> int:
        """How many pods a VPA selects."""
        return sum(self._groups[group].living for group in self._vpas[key].groups)

    # ------------------------------------------------------------ passes

    def members(self, keys: Iterable[VpaKey], *, off: bool = False) -> AggregateRows:
        """The containers of these VPAs with the aggregates of each; those of mode Off only when asked for (V-032)."""
        found = AggregateRows()
        for key in keys:
            vpa = self._vpas[key]
            rows: dict[str, list[int]] = {}
            for group in vpa.groups:
                for name, row in self._groups[group].rows.items():
                    rows.setdefault(name, []).append(row)
            for name, more in vpa.restored.items():
                rows.setdefault(name, []).extend(more)
            if vpa.policy is None:
                found.add(key, rows, {})
                continue
            wanted = [name for name in rows if off or not is_off(policy_of(vpa.policy, name))]
            found.add(key, {name: rows[name] for name in wanted}, self._overrides_of(vpa.policy, rows))
        return found

    def _overrides_of(self, policy: PodResourcePolicy | None, names: Iterable[str]) -> dict[str, Override]:
        if self._upstream_compatible or policy is None:
            return {}
        policies = {name: policy_of(policy, name) for name in names}
        own = {name: override(policy, percentiles=self.gates.per_vpa_config) for name, policy in policies.items()}
        return {name: overriding for name, overriding in own.items() if overriding is not None}

    def merged(self, members: AggregateRows) -> Iterator[tuple[slice, Merged]]:
        """What is known of all members, some at a time; the slice says which."""
        for start in range(0, len(members), AT_ONCE):
            part = slice(start, min(start + AT_ONCE, len(members)))
            yield part, merge(self.model.aggregates, members, part)

    def estimates(self, members: AggregateRows) -> Iterator[tuple[slice, Estimates]]:
        for part, known in self.merged(members):
            yield part, estimate(known, self.flags.estimator)

    def recommend(self, annotations: Mapping[VpaKey, Mapping[str, str]]) -> dict[VpaKey, RecommendedPodResources]:
        """The recommendations of these VPAs, with their annotations; one without containers has an empty
        recommendation."""
        return {key: checked.recommendation for key, checked in self.found(annotations).items()}

    def found(self, annotations: Mapping[VpaKey, Mapping[str, str]]) -> dict[VpaKey, Estimated]:
        """The same, with what is not known; a percentile of 0 says that there are no samples."""
        return self._found(
            self.members(annotations), {key: (self._vpas[key].policy, annotations[key]) for key in annotations}
        )

    def found_by_slice(
        self, key: VpaKey, annotations: Mapping[str, str], only: Collection[str] | None = None
    ) -> dict[str, Estimated]:
        """The same of each slice of a VPA (or of these), and of its pods as a whole; empty where neither is asked."""
        members = self.own.members(key, only)
        about = {which: (self.own.policy(key), annotations) for which, _ in members.names}
        return {name: estimated for (_, name), estimated in self._found(members, about).items()}

    def _found(self, members: AggregateRows, about: Mapping[Any, Any]) -> dict[Any, Estimated]:
        """By what names members; `about` has the policy and the annotations of each."""
        numbers: dict[Any, list[Numbers]] = {key: [] for key in about}
        unknown: dict[Any, set[tuple[str, str]]] = {key: set() for key in about}
        for part, estimates in self.estimates(members):
            amounts = np.array([[estimates.cpu[bound].floor, estimates.memory[bound].floor] for bound in estimates.cpu])
            for place, (target, lower, upper) in enumerate(amounts.astype(np.int64).transpose(2, 0, 1).tolist()):
                key, name = members.names[part.start + place]
                numbers[key].append(Numbers(name, Amounts(*target), Amounts(*lower), Amounts(*upper)))
            for resource, chains in ((CPU, estimates.cpu), (MEMORY, estimates.memory)):
                for place in (chains["target"].percentile == 0).nonzero()[0].tolist():
                    key, name = members.names[part.start + place]
                    unknown[key].add((name, resource))
        return {
            key: Estimated(
                recommendation(every, about[key][0], self.flags.render, about[key][1]), frozenset(unknown[key])
            )
            for key, every in numbers.items()
        }

    def confidence(self, key: VpaKey) -> dict[str, float]:
        """How sure, by container, the estimates of a VPA are: 1 after a day of samples each minute."""
        members, interval = self.members([key]), self.flags.estimator.cpu.confidence_interval
        return {
            members.names[part.start + place][1]: sure
            for part, known in self.merged(members)
            for place, sure in enumerate(confidence(known, interval).tolist())
        }

    def checkpoints(
        self, keys: Iterable[VpaKey], now: float
    ) -> Iterator[tuple[VpaKey, list[VerticalPodAutoscalerCheckpoint]]]:
        """What to keep of these VPAs, without the peaks of windows that are not over (V-036)."""
        keys = list(keys)
        found: dict[VpaKey, list[VerticalPodAutoscalerCheckpoint]] = {}
        for (key, name), status in self._saved(self.members(keys, off=True), now):
            found.setdefault(key, []).append(checkpoints.named(key.namespace, key.name, name, status))
        for key in keys if self.own else ():
            by = str(self.own.rules(key).scope)
            for ((_, which), name), status in self._saved(self.own.to_save(key), now):
                found.setdefault(key, []).append(checkpoints.named_slice(key, (by, which), name, status))
        return iter(found.items())

    def _saved(
        self, members: AggregateRows, now: float
    ) -> Iterator[tuple[tuple[Any, str], VerticalPodAutoscalerCheckpointStatus]]:
        for part, known in self.merged(members):
            take_out_open_windows(known.memory, self.model.containers, members, part, now)
            yield from zip(members.names[part], checkpoints.checkpoints(known, now), strict=True)

    def restore(self, checkpoint: VerticalPodAutoscalerCheckpoint, now: float) -> None:
        """Take what a checkpoint has into its VPA. ValueError says why it cannot be used; KeyError: no such VPA."""
        vpa = self._vpas[VpaKey(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name)]
        if checkpoints.is_of_slice(checkpoint):
            self.own.restore(checkpoint, now)
            return
        (row,) = self.model.aggregates.new(1, now).tolist()
        name = checkpoint.spec.container_name
        self._configure(vpa.policy, {name: row})
        try:
            checkpoints.restore(self.model.aggregates, row, checkpoint.status, now)
        except ValueError:
            self.model.aggregates.free(np.array([row]))
            raise
        vpa.restored = {**vpa.restored, name: (*vpa.restored.get(name, ()), row)}
