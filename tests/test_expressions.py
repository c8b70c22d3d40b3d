"""No regular expression of the package takes more than linear time, whatever text it is given.

All of them are found in the source and pumped: the beginning of a text that matches, then a piece of it thousands of
times, then an end that fits nothing. A pattern that tries every division of such a text takes seconds for it.
"""

import ast
import importlib
import re
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import podfit
from support.turns import cpu_ms

op: Any = importlib.import_module("re._constants")  # Python's own tree of a pattern; it has no types
parser: Any = importlib.import_module("re._parser")
SOURCE = Path(podfit.__file__).parent
METHODS = ("match", "fullmatch", "search", "split", "sub", "findall", "finditer")
PUMPED = 4000
MOST_MS = 20.0  # linear ones take less than a millisecond, quadratic ones 100 and more
ENDS = ("\0", "\n\0")
GIVEN = {("podfit.api.meta.validation.names", "form"), ("podfit.api.meta.validation.names", "f'({part}[./])*{part}'")}
"""Those that a function is given; the constants that it is given are found by their names, `_…FORM`, or below."""
OTHERS = {"podfit.api.meta.validation.names": r"([a-z0-9]([-a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-a-z0-9]*[a-z0-9])?"}


class Expression(msgspec.Struct, frozen=True):
    module: str
    pattern: str | bytes
    flags: int
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.module} {self.pattern!r}"


class Uses(msgspec.Struct):
    """What a module does with expressions: `re.METHOD(…)`, and the methods that it calls of what has a name."""

    calls: list[tuple[str, ast.Call]] = []
    named: list[tuple[str, str]] = []

    @staticmethod
    def of(tree: ast.Module) -> "Uses":
        uses = Uses()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if method in METHODS:
                    uses.calls.append((method, node))
                case ast.Attribute(value=ast.Name(id=name), attr=method) if method in METHODS:
                    uses.named.append((name, method))
        return uses


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if re.search(r"^import re$", text, re.MULTILINE):
            name = ".".join(("podfit", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
            yield name, ast.parse(text)


def expressions() -> Iterator[Expression]:
    """The methods count that are called of a name wherever: a compiled pattern may be imported."""
    uses = {name: Uses.of(tree) for name, tree in modules()}
    usage: dict[str, set[str]] = {}
    for member, method in (pair for use in uses.values() for pair in use.named):
        usage.setdefault(member, set()).add(method)
    for name, use in uses.items():
        members = vars(importlib.import_module(name))
        for member, value in members.items():
            if isinstance(value, re.Pattern):
                methods = usage.get(member, set()) | {"match"}
                yield Expression(name, value.pattern, value.flags, frozenset(methods))
            elif isinstance(value, str) and member.endswith(("_FORM", "_REASON")):
                yield Expression(name, value, 0, frozenset({"fullmatch"}))
        for method, call in use.calls:
            yield from _inline(name, members, call, method)
        for kept in enclosed(members):
            yield Expression(name, kept.pattern, kept.flags, frozenset({"fullmatch"}))
    for name, pattern in OTHERS.items():
        yield Expression(name, pattern, 0, frozenset({"fullmatch"}))


def enclosed(members: dict[str, Any]) -> Iterator[re.Pattern[Any]]:
    """Those that functions of the module's tables keep."""
    for table in [value for value in members.values() if isinstance(value, dict)]:
        for function in table.values():
            for cell in getattr(function, "__closure__", None) or ():
                if isinstance(cell.cell_contents, re.Pattern):
                    yield cell.cell_contents


def _inline(name: str, members: dict[str, Any], call: ast.Call, method: str) -> Iterator[Expression]:
    source = ast.unparse(call.args[0])
    try:
        pattern = eval(compile(ast.Expression(call.args[0]), name, "eval"), members)
    except NameError:
        assert (name, source) in GIVEN, f"{name}: cannot tell what {source} is; name its constants *_FORM"
        return
    yield Expression(name, pattern, 0, frozenset({method}))


FOUND = list(dict.fromkeys(expressions()))


def sample(parsed: Any, repeats: int) -> str:
    """A text that matches, or nearly: classes by their first member, what is repeated at least so often."""
    made = ""
    for kind, value in parsed:
        match kind:
            case op.LITERAL:
                made += chr(value)
            case op.NOT_LITERAL:
                made += "a" if value != ord("a") else "b"
            case op.ANY:
                made += "a"
            case op.IN:
                made += _member(value)
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                made += sample(value[2], repeats) * max(value[0], min(repeats, value[1]))
            case op.SUBPATTERN:
                made += sample(value[3], repeats)
            case op.ATOMIC_GROUP:
                made += sample(value, repeats)
            case op.BRANCH:
                made += sample(value[1][-1 if repeats > 1 else 0], repeats)
    return made


def _member(members: list[Any]) -> str:
    if members[0][0] is op.NEGATE:
        taken = {value for kind, value in members[1:] if kind is op.LITERAL}
        return next(letter for letter in "a0 x~" if ord(letter) not in taken)
    kind, value = members[0]
    match kind:
        case op.LITERAL:
            return chr(value)
        case op.RANGE:
            return chr(value[0])
    return {op.CATEGORY_DIGIT: "0", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}.get(value, "x")


def pumps(expression: Expression) -> Iterator[str]:
    pattern = expression.pattern.decode() if isinstance(expression.pattern, bytes) else expression.pattern
    parsed = parser.parse(
        pattern, expression.flags & ~re.UNICODE if isinstance(expression.pattern, bytes) else expression.flags
    )
    samples = [sample(parsed, 1), sample(parsed, 2)]
    starts = dict.fromkeys(text[:length] for text in samples for length in range(min(len(text), 14) + 1))
    letters = dict.fromkeys([*"".join(samples), *"a0 .-/"])
    pieces = dict.fromkeys([*letters, *(text[i : i + 2] for text in samples for i in range(len(text) - 1))])
    for start in starts:
        for piece in list(pieces)[:16]:
            for end in ENDS:
                yield start + piece * PUMPED + end


def run(compiled: re.Pattern[Any], method: str, given: Any) -> None:
    arguments = (given[:0], given) if method == "sub" else (given,)
    result = getattr(compiled, method)(*arguments)
    if method == "finditer":
        deque(result, 0)


def slow(expression: Expression) -> str:
    """The beginning of a text that takes long; empty when none does."""
    compiled = re.compile(expression.pattern, expression.flags)
    for text in pumps(expression):
        given: Any = text.encode() if isinstance(expression.pattern, bytes) else text
        for method in expression.methods:
            took = cpu_ms(partial(run, compiled, method, given), most=MOST_MS)
            if took >= MOST_MS:
                return f"{method} of {text[:60]!r}… ({len(text)} letters) takes {took:.0f} ms"
    return ""


def test_all_are_found() -> None:
    assert len(FOUND) > 50
    assert any("core.quantity" in expression.module for expression in FOUND)


@pytest.mark.parametrize("expression", FOUND, ids=str)
def test_no_expression_takes_more_than_linear_time(expression: Expression) -> None:
    assert slow(expression) == ""


@pytest.mark.parametrize("pattern", [r"^\s*(\S+)\s+(in|notin)\s*\(\s*([^()]*)\)\s*$", r"\d+\.?\d*x", r"(\s*x?\s*)y"])
def test_a_slow_one_is_noticed(pattern: str) -> None:
    assert slow(Expression("x", pattern, 0, frozenset({"match"})))
