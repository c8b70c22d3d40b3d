"""Label and field selectors, matched against plain maps; `api/selector_text` reads them from texts."""

from collections.abc import Mapping

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


class Selector(msgspec.Struct, frozen=True):
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


def as_text(selector: Selector) -> str:
    """As it is written in a query."""
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
