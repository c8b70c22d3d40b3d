"""Parses label and field selectors from text, with upstream's grammar and error messages.

    labels:   KEY | !KEY | KEY (=|==|!=|<|>) VALUE | KEY (in|notin) (VALUE, …)      joined by commas
    fields:   PATH (=|==|!=) VALUE                                                   joined by commas; \\ escapes , = \\

Whoever lists something may send any text, so it is read in one pass, and it has a bounded number of terms.
"""

import re
from collections.abc import Iterator

from podfit.api.meta.validation.names import label_value, qualified
from podfit.core.fields import FieldError, invalid
from podfit.core.selectors import MOST_TERMS, FieldSelector, Requirement, Selector, SelectorError

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<>\s]+")
_WORDS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_SYMBOLS = ("==", "!=", "=", "!", "(", ")", ",", "<", ">")
_END = ""
_BOUNDS = range(-(2**63), 2**63)
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_PART = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)


def parse_labels(text: str) -> Selector:
    """Read `app=web,tier in (a,b),!old`. SelectorError otherwise."""
    if text.count(",") >= MOST_TERMS:
        raise SelectorError(f"unable to parse requirement: a label selector has at most {MOST_TERMS} terms and values")
    return Selector(tuple(_Labels(text).requirements()))


class _Labels:
    """The tokens of a label selector, read one after the other; the end is an empty one."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), _END]
        self._place = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._place]

    def _take(self) -> str:
        token = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def requirements(self) -> Iterator[Requirement]:
        while self._next != _END:
            if not (_is_name(self._next) or self._next == "!"):
                raise SelectorError(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            if (token := self._take()) == _END:
                return
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            if not (_is_name(self._next) or self._next == "!"):
                raise SelectorError(f"found '{self._next}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._take()
        negated = key == "!"
        if negated:
            key = self._take()
        if not _is_name(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := qualified(key):
            raise SelectorError(str(invalid("<nil>", key, "; ".join(problems))))
        if negated:
            return Requirement(key, "DoesNotExist")
        return Requirement(key, "Exists") if self._next in (_END, ",") else self._compared(key)

    def _compared(self, key: str) -> Requirement:
        word = self._take()
        if word not in _WORDS:
            raise SelectorError(f"found '{word}', expected: {_OPERATORS}")
        operator = _WORDS[word]
        values = self._values() if word in ("in", "notin") else (self._value(),)
        if operator in ("Gt", "Lt"):
            _check(_bound_problems(values[0]))
        _check(error for index, value in enumerate(values) for error in _value_problems(key, index, value))
        return Requirement(key, operator, values)

    def _value(self) -> str:
        if self._next in (_END, ","):
            return ""
        value = self._take()
        if not _is_name(value):
            raise SelectorError(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> tuple[str, ...]:
        if (token := self._take()) != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        if self._next != ")" and self._next != "," and not _is_name(self._next):
            raise SelectorError(f"found '{self._next}', expected: ',', ')' or identifier")
        found: set[str] = set()
        while True:
            found.add(self._take() if _is_name(self._next) else "")
            token = self._take()
            if token == ")":
                return tuple(sorted(found))
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")


def _is_name(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _bound_problems(value: str) -> Iterator[FieldError]:
    if not _NUMBER.fullmatch(value) or int(value) not in _BOUNDS:
        yield invalid("values[0]", value, "for 'Gt', 'Lt' operators, the value must be an integer")


def _value_problems(key: str, index: int, value: str) -> Iterator[FieldError]:
    if problems := label_value(value):
        yield invalid(f"values[{index}][{key}]", value, "; ".join(problems))


def _check(errors: Iterator[FieldError]) -> None:
    texts = [str(error) for error in errors]
    if texts:
        raise SelectorError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def parse_fields(text: str) -> FieldSelector:
    """Read `spec.nodeName=n1,status.phase!=Failed`, its terms sorted. SelectorError otherwise."""
    if text.count(",") >= MOST_TERMS:
        raise SelectorError(f"invalid selector: a field selector has at most {MOST_TERMS} terms")
    terms = []
    for part in sorted(filter(None, _parts(text))):
        found = _TERM.fullmatch(part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((found[1], _unescaped(found[3]), found[2] != "!="))
    return FieldSelector(tuple(terms))


def _parts(text: str) -> Iterator[str]:
    """What is between commas that no backslash escapes."""
    start = 0
    while start <= len(text):
        part = _PART.match(text, start)
        assert part is not None  # it matches the empty text
        yield part[0]
        start = part.end() + 1


def _unescaped(value: str) -> str:
    """A value without the backslashes before `\\`, `,` and `=`, which cannot stand there without one."""
    letters, escaped = [], False
    for letter in value:
        if escaped:
            if letter not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{letter}")
            letters.append(letter)
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {letter}")
        else:
            letters.append(letter)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(letters)
