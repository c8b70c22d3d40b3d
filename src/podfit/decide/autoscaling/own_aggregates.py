"""Aggregates of a VPA's own: of its slices, and of its pods as a whole, beside those that pods of equal labels share.

    container of a pod ─▶ its aggregate (by labels)
          └ follower ───▶ aggregate of (VPA, slice, container)          each sample counts for both
    sum of a pod's containers ─▶ aggregate of (VPA, slice, WHOLE)        slice EVERY_SLICE is all pods

A slice whose pods are gone stays known until its samples have expired, or another needs its room: at most MOST_SLICES
of a VPA, and a pod counts for the slices of at most MOST_VPAS of those that select it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, VerticalPodAutoscalerCheckpoint
from podfit.decide.autoscaling import checkpoints
from podfit.decide.autoscaling.container_view import WHOLE
from podfit.decide.autoscaling.merged_rows import AggregateRows
from podfit.decide.autoscaling.model import NOBODY, Model
from podfit.decide.autoscaling.policies import Override
from podfit.decide.autoscaling.scope import EVERY_SLICE, NO_RULES, PodFacts, Rules, slice_of
from podfit.decide.autoscaling.slices import MOST_SLICES
from podfit.decide.autoscaling.tracked import PodKey, VpaKey

MOST_VPAS = 4
MOST_SAVED = 5000
"""Checkpoints of a VPA's slices: a pod of a hundred containers would bring a hundred with each value of its label."""
SAVED_AT_ONCE = 50
"""Slices of a VPA whose checkpoints are written in one pass; the others follow in the next ones."""
Configure: TypeAlias = Callable[[PodResourcePolicy | None, Mapping[str, int]], None]
Overrides: TypeAlias = Callable[[PodResourcePolicy | None, Iterable[str]], Mapping[str, Override]]


class _Slice:
    """Rows by container, and how many pods of it live."""

    __slots__ = ("living", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.living = 0


class _Vpa:
    """`gone` are slices without living pods, those that are so longest first; `left` counts the pods of slices for
    which there is no room.
    """

    __slots__ = ("gone", "left", "policy", "rules", "saved", "slices")

    def __init__(self, rules: Rules, policy: PodResourcePolicy | None) -> None:
        self.rules, self.policy = rules, policy
        self.slices: dict[str, _Slice] = {}
        self.gone: dict[str, None] = {}
        self.left: dict[str, int] = {}
        self.saved = 0


class _Link(NamedTuple):
    """`slots` are followers that belong to the pod; `there` says whether its slice had room."""

    vpa: VpaKey
    slice: str
    slots: NDArray[np.intp]
    there: bool


class OwnAggregates:
    """`configure` and `overrides` say what a policy has of rows and of estimates."""

    def __init__(self, model: Model, configure: Configure, overrides: Overrides) -> None:
        self._model, self._configure, self._overrides = model, configure, overrides
        self._vpas: dict[VpaKey, _Vpa] = {}
        self._links: dict[PodKey, list[_Link]] = {}
        self._heads: dict[PodKey, int] = {}

    def __bool__(self) -> bool:
        return bool(self._vpas)

    # ------------------------------------------------------------ VPAs

    def rules(self, key: VpaKey) -> Rules:
        own = self._vpas.get(key)
        return own.rules if own is not None else NO_RULES

    def set_vpa(self, key: VpaKey, rules: Rules, policy: PodResourcePolicy | None) -> None:
        """`policy` is of its containers. Its pods are linked by whoever calls. Other rules begin anew."""
        whole = rules.whole
        policy = policy if whole is None else PodResourcePolicy(container_policies=(whole,))
        before = self._vpas.get(key)
        if before is not None and before.rules.scope == rules.scope and (before.rules.whole is None) == (whole is None):
            before.rules, before.policy = rules, policy
            for known in before.slices.values():
                self._configure(policy, known.rows)
            return
        self.remove_vpa(key)
        if rules.any:
            self._vpas[key] = _Vpa(rules, policy)

    def remove_vpa(self, key: VpaKey) -> None:
        """Pods that were linked to it are to be linked anew."""
        own = self._vpas.pop(key, None)
        rows = [row for known in own.slices.values() for row in known.rows.values()] if own is not None else []
        self._model.aggregates.free(np.array(rows, dtype=np.intp))

    # ------------------------------------------------------------ pods

    def link(self, pod: PodKey, facts: PodFacts, slots: Mapping[str, int], vpas: Iterable[VpaKey], now: float) -> None:
        """A pod, with the slots of its containers, is selected by these VPAs; it was not linked, or unlinked."""
        links = []
        for key in [key for key in vpas if key in self._vpas][:MOST_VPAS]:
            own = self._vpas[key]
            if own.rules.whole is not None:
                links.append(_Link(key, EVERY_SLICE, self._follow(own, EVERY_SLICE, pod, slots, now), there=True))
            name = slice_of(own.rules.scope, facts)
            if name == EVERY_SLICE:
                continue
            if there := self._has_room(own, name):
                links.append(_Link(key, name, self._follow(own, name, pod, slots, now), there=True))
            else:
                own.left[name] = own.left.get(name, 0) + 1
                links.append(_Link(key, name, np.empty(0, dtype=np.intp), there=there))
        if links:
            self._links[pod] = links

    def unlink(self, pod: PodKey, slots: Iterable[int]) -> None:
        """Before its containers change, or are gone."""
        table = self._model.containers
        for link in self._links.pop(pod, ()):
            table.free(link.slots)
            own = self._vpas.get(link.vpa)
            if own is not None:
                _leave(own, link)
        self._heads.pop(pod, None)
        table.follower[np.array(list(slots), dtype=np.intp)] = NOBODY

    def waiting(self) -> list[PodKey]:
        """Pods of slices that had no room, and of whose VPA there is some now."""
        return [
            pod
            for pod, links in self._links.items()
            if any(not link.there and self._makes_room(link.vpa) for link in links)
        ]

    def _makes_room(self, key: VpaKey) -> bool:
        own = self._vpas.get(key)
        return own is not None and (bool(own.gone) or not _is_full(own))

    def whole(self, pod: PodKey) -> int | None:
        """The slot that counts what a pod uses as a whole; None where nobody asks for it."""
        return self._heads.get(pod)

    def _follow(self, own: _Vpa, name: str, pod: PodKey, slots: Mapping[str, int], now: float) -> NDArray[np.intp]:
        names = (WHOLE,) if own.rules.whole is not None else tuple(slots)
        known = self._slice(own, name, names, now)
        known.living += 1
        own.gone.pop(name, None)
        table = self._model.containers
        taken = table.new(np.array([known.rows[container] for container in names], dtype=np.intp))
        for container, slot in zip(names, taken.tolist(), strict=True):
            head = self._heads.get(pod) if container == WHOLE else slots[container]
            if head is None:
                self._heads[pod] = slot
            else:
                table.follower[slot], table.follower[head] = table.follower[head], slot
        return taken

    def _slice(self, own: _Vpa, name: str, containers: Iterable[str], now: float) -> _Slice:
        known = own.slices.setdefault(name, _Slice())
        new = [container for container in containers if container not in known.rows]
        rows = dict(zip(new, self._model.aggregates.new(len(new), now).tolist(), strict=True))
        known.rows |= rows
        self._configure(own.policy, rows)
        return known

    def _has_room(self, own: _Vpa, name: str) -> bool:
        """Whether a slice is there or can be made, in the place of one whose pods are gone where it must."""
        if name in own.slices or not _is_full(own):
            return True
        oldest = next(iter(own.gone), None)
        if oldest is None:
            return False
        self._drop(own, oldest)
        return True

    def _drop(self, own: _Vpa, name: str) -> None:
        own.gone.pop(name, None)
        rows = list(own.slices.pop(name).rows.values())
        self._model.aggregates.free(np.array(rows, dtype=np.intp))

    def forget_ended(self, ended: NDArray[np.bool_]) -> int:
        """Slices whose pods are gone and of which all rows are `ended`; says how many."""
        dropped = 0
        for own in self._vpas.values():
            for name in [name for name in own.gone if all(ended[row] for row in own.slices[name].rows.values())]:
                self._drop(own, name)
                dropped += 1
        return dropped

    # ------------------------------------------------------------ passes

    def left(self, key: VpaKey) -> int:
        """Slices of a VPA without room."""
        own = self._vpas.get(key)
        return len(own.left) if own is not None else 0

    def policy(self, key: VpaKey) -> PodResourcePolicy | None:
        return self._vpas[key].policy

    def members(self, key: VpaKey, only: Collection[str] | None = None) -> AggregateRows:
        """The members of all its slices, or of these; named by VPA and slice."""
        own = self._vpas.get(key)
        if own is None:
            return AggregateRows()
        return self._members(key, own, [name for name in only or own.slices if name in own.slices])

    def _members(self, key: VpaKey, own: _Vpa, names: list[str]) -> AggregateRows:
        found = AggregateRows()
        containers = {container for name in names for container in own.slices[name].rows}
        overrides = self._overrides(own.policy, containers)
        for name in names:
            rows = own.slices[name].rows
            found.add((key, name), {container: (row,) for container, row in rows.items()}, overrides)
        return found

    # ------------------------------------------------------------ checkpoints

    def to_save(self, key: VpaKey) -> AggregateRows:
        """What is saved of the slices whose turn it is; at most MOST_SAVED are ever saved."""
        own = self._vpas.get(key)
        if own is None:
            return AggregateRows()
        names = _saved(own)
        begin = own.saved % len(names) if names else 0
        turn = [*names[begin:], *names[:begin]][:SAVED_AT_ONCE]
        own.saved = begin + len(turn)
        return self._members(key, own, turn)

    def knows(self, checkpoint: VerticalPodAutoscalerCheckpoint) -> bool:
        """Whether a slice's checkpoint is of one that its VPA has."""
        own = self._vpas.get(VpaKey(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name))
        aggregation, name = checkpoints.slice_named(checkpoint)
        return own is not None and str(own.rules.scope) == aggregation and name in own.slices

    def restore(self, checkpoint: VerticalPodAutoscalerCheckpoint, now: float) -> None:
        """ValueError says why it cannot be used."""
        own = self._vpas.get(VpaKey(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name))
        aggregation, name = checkpoints.slice_named(checkpoint)
        container = checkpoint.spec.container_name
        if own is None or str(own.rules.scope) != aggregation:
            raise ValueError(f"its VPA has no aggregation {aggregation}")
        if (container == WHOLE) != (own.rules.whole is not None):
            raise ValueError("its VPA does not size what it is of")
        if not self._has_room(own, name):
            raise ValueError(f"its VPA has {MOST_SLICES} slices")
        known = own.slices.get(name)
        if known is not None and container in known.rows and self._model.aggregates.count[known.rows[container]]:
            raise ValueError("its slice has samples already")
        known = self._slice(own, name, (container,), now)
        if not known.living:
            own.gone[name] = None
        checkpoints.restore_slice(self._model.aggregates, known.rows[container], checkpoint.status, now)


def _saved(own: _Vpa) -> list[str]:
    """Those of its slices, the oldest first, that have checkpoints."""
    sums = accumulate(len(known.rows) for known in own.slices.values())
    return [name for name, rows in zip(own.slices, sums, strict=True) if rows <= MOST_SAVED]


def _is_full(own: _Vpa) -> bool:
    return len(own.slices) > MOST_SLICES - (EVERY_SLICE not in own.slices)


def _leave(own: _Vpa, link: _Link) -> None:
    if not link.there:
        if (pods := own.left.pop(link.slice, 0) - 1) > 0:
            own.left[link.slice] = pods
    elif (known := own.slices.get(link.slice)) is not None:
        known.living -= 1
        if not known.living and link.slice != EVERY_SLICE:
            own.gone[link.slice] = None
