"""The CEL tokens and syntax tree. Every node knows its position in the text, for error messages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST = 100_000
"""Code points of an expression."""
DEEPEST = 250
"""Levels of a tree."""
STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_TOKEN = re.compile(
    r"(?P<blank>[\t\n\f\r ]+|//[^\n]*)"
    r"|(?P<text>[bB]?[rR]?(?:'''|\"\"\"|'|\")|[rR][bB](?:'''|\"\"\"|'|\"))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>0[xX][0-9A-Fa-f]+[uU]?|[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
    r"|[0-9]+[uU]?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])"
)
_ENDS = {
    "'": re.compile(r"(?s:[^\\\n\r']|\\.)*+'"),
    '"': re.compile(r'(?s:[^\\\n\r"]|\\.)*+"'),
    "'''": re.compile(r"(?s:[^\\']|\\.|'(?!''))*+'''"),
    '"""': re.compile(r'(?s:[^\\"]|\\.|"(?!""))*+"""'),
}
_RAW_ENDS = {
    "'": re.compile(r"[^\n\r']*+'"),
    '"': re.compile(r'[^\n\r"]*+"'),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'''"),
    '"""': re.compile(r'(?:[^"]|"(?!""))*+"""'),
}
_ESCAPE = re.compile(r"\\(?:[xX][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
    "`": "`",
}


class ExpressionError(Exception):
    """What is wrong at which offset of the text; -1 where it is no one place."""

    def __init__(self, text: str, place: int = -1) -> None:
        super().__init__(text)
        self.text, self.place = text, place


class UInt(int):
    """An unsigned number."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # name, number, text, sign or end
    text: str
    place: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class Node:
    """`number` tells the nodes of one tree apart, counting from 0."""

    number: int
    place: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Ident(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    operand: Node
    member: str
    tested: bool = False
    """Of `has(…)`."""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """Of an operator, a function, or, with `target`, a method."""

    name: str
    target: Node | None
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Items(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entries(Node):
    entries: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Fold(Node):
    """A macro over a list or map: `names` are its one or two variables, `args` what it asks or makes for each."""

    macro: str
    over: Node
    names: tuple[str, ...]
    args: tuple[Node, ...]


def error_text(source: str, errors: list[ExpressionError]) -> str:
    """Errors as upstream prints them: place, text, the line and a mark below."""
    return "\n".join(_shown(source, error) for error in sorted(errors, key=lambda error: error.place)[:100])


def _shown(source: str, error: ExpressionError) -> str:
    if error.place < 0:
        return f"ERROR: <input>:-1:0: {error.text}"
    start = source.rfind("\n", 0, error.place) + 1
    line, column = source.count("\n", 0, error.place) + 1, error.place - start
    end = source.find("\n", start)
    text = source[start : len(source) if end < 0 else end].replace("\t", " ")
    return f"ERROR: <input>:{line}:{column + 1}: {error.text}\n | {text}\n | {'.' * column}^"


def tokens(source: str) -> Iterator[Token]:
    """Raises ExpressionError."""
    if len(source) > LONGEST:
        raise ExpressionError(f"expression code point size exceeds limit: size: {len(source)}, limit {LONGEST}")
    place = 0
    while place < len(source):
        found = _TOKEN.match(source, place)
        if found is None:
            raise ExpressionError(f"Syntax error: token recognition error at: '{source[place]}'", place)
        kind, text = str(found.lastgroup), found[0]
        if kind == "text":
            token = _text(source, place, text)
            yield token
            place += len(token.text)
            continue
        if kind != "blank":
            yield Token(kind, text, place, _number(text, place) if kind == "number" else None)
        place = found.end()
    yield Token("end", "<EOF>", place)


def _number(text: str, place: int) -> Any:
    if text[-1] in "uU":
        value = int(text[:-1], 0 if text[:2] in ("0x", "0X") else 10)
        if value >= 2**64:
            raise ExpressionError("invalid uint literal", place)
        return UInt(value)
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text.isdigit():
        if len(text) > 20:
            raise ExpressionError("invalid int literal", place)
        return int(text)
    return float(text)


def _text(source: str, place: int, opening: str) -> Token:
    quote = opening.lstrip("bBrR")
    prefix = opening[: -len(quote)].lower()
    ends = (_RAW_ENDS if "r" in prefix else _ENDS)[quote]
    found = ends.match(source, place + len(opening))
    if found is None:
        raise ExpressionError(f"Syntax error: token recognition error at: '{source[place : place + 20]}'", place)
    inner = found[0][: -len(quote)].replace("\r\n", "\n").replace("\r", "\n")
    in_bytes = "b" in prefix
    value: Any = inner if "r" in prefix else _ESCAPE.sub(lambda match: _unescaped(match[0], place, in_bytes), inner)
    if in_bytes:
        value = value.encode("utf-8", "surrogateescape")
    return Token("text", opening + found[0], place, value)


def _unescaped(text: str, place: int, in_bytes: bool) -> str:
    letter = text[1]
    if letter in _ESCAPED and len(text) == 2:
        return _ESCAPED[letter]
    if len(text) == 2:
        raise ExpressionError(f"Syntax error: token recognition error at: '{text}'", place)
    point = int(text[1:], 8) if letter.isdigit() else int(f"0x{text[2:]}", 0)
    if in_bytes and letter in "uU":
        raise ExpressionError("invalid bytes literal", place)
    if in_bytes:
        return chr(point) if point < 128 else bytes([point]).decode("utf-8", "surrogateescape")
    if point >= 0x110000 or 0xD800 <= point < 0xE000:
        raise ExpressionError("invalid string literal", place)
    return chr(point)
