"""Matches VPAs and pods by an index of the labels that selectors ask for.

Pods of equal labels in a namespace are one group. A selector that asks for a value of a label is looked up by that
label; one that does not (which hardly anybody writes) is compared with the whole namespace.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

from podfit.core.selectors import Requirement, Selector

G = TypeVar("G", bound=Hashable)
N = TypeVar("N", bound=Hashable)
S = TypeVar("S", bound=Hashable)
FEW = 8
Place: TypeAlias = tuple[str, str, str]
"""Namespace, label and value; of those that ask for no value, the label is empty."""


class _Index(Generic[N]):
    """Names by place: most places have one, and a tuple is a quarter of a dict."""

    def __init__(self) -> None:
        self._at: dict[Place, tuple[N, ...] | dict[N, None]] = {}

    def at(self, place: Place) -> Iterable[N]:
        return self._at.get(place, ())

    def add(self, place: Place, name: N) -> None:
        there = self._at.get(place, ())
        if isinstance(there, dict):
            there[name] = None
        elif len(there) < FEW:
            self._at[place] = (*there, name)
        else:
            self._at[place] = dict.fromkeys((*there, name))

    def remove(self, place: Place, name: N) -> None:
        there = self._at[place]
        if isinstance(there, dict):
            del there[name]
        else:
            self._at[place] = tuple(other for other in there if other != name)
        if not self._at[place]:
            del self._at[place]


class Matching(Generic[S, G]):
    """Selectors named by S, groups of labels named by G, each in a namespace."""

    def __init__(self) -> None:
        self._selectors: dict[S, tuple[str, Selector]] = {}
        self._groups: dict[G, tuple[str, Mapping[str, str]]] = {}
        self._selectors_at, self._groups_at = _Index[S](), _Index[G]()

    def add_selector(self, name: S, namespace: str, selector: Selector) -> None:
        self._selectors[name] = namespace, selector
        for place in _asked(namespace, selector):
            self._selectors_at.add(place, name)

    def remove_selector(self, name: S) -> None:
        for place in _asked(*self._selectors.pop(name)):
            self._selectors_at.remove(place, name)

    def add_group(self, name: G, namespace: str, labels: Mapping[str, str]) -> None:
        self._groups[name] = namespace, labels
        for place in _borne(namespace, labels):
            self._groups_at.add(place, name)

    def remove_group(self, name: G) -> None:
        for place in _borne(*self._groups.pop(name)):
            self._groups_at.remove(place, name)

    def selectors_of(self, name: G) -> Iterator[S]:
        """Those that select a group, in the order in which they were added to the places where they are found."""
        namespace, labels = self._groups[name]
        found = {selector: None for place in _borne(namespace, labels) for selector in self._selectors_at.at(place)}
        return (selector for selector in found if self._selectors[selector][1].matches(labels))

    def is_selected(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether any selector selects these labels, of a group or not."""
        places = _borne(namespace, labels)
        return any(self._selectors[name][1].matches(labels) for at in places for name in self._selectors_at.at(at))

    def groups_of(self, name: S) -> Iterator[G]:
        namespace, selector = self._selectors[name]
        found = {group: None for place in _asked(namespace, selector) for group in self._groups_at.at(place)}
        return (group for group in found if selector.matches(self._groups[group][1]))


def _asked(namespace: str, selector: Selector) -> Iterator[Place]:
    """Where the groups of a selector are: under each value of the first label of which it asks for values."""
    for requirement in selector.requirements:
        if _asks_for_values(requirement):
            return ((namespace, requirement.key, value) for value in requirement.values)
    return iter(((namespace, "", ""),))


def _asks_for_values(requirement: Requirement) -> bool:
    return requirement.operator == "In"


def _borne(namespace: str, labels: Mapping[str, str]) -> Iterator[Place]:
    yield namespace, "", ""
    yield from ((namespace, key, value) for key, value in labels.items())
