"""What of a rule can be judged before there is an object: that it can be read, and names what there is.

cel-python parses and evaluates, but does not check. So names, functions and the members that `self` leads to are looked
up here, and what would only fail later, or is a part of CEL that is not here, is refused when the definition is made.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import celpy
import lark
import msgspec
from celpy.celparser import CELParseError

from podfit.api.apiextensions import JSONSchemaProps
from podfit.api.structural.cel.functions import ARITY, NAMESPACES, OPTIONAL
from podfit.api.structural.cel.values import declared, escaped

_MACROS = {"all": 2, "exists": 2, "exists_one": 2, "map": 2, "filter": 2}
_TYPES = (
    "bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp", "uint", "type",
)  # fmt: skip
_SELF, _OLD = "self", "oldSelf"
_ANY = object()
_TOO_DEEP = "the expression is nested too deeply"

environment = celpy.Environment()


@lru_cache(maxsize=1024)
def parsed(text: str) -> lark.Tree[Any]:
    """Raises CELParseError."""
    return environment.compile(text)


def names_old(text: str) -> bool:
    try:
        tree = parsed(text)
    except CELParseError:
        return False
    return any(_name(each) == _OLD for each in tree.find_data("ident"))


class Variables(msgspec.Struct, frozen=True):
    """What an expression may name: the schema of each, and whether it is the root of an object; None where nothing is
    known of a value before it is there.
    """

    known: Mapping[str, tuple[JSONSchemaProps, bool] | None]
    optional: bool = False
    """Whether there are optional values."""
    escaping: bool = True
    """Whether members whose names CEL keeps for itself are written escaped."""


def of_self(schema: JSONSchemaProps, *, root: bool, optional: bool) -> Variables:
    """Those of a schema's rule."""
    return Variables({_SELF: (schema, root), _OLD: None if optional else (schema, root)}, optional)


def problem(text: str, variables: Variables) -> str:
    """Why the expression cannot be taken, empty when it can."""
    try:
        tree = parsed(text)
    except CELParseError as error:
        at = f" at line {error.line}, column {error.column}" if error.line else ""
        return f"Syntax error{at} (optional syntax such as `?.` is not understood by this server)"
    except RecursionError:
        return _TOO_DEEP
    try:
        return next(_Check(variables).problems(tree, frozenset()), "")
    except RecursionError:
        return _TOO_DEEP


def _name(tree: lark.Tree[Any]) -> str:
    return str(tree.children[0])


class _Check:
    def __init__(self, variables: Variables) -> None:
        self._known, self._optional = variables.known, variables.optional
        self._written = escaped if variables.escaping else str

    def problems(self, tree: Any, bound: frozenset[str]) -> Iterator[str]:
        """`bound` are the variables of macros around."""
        if not isinstance(tree, lark.Tree):
            return
        match tree.data:
            case "ident":
                name = _name(tree)
                if name not in (*self._known, *_TYPES, *bound):
                    yield f"undeclared reference to '{name}'"
                return
            case "member_dot":
                where = self._reached(tree, bound)
                if isinstance(where, str):
                    yield where
                    return
            case "member_dot_arg":
                yield from self._call(tree, bound)
                return
            case "ident_arg" | "dot_ident_arg":
                yield from self._function(str(tree.children[0]), _arguments(tree, 1), bound, on=None)
                return
            case "member_object":
                yield "messages cannot be made here"
                return
        for each in tree.children:
            yield from self.problems(each, bound)

    def _call(self, tree: lark.Tree[Any], bound: frozenset[str]) -> Iterator[str]:
        """`on.name(arguments)`: a macro, a function of a namespace, or a method."""
        on, name, arguments = tree.children[0], str(tree.children[1]), _arguments(tree, 2)
        if name in _MACROS and name not in ARITY:
            yield from self.problems(on, bound)
            variable = _variable(arguments[0]) if arguments else ""
            if len(arguments) != _MACROS[name] or not variable:
                yield f"the macro '{name}' with {len(arguments)} arguments is not understood by this server"
                return
            for each in arguments[1:]:
                yield from self.problems(each, bound | {variable})
            return
        space = _variable(on)
        if space in NAMESPACES:
            if name not in NAMESPACES[space]:
                yield f"undeclared reference to '{space}.{name}' (this server has no such function)"
            for each in arguments:
                yield from self.problems(each, bound)
            return
        yield from self._function(name, arguments, bound, on=on)

    def _function(self, name: str, arguments: list[Any], bound: frozenset[str], *, on: Any) -> Iterator[str]:
        if on is not None:
            yield from self.problems(on, bound)
        if name == "has" and on is None:
            selects = len(arguments) == 1 and _only(arguments[0]).data == "member_dot"
            if not selects:
                yield "invalid argument to has() macro"
                return
        elif name in OPTIONAL and not (self._optional and on is not None):
            yield f"undeclared reference to '{name}' (optional values are there only as oldSelf with optionalOldSelf)"
        elif name not in ARITY and name not in OPTIONAL:
            yield f"undeclared reference to '{name}' (this server has no such function)"
        elif name in ARITY and len(arguments) + (on is not None) not in ARITY[name]:
            yield f"found no matching overload for '{name}' applied to {len(arguments)} arguments"
        for each in arguments:
            yield from self.problems(each, bound)

    def _reached(self, tree: Any, bound: frozenset[str]) -> Any:
        """The schema that a chain of members leads to, a text when a member is not declared, _ANY when unknown."""
        tree = _only(tree)
        if tree.data == "ident":
            name = _name(tree)
            return self._known.get(name) or _ANY if name not in bound else _ANY
        if tree.data != "member_dot":
            return _ANY
        where = self._reached(tree.children[0], bound)
        if not isinstance(where, tuple):
            return where
        schema, root = where
        if isinstance(schema.additional_properties, JSONSchemaProps):
            return schema.additional_properties, False
        members = {self._written(name): each for name, each in declared(schema, root=root).items()}
        name = str(tree.children[1])
        if name not in members:
            return f"undefined field '{name}'" if schema.type == "object" or root else _ANY
        return members[name], False


def _only(tree: Any) -> Any:
    """Through the nodes that only stand for their one child."""
    while isinstance(tree, lark.Tree) and len(tree.children) == 1 and isinstance(tree.children[0], lark.Tree):
        tree = tree.children[0]
    return tree


def _variable(tree: Any) -> str:
    inner = _only(tree)
    return _name(inner) if isinstance(inner, lark.Tree) and inner.data == "ident" else ""


def _arguments(tree: lark.Tree[Any], after: int) -> list[Any]:
    rest = [each for each in tree.children[after:] if each is not None]
    return list(rest[0].children) if rest else []
