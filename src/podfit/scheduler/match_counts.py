"""Match counts: how many pods of a selector are on each node, kept up as pods come and go.

Topology spread asks it for every pod of a workload. A selector is counted through when it is asked for first, unless no
pod has its label, as when the workload is new; from then on a pod that comes or goes is compared with the selectors
that are kept under one of its labels, mostly one.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from podfit.api.core.v1.pods.types import Pod
from podfit.core.selectors import Requirement
from podfit.decide.placement.spread import counts_for

MOST_SELECTORS = 1024
"""Those that are kept up; of more, the one that was not asked for the longest is forgotten."""

Selected = tuple[str, tuple[Requirement, ...]]
"""Namespace and selector."""
_Label = tuple[str, str, str]
"""Namespace, key and value of a label that all pods of a selector have; no key where there is none."""
_NOBODY: Mapping[str, int] = MappingProxyType({})


class MatchCounts:
    def __init__(self, placed: Callable[[], Iterable[tuple[Pod, str]]]) -> None:
        """`placed` gives every pod that counts, with its node."""
        self._placed = placed
        self._counts: OrderedDict[Selected, dict[str, int]] = OrderedDict()
        self._by_label: dict[_Label, list[Selected]] = {}
        self._label_of: dict[Selected, _Label] = {}
        self._bearers: Counter[_Label] = Counter()  # how many pods have a label

    def of(self, namespace: str, selector: tuple[Requirement, ...] | None) -> Mapping[str, int]:
        """The counts by node, only those that have some. It is the same mapping for as long as it is kept up: hold it
        and compare.

        An empty selector counts nobody, as in `decide.placement.spread.matching`.
        """
        if not selector:
            return _NOBODY
        selected = namespace, selector
        counts = self._counts.get(selected)
        if counts is None:
            label = self._label_of[selected] = self._rarest(namespace, selector)
            counts = self._counts[selected] = self._counted(selected, label)
            self._by_label.setdefault(label, []).append(selected)
            if len(self._counts) > MOST_SELECTORS:
                self._forget_oldest()
        else:
            self._counts.move_to_end(selected)
        return counts

    def add(self, pod: Pod, node: str) -> None:
        self._bearers.update(_labels(pod))
        for selected in self._concerned(pod):
            counts = self._counts[selected]
            counts[node] = counts.get(node, 0) + 1

    def remove(self, pod: Pod, node: str) -> None:
        """Removes it as it was when it was added."""
        for label in _labels(pod):
            if self._bearers[label] == 1:
                del self._bearers[label]
            else:
                self._bearers[label] -= 1
        for selected in self._concerned(pod):
            counts = self._counts[selected]
            if counts[node] == 1:
                del counts[node]
            else:
                counts[node] -= 1

    def same(self, old: Pod, new: Pod) -> bool:
        """Whether both count for the same selectors."""
        return old.metadata.labels == new.metadata.labels

    def _concerned(self, pod: Pod) -> Iterator[Selected]:
        if not self._by_label:
            return
        for label in ((pod.metadata.namespace, "", ""), *_labels(pod)):
            for selected in self._by_label.get(label, ()):
                if counts_for(pod, *selected):
                    yield selected

    def _counted(self, selected: Selected, label: _Label) -> dict[str, int]:
        counts: dict[str, int] = {}
        namespace, key, value = label
        if key and label not in self._bearers:
            return counts
        for pod, node in self._placed():
            meta = pod.metadata  # the cheap questions first: all pods of the cluster are asked
            if meta.namespace != namespace or (key and meta.labels.get(key) != value):
                continue
            if counts_for(pod, *selected):
                counts[node] = counts.get(node, 0) + 1
        return counts

    def _rarest(self, namespace: str, selector: tuple[Requirement, ...]) -> _Label:
        """A label that all pods of the selector have, and that the fewest other selectors are kept under."""
        labels = [
            (namespace, wanted.key, wanted.values[0])
            for wanted in selector
            if wanted.operator == "In" and len(wanted.values) == 1
        ]
        return min(labels, key=lambda label: len(self._by_label.get(label, ())), default=(namespace, "", ""))

    def _forget_oldest(self) -> None:
        oldest, _ = self._counts.popitem(last=False)
        label = self._label_of.pop(oldest)
        self._by_label[label].remove(oldest)
        if not self._by_label[label]:
            del self._by_label[label]


def _labels(pod: Pod) -> Iterator[_Label]:
    namespace = pod.metadata.namespace
    return ((namespace, key, value) for key, value in pod.metadata.labels.items())
