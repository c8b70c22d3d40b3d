"""Label and field selectors: parsed once, matched against plain maps."""

import re
from collections.abc import Iterable, Mapping

import msgspec

_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(\s*([^()]*)\)\s*$")
_KEY = re.compile(r"([a-z0-9A-Z.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


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


def from_map(labels: Mapping[str, str]) -> Selector:
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items())))


def _split(text: str) -> Iterable[str]:
    """The commas outside parentheses."""
    depth, start = 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    if text[start:].strip() or start:
        yield text[start:]


def parse_labels(text: str) -> Selector:
    """Read `app=web,tier in (a,b),!old`. SelectorError otherwise."""
    return Selector(tuple(_requirement(part) for part in _split(text)))


def _requirement(part: str) -> Requirement:
    part = part.strip()
    if match := _SET.match(part):
        key, word, values = match.groups()
        operator = "In" if word == "in" else "NotIn"
        requirement = Requirement(key, operator, tuple(sorted(value.strip() for value in values.split(","))))
    elif "!=" in part:
        key, value = part.split("!=", 1)
        requirement = Requirement(key.strip(), "NotIn", (value.strip(),))
    elif "=" in part:
        key, value = re.split("==?", part, maxsplit=1)
        requirement = Requirement(key.strip(), "In", (value.strip(),))
    elif bound := re.match(r"^([^\s<>]+)\s*([<>])\s*(\S*)$", part):
        if not re.fullmatch(r"-?\d{1,18}", bound[3]):
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise SelectorError(f'unable to parse requirement: values[0]: Invalid value: "{bound[3]}": {text}')
        requirement = Requirement(bound[1], "Gt" if bound[2] == ">" else "Lt", (bound[3],))
    else:
        negated = part.startswith("!")
        key, *words = part.removeprefix("!").split() or [""]
        if key.startswith("!"):
            raise SelectorError("unable to parse requirement: found '!', expected: identifier")
        if words:
            known = "in, notin, =, ==, !=, gt, lt"
            raise SelectorError(f"unable to parse requirement: found {words[0]!r}, expected: {known}")
        requirement = Requirement(key, "DoesNotExist" if negated else "Exists")
    if not _KEY.fullmatch(requirement.key):
        raise SelectorError(f"unable to parse requirement: invalid label key {requirement.key!r} in {part!r}")
    return requirement


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


def parse_fields(text: str) -> FieldSelector:
    """Read `spec.nodeName=n1,status.phase!=Failed`. SelectorError otherwise."""
    terms = []
    for part in filter(None, text.split(",")):
        match = re.match(r"^([A-Za-z0-9_.\[\]-]+)\s*(!=|==|=)\s*(.*)$", part)
        if not match:
            raise SelectorError(f"invalid selector: {text!r}; can't understand {part!r}")
        terms.append((match[1], match[3], match[2] != "!="))
    return FieldSelector(tuple(terms))
