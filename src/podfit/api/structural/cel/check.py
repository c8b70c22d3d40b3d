"""The CEL type checker: the type of each node, and the overloads that each call may be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from podfit.api.structural.cel.library import Overload, overloads
from podfit.api.structural.cel.parse import Parsed, parsed
from podfit.api.structural.cel.patterns import compiled
from podfit.api.structural.cel.syntax import (
    Call,
    Entries,
    ExpressionError,
    Fold,
    Ident,
    Items,
    Literal,
    Node,
    Select,
    UInt,
    error_text,
)
from podfit.api.structural.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Bound,
    Type,
    filled,
    fits,
    list_of,
    loose,
    map_of,
    optional_of,
)
from podfit.api.structural.cel.values import duration, timestamp

_TYPE_NAMES = {
    name: Type("type", (Type(kind),))
    for name, kind in {
        **{name: name for name in ("bool", "bytes", "double", "int", "string", "uint", "list", "map", "type")},
        "null_type": "null",
        "google.protobuf.Timestamp": "timestamp",
        "google.protobuf.Duration": "duration",
    }.items()
}
_READERS: dict[str, Callable[[str], object]] = {"matches": compiled, "duration": duration, "timestamp": timestamp}
_NOWHERE = "(in container '')"
_DEEP = "expression recursion limit exceeded: 250"


@dataclass(slots=True)
class Checked:
    """By the numbers of nodes: types, and the ids of the overloads that a call may be."""

    tree: Parsed
    types: list[Type]
    calls: dict[int, tuple[str, ...]] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    """Names with their namespace, of calls such as `sets.contains(…)`."""

    @property
    def kind(self) -> Type:
        return self.types[self.tree.root.number]


def check(source: str, variables: Mapping[str, Type]) -> Checked | str:
    """What is wrong, in upstream's words, or the types."""
    try:
        tree = parsed(source)
    except ExpressionError as error:
        return error_text(source, [error])
    checker = _Checker(tree, variables)
    try:
        checker.of(tree.root, {})
    except RecursionError:
        return error_text(source, [ExpressionError(_DEEP)])
    return error_text(source, checker.errors) if checker.errors else checker.checked


Scope = Mapping[str, Type]


class _Checker:
    def __init__(self, tree: Parsed, variables: Mapping[str, Type]) -> None:
        self.checked = Checked(tree, [ERROR] * tree.count)
        self.errors: list[ExpressionError] = []
        self.variables = variables

    def _wrong(self, node: Node, text: str) -> Type:
        self.errors.append(ExpressionError(text, node.place))
        return ERROR

    def of(self, node: Node, scope: Scope) -> Type:
        match node:
            case Literal():
                kind = _of_literal(node)
            case Ident():
                kind = self._ident(node, scope)
            case Select():
                kind = self._select(node, scope)
            case Call():
                kind = self._call(node, scope)
            case Items():
                kind = list_of(self._same([self.of(item, scope) for item in node.items], node.items))
            case Entries():
                keys = self._same([self.of(key, scope) for key, _ in node.entries], [key for key, _ in node.entries])
                values = [value for _, value in node.entries]
                kind = map_of(keys, self._same([self.of(value, scope) for value in values], values))
            case Fold():
                kind = self._fold(node, scope)
            case _:
                raise TypeError(type(node))
        self.checked.types[node.number] = kind
        return kind

    def _same(self, kinds: list[Type], nodes: "list[Node] | tuple[Node, ...]") -> Type:
        """Of the parts of a list or map: one type, except that what is loose goes with all."""
        first = next((kind for kind in kinds if not loose(kind)), kinds[0] if kinds else Type("A"))
        for kind, node in zip(kinds, nodes, strict=True):
            if not fits(first, kind, {}):
                return self._wrong(node, f"expected type '{first}' but found '{kind}'")
        return DYN if any(loose(kind) for kind in kinds) else first

    def _ident(self, node: Ident, scope: Scope) -> Type:
        for known in (scope, self.variables, _TYPE_NAMES):
            if node.name in known:
                return known[node.name]
        return self._wrong(node, f"undeclared reference to '{node.name}' {_NOWHERE}")

    def _select(self, node: Select, scope: Scope) -> Type:
        on = self.of(node.operand, scope)
        maybe = node.optional
        if on.name == "optional_type":
            on, maybe = on.parts[0], True
        found = self._member(node, on)
        if node.tested:
            return ERROR if found is ERROR else BOOL
        return optional_of(found) if maybe and found.name not in ("optional_type", "!error!") else found

    def _member(self, node: Select, on: Type) -> Type:
        if loose(on):
            return on
        if on.name == "map":
            return on.parts[1]
        if on.members is None:
            return self._wrong(node, f"type '{on}' does not support field selection")
        if node.member not in on.members:
            return self._wrong(node, f"undefined field '{node.member}'")
        return on.members[node.member]

    def _call(self, node: Call, scope: Scope) -> Type:
        name, target = node.name, node.target
        if isinstance(target, Ident) and target.name not in scope and f"{target.name}.{name}" in overloads():
            name, target = f"{target.name}.{name}", None
            self.checked.functions[node.number] = name
        given = [self.of(target, scope)] if target is not None else []
        given += [self.of(arg, scope) for arg in node.args]
        known = overloads().get(name)
        if known is None:
            return self._wrong(node, f"undeclared reference to '{name}' {_NOWHERE}")
        matching = list(_matching(known, given, method=target is not None))
        if not matching:
            return self._wrong(node, f"found no matching overload for '{name}' applied to '{_form(given, target)}'")
        self.checked.calls[node.number] = tuple(overload.id for overload, _ in matching)
        self._literals(node, name)
        kinds = {filled(overload.gives, bound) for overload, bound in matching}
        return kinds.pop() if len(kinds) == 1 else DYN

    def _literals(self, node: Call, name: str) -> None:
        """Patterns and times that are written out have to be such."""
        arg = node.args[-1] if node.args else None
        if not isinstance(arg, Literal) or not isinstance(arg.value, str):
            return
        if name in _READERS:
            try:
                _READERS[name](arg.value)
            except ValueError:
                self._wrong(arg, f"invalid {name} argument")

    def _fold(self, node: Fold, scope: Scope) -> Type:
        over = self.of(node.over, scope)
        match over:
            case Type("list", (item,)):
                kinds: tuple[Type, ...] = (item,) if len(node.names) == 1 else (INT, item)
            case Type("map", (key, value)):
                kinds = (key,) if len(node.names) == 1 else (key, value)
            case Type("dyn" | "!error!"):
                kinds = (DYN, DYN)
            case _:
                text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
                return self._wrong(node.over, text)
        within = {**scope, **dict(zip(node.names, kinds, strict=False))}
        found = [self.of(arg, within) for arg in node.args]
        asked = found if node.macro in ("all", "exists", "exists_one", "filter") else found[:-1]
        for kind, arg in zip(asked, node.args, strict=False):
            if not fits(BOOL, kind, {}):
                return self._unasked(node, arg, kind)
        if node.macro in ("all", "exists", "exists_one"):
            return BOOL
        if node.macro == "transformMap":
            return map_of(kinds[0], found[-1])
        return list_of(kinds[0] if node.macro == "filter" else found[-1])

    def _unasked(self, node: Fold, arg: Node, kind: Type) -> Type:
        names = {"all": "_&&_", "exists": "_||_"}
        if node.macro in names:
            text = f"found no matching overload for '{names[node.macro]}' applied to '(bool, {kind})'"
        else:
            text = f"found no matching overload for '_?_:_' applied to '({kind}, {self._accumulated(node)})'"
        return self._wrong(node if node.macro in names else arg, text)

    def _accumulated(self, node: Fold) -> str:
        return "int, int" if node.macro == "exists_one" else "list(dyn), list(dyn)"


def _of_literal(node: Literal) -> Type:
    match node.value:
        case bool():
            return BOOL
        case UInt():
            return UINT
        case int():
            return INT
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BYTES
    return NULL


def _matching(known: tuple[Overload, ...], given: list[Type], *, method: bool) -> Iterator[tuple[Overload, Bound]]:
    for overload in known:
        if overload.method is method and len(overload.takes) == len(given):
            bound: Bound = {}
            if all(fits(wanted, kind, bound) for wanted, kind in zip(overload.takes, given, strict=True)):
                yield overload, bound


def _form(given: list[Type], target: Node | None) -> str:
    if target is None:
        return f"({', '.join(map(str, given))})"
    return f"{given[0]}.({', '.join(map(str, given[1:]))})"
