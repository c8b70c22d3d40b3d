"""Which autoscalers select the same pods."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from podfit.api.core.v1.pods.types import Pod
from podfit.core.selectors import Matcher, Selector

Key: TypeAlias = tuple[str, str]
"""Namespace and name of an autoscaler."""


class Claims:
    """The selectors of all autoscalers, by a label that they demand where they demand one."""

    def __init__(self) -> None:
        self._labels: dict[Key, tuple[str, str] | None] = {}
        self._matchers: dict[tuple[str, tuple[str, str] | None], dict[Key, Matcher]] = {}

    def claim(self, key: Key, selector: Selector) -> None:
        self.forget(key)
        label = self._labels[key] = demanded_label(selector)
        self._matchers.setdefault((key[0], label), {})[key] = Matcher(selector.requirements)

    def forget(self, key: Key) -> None:
        if key not in self._labels:
            return
        place = key[0], self._labels.pop(key)
        self._matchers[place].pop(key)
        if not self._matchers[place]:
            del self._matchers[place]

    def rivals(self, key: Key, pods: Iterable[Pod]) -> list[Key]:
        """Who selects one of these pods, the autoscaler itself among them; nobody when there is no pod."""
        found: set[Key] = set()
        for labels in {frozenset(pod.metadata.labels.items()) for pod in pods}:
            found.update(self._selecting(key[0], dict(labels)))
        return sorted(found)

    def _selecting(self, namespace: str, labels: dict[str, str]) -> Iterator[Key]:
        for label in (None, *labels.items()):
            for key, matcher in self._matchers.get((namespace, label), {}).items():
                if matcher.matches(labels):
                    yield key


def demanded_label(selector: Selector) -> tuple[str, str] | None:
    """One that every selected object has; None where there is none."""
    exact = (wanted for wanted in selector.requirements if wanted.operator == "In" and len(wanted.values) == 1)
    return next(((wanted.key, wanted.values[0]) for wanted in exact), None)
