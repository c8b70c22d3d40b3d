"""Paths into a document, as printer columns, scales and selectable fields write them: `.spec.items[?(@.a=="b")].c`.

The part of kubectl's JSONPath that leads somewhere: members, indices and slices, wildcards, `..`, filters that compare
a member with a value, unions of names.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from podfit.core.bounded_cache import cached_where_short

Step = Callable[[Iterable[Any]], list[Any]]
LONGEST = 1024
"""Letters of a path. Upstream has no bound; each object of a list is asked with each path."""
MOST_BROAD = 4
"""Steps of a path that lead to many values: `..`, `*`, slices, filters; within a filter there is none."""
MOST_VALUES = 20_000
"""To which a step may lead; a path that comes to more leads nowhere."""

_TOKEN = re.compile(
    r"""(?P<deep>\.\.)(?P<deepname>[\w\\.-]+?(?=[.\[]|$)|\*)?
    |\.(?P<name>(?:\\.|[^.\[\]\\\s()'"=<>!?@])+)
    |\[(?P<index>-?\d+)\]
    |\[(?P<slice>-?\d*:-?\d*(?::-?\d*)?)\]
    |\[(?P<star>\*)\]
    |\[\?\((?P<filter>(?:[^()]|\([^()]*\))*)\)\]
    |\[(?P<names>'[^']*'(?:,'[^']*')*|"[^"]*"(?:,"[^"]*")*)\]""",
    re.VERBOSE,
)
_BROAD = re.compile(r"\.\.|\*|\[\?|\[-?\d*:")
_FILTER = re.compile(r"""\s*+(?P<left>@[^=!<>~\s]*+)\s*+(?:(?P<op>==|!=|<=|>=|<|>)(?P<right>.+))?""")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")


class PathError(ValueError):
    """The path cannot be read."""


@cached_where_short(1024, longest=1024)
def parse(path: str) -> tuple[Step, ...]:
    """Raises PathError that says where, or which bound is exceeded."""
    if len(path) > LONGEST:
        raise PathError(f"is an invalid path: it is longer than {LONGEST} characters")
    if len(_BROAD.findall(path)) > MOST_BROAD:
        raise PathError(f"is an invalid path: more than {MOST_BROAD} of its steps are `..`, `*`, slices or filters")
    text = path.removeprefix("{").removesuffix("}") if path.startswith("{") else path
    text = text.removeprefix("$")
    if text == ".":
        return ()
    if not text.startswith((".", "[")):
        raise PathError(f"is an invalid path: does not begin with a dot: {path}")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise PathError(f"is an invalid path: cannot be read from {text[at:]!r} on")
        steps += _steps(token)
        at = token.end()
    return tuple(steps)


def find(document: Any, path: str) -> list[Any]:
    """Everything that the path leads to. What two ways lead to is there once."""
    found = [document]
    for step in parse(path):
        found = step(found)
        if len(found) > MOST_VALUES:
            return []
    return found


def led_to(document: Any, path: str) -> list[Any]:
    """As `find`; nothing by a path of a definition that was taken when there were no bounds."""
    try:
        return find(document, path)
    except PathError:
        return []


def _steps(token: re.Match[str]) -> list[Step]:
    kind = token.lastgroup
    if token["deep"]:
        inner = token["deepname"]
        return [_descend, *([] if inner in (None, "*") else [_named((_plain(inner),))])]
    match kind:
        case "name":
            return [_children if token["name"] == "*" else _named((_plain(token["name"]),))]
        case "index":
            return [_at(int(token["index"]))]
        case "slice":
            return [_sliced(slice(*(int(part) if part else None for part in token["slice"].split(":"))))]
        case "star":
            return [_children]
        case "filter":
            return [_filtered(token["filter"])]
    return [_named(tuple(one or other for one, other in _QUOTED.findall(token["names"])))]


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _named(names: tuple[str, ...]) -> Step:
    return lambda nodes: [node[name] for node in nodes if isinstance(node, dict) for name in names if name in node]


def _at(index: int) -> Step:
    return lambda nodes: [node[index] for node in nodes if isinstance(node, list) and -len(node) <= index < len(node)]


def _sliced(part: slice) -> Step:
    return lambda nodes: [inner for node in nodes if isinstance(node, list) for inner in node[part]]


def _children(nodes: Iterable[Any]) -> list[Any]:
    return [inner for node in nodes for inner in _inside(node)]


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descend(nodes: Iterable[Any]) -> list[Any]:
    seen = set[int]()
    return [inner for node in nodes for inner in _below(node, seen)]


def _below(value: Any, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, dict | list):
        if id(value) in seen:
            return
        seen.add(id(value))
    yield value
    for inner in _inside(value):
        yield from _below(inner, seen)


def _filtered(text: str) -> Step:
    parts = _FILTER.fullmatch(text)
    if parts is None:
        raise PathError(f"is an invalid path: the filter {text!r} cannot be read")
    left = parts["left"][1:]
    if _BROAD.search(left):
        raise PathError(f"is an invalid path: the filter {text!r} compares with more than one value of an item")
    if left:
        parse(left)
    if parts["op"] and not parts["right"].strip():
        raise PathError(f"is an invalid path: the filter {text!r} cannot be read")
    operator, right = parts["op"], _value(parts["right"] and parts["right"].strip())

    def passes(item: Any) -> bool:
        values = find(item, left) if left else [item]
        return any(_compare(value, operator, right) for value in values)

    return lambda nodes: [inner for node in nodes if isinstance(node, list) for inner in node if passes(inner)]


def _value(text: str | None) -> Any:
    if text is None:
        return None
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise PathError(f"is an invalid path: {text!r} is no value to compare with") from None


def _compare(value: Any, operator: str | None, other: Any) -> bool:
    if operator is None:
        return True
    if operator in ("==", "!="):
        return (value == other and type(value) is type(other)) is (operator == "==")
    comparable = (isinstance(value, str) and isinstance(other, str)) or (
        isinstance(value, int | float) and isinstance(other, int | float)
    )
    if not comparable:
        return False
    return bool({"<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other}[operator])
