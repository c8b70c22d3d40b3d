"""Label and field selectors, matched against plain maps; `api/selector_text` reads them from texts."""

from collections.abc import Iterable, Mapping

import msgspec

MOST_TERMS = 1000
"""Requirements of a label selector and the values in them, or terms of a field selector: every object is compared with
each of them."""


class SelectorError(ValueError):
    """The text is no selector; the message says where it goes wrong."""


class Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case "In":
                return present and labels[self.key] in self.values
            case "NotIn":
                return not present or labels[self.key] not in self.values
            case "Exists":
                return present
            case "DoesNotExist":
                return not present
            case _:
                return present and self._compares(labels[self.key])

    def _compares(self, text: str) -> bool:
        try:
            value, bound = int(text), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return value > bound if self.operator == "Gt" else value < bound


class Matcher:
    """Requirements, prepared to be matched often: each match takes as long as there are labels, however many
    requirements there are."""

    __slots__ = ("_compared", "_refused", "_wanted")

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._wanted: dict[str, frozenset[str] | None] = {}  # None: with any value
        self._refused: dict[str, frozenset[str] | None] = {}
        self._compared: list[Requirement] = []
        for requirement in requirements:
            self._add(requirement)

    def _add(self, requirement: Requirement) -> None:
        key, values = requirement.key, frozenset(requirement.values)
        match requirement.operator:
            case "In":
                before = self._wanted.get(key)
                self._wanted[key] = values if before is None else before & values
            case "Exists":
                self._wanted.setdefault(key, None)
            case "NotIn":
                before = self._refused.get(key, frozenset())
                self._refused[key] = None if before is None else before | values
            case "DoesNotExist":
                self._refused[key] = None
            case _:
                self._compared.append(requirement)

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._wanted) > len(labels):
            return False
        for key, values in self._wanted.items():
            if key not in labels or (values is not None and labels[key] not in values):
                return False
        if self._refused:
            for key, value in labels.items():
                if key in self._refused and ((refused := self._refused[key]) is None or value in refused):
                    return False
        return all(requirement.matches(labels) for requirement in self._compared)


class Selector(msgspec.Struct, frozen=True):
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


def as_text(selector: Selector) -> str:
    """The selector as it is written in a query."""
    return ",".join(map(_term, selector.requirements))


def _term(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            return f"{key} {requirement.operator.lower()} ({','.join(values)})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {'>' if requirement.operator == 'Gt' else '<'} {values[0]}"


def from_map(labels: Mapping[str, str]) -> Selector:
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items())))


class FieldSelector(msgspec.Struct, frozen=True):
    """`(path, value, equal)` terms over the fields a kind lets itself be selected by."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(path, "") == value) is equal for path, value, equal in self.terms)

    def exact(self, path: str) -> str | None:
        """The value that `path` must have, if the selector says so."""
        return next((value for term, value, equal in self.terms if term == path and equal), None)

    def __bool__(self) -> bool:
        return bool(self.terms)
