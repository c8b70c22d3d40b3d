"""The CEL parser: operator precedence, macros as folds, and at most `DEEPEST` levels."""

from collections.abc import Iterator
from typing import Any

from podfit.api.structural.cel.syntax import (
    DEEPEST,
    STARTS,
    Call,
    Entries,
    ExpressionError,
    Fold,
    Ident,
    Items,
    Literal,
    Node,
    Select,
    Token,
    UInt,
    tokens,
)
from podfit.core.bounded_cache import cached_within
from podfit.core.loop_slices import spend

_RANKS = {"==": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "in": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_MACROS = {
    "all": ((1, 1), (2, 1)),
    "exists": ((1, 1), (2, 1)),
    "exists_one": ((1, 1),),
    "existsOne": ((1, 1), (2, 1)),
    "map": ((1, 1), (1, 2)),
    "filter": ((1, 1),),
    "transformList": ((2, 1), (2, 2)),
    "transformMap": ((2, 1), (2, 2)),
}
"""By name: how many variables go with how many arguments."""
_RESERVED = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
MOST_KEPT = 128 * 1024  # letters of expressions whose trees are kept; a tree takes a hundred bytes for each
_DEEP = f"expression recursion limit exceeded: {DEEPEST}"
_CONSTANTS = {"true": True, "false": False, "null": None}


class Parsed:
    """A tree; `count` nodes are numbered in it."""

    def __init__(self, source: str, root: Node, count: int, names: frozenset[str]) -> None:
        self.source, self.root, self.count, self.names = source, root, count, names


@cached_within(MOST_KEPT)
def parsed(source: str) -> Parsed:
    """Raises ExpressionError."""
    parser = _Parser(source)
    try:
        root = parser.whole()
    except RecursionError:
        raise ExpressionError(_DEEP) from None
    return Parsed(source, root, parser.count, frozenset(parser.names))


def _spent(given: Iterator[Token]) -> Iterator[Token]:
    """Each is a unit of the turn, and another for what is made of it."""
    for token in given:
        spend(2)
        yield token


class _Parser:
    def __init__(self, source: str) -> None:
        self.tokens = [*_spent(tokens(source))]
        self.at = 0
        self.count = 0
        self.depth = 0
        self.names: set[str] = set()

    # ------------------------------------------------------------ tokens

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def _sign(self, *texts: str) -> bool:
        token = self.tokens[self.at]
        return token.kind in ("sign", "name") and token.text in texts and (token.kind == "sign" or token.text == "in")

    def _take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def _expect(self, text: str) -> Token:
        if not self._sign(text):
            token = self.next
            how = f"missing '{text}' at" if token.kind == "end" else "mismatched input"
            after = "" if token.kind == "end" else f" expecting '{text}'"
            raise ExpressionError(f"Syntax error: {how} '{token.text}'{after}", token.place)
        return self._take()

    def _id(self) -> int:
        self.count += 1
        return self.count - 1

    def _deeper(self, levels: int = 1) -> None:
        self.depth += levels
        if self.depth > DEEPEST:
            raise ExpressionError(_DEEP)

    # ------------------------------------------------------------ operators

    def whole(self) -> Node:
        root = self._expression()
        token = self.next
        if token.kind != "end":
            one = self.tokens[self.at + 1].kind == "end"
            how = "extraneous" if one else "mismatched"
            raise ExpressionError(f"Syntax error: {how} input '{token.text}' expecting <EOF>", token.place)
        return root

    def _expression(self) -> Node:
        self._deeper()
        node = self._logical("||", "_||_", self._conjunction)
        if self._sign("?"):
            place = self._take().place
            chosen = self._logical("||", "_||_", self._conjunction)
            self._expect(":")
            node = Call(self._id(), place, "_?_:_", None, (node, chosen, self._expression()))
        self.depth -= 1
        return node

    def _conjunction(self) -> Node:
        return self._logical("&&", "_&&_", lambda: self._ranked(1))

    def _logical(self, sign: str, name: str, operand: Any) -> Node:
        nodes, places = [operand()], []
        while self._sign(sign):
            places.append(self._take().place)
            nodes.append(operand())
        return self._balanced(name, nodes, places)

    def _balanced(self, name: str, nodes: list[Node], places: list[int]) -> Node:
        if len(nodes) == 1:
            return nodes[0]
        middle = len(places) // 2
        one = self._balanced(name, nodes[: middle + 1], places[:middle])
        other = self._balanced(name, nodes[middle + 1 :], places[middle + 1 :])
        return Call(self._id(), places[middle], name, None, (one, other))

    def _ranked(self, least: int) -> Node:
        node, levels = self._unary(), 0
        while (token := self.next).kind in ("sign", "name") and (rank := _RANKS.get(token.text, 0)) >= least:
            self._take()
            levels += 1
            self._deeper()
            name = "@in" if token.text == "in" else f"_{token.text}_"
            node = Call(self._id(), token.place, name, None, (node, self._ranked(rank + 1)))
        self.depth -= levels
        return node

    def _unary(self) -> Node:
        signs: list[Token] = []
        while self._sign("!", "-"):
            if signs and signs[-1].text != self.next.text:
                token = self.next
                raise ExpressionError(f"Syntax error: mismatched input '{token.text}' expecting {STARTS}", token.place)
            signs.append(self._take())
        if not signs:
            return self._member()
        number = self.next
        if signs[-1].text == "-" and number.kind == "number" and not isinstance(number.value, UInt):
            self.tokens[self.at] = Token("number", f"-{number.text}", signs[-1].place, -number.value)
            signs.pop()
        node = self._member()
        if len(signs) % 2:
            node = Call(self._id(), signs[0].place, f"{signs[0].text}_", None, (node,))
        return node

    # ------------------------------------------------------------ members

    def _member(self) -> Node:
        node, levels = self._primary(), 0
        while self._sign(".", "["):
            levels += 1
            self._deeper()
            opening = self._take()
            optional = self._sign("?") and bool(self._take())
            if opening.text == "[":
                name = "_[?_]" if optional else "_[_]"
                number = self._id()
                node = Call(number, opening.place, name, None, (node, self._expression()))
                self._expect("]")
                continue
            name = self._name()
            if not optional and self._sign("("):
                node = self._method(node, name)
            else:
                node = Select(self._id(), opening.place, node, name, optional=optional)
        self.depth -= levels
        return node

    def _name(self) -> str:
        token = self.next
        if token.kind != "name" or token.text in ("in", "true", "false", "null"):
            raise ExpressionError(f"Syntax error: no viable alternative at input '.{token.text}'", token.place)
        return self._take().text

    def _method(self, on: Node, name: str) -> Node:
        place = self._take().place
        number, args = self._id(), self._list(")")
        for variables, extra in _MACROS.get(name, ()):
            if len(args) == variables + extra:
                return self._fold(number, place, name, on, args, variables)
        return Call(number, place, name, on, args)

    def _fold(self, number: int, place: int, name: str, on: Node, args: tuple[Node, ...], variables: int) -> Node:
        names = []
        for arg in args[:variables]:
            if not isinstance(arg, Ident):
                raise ExpressionError("argument must be a simple name", arg.place)
            names.append(arg.name)
        return Fold(number, place, "exists_one" if name == "existsOne" else name, on, tuple(names), args[variables:])

    def _list(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._sign(closing):
            items.append(self._expression())
            if not self._sign(","):
                break
            self._take()
            if closing == ")" and self._sign(")"):
                raise ExpressionError(f"Syntax error: mismatched input ')' expecting {STARTS}", self.next.place)
        self._expect(closing)
        return tuple(items)

    def _primary(self) -> Node:
        token = self._take()
        match token.kind, token.text:
            case "number", _:
                if type(token.value) is int and not -(2**63) <= token.value < 2**63:
                    raise ExpressionError("invalid int literal", token.place)
                return Literal(self._id(), token.place, token.value)
            case "text", _:
                return Literal(self._id(), token.place, token.value)
            case "sign", "(":
                node = self._expression()
                self._expect(")")
                return node
            case "sign", "[":
                return Items(self._id(), token.place, self._list("]"))
            case "sign", "{":
                return Entries(self._id(), token.place, self._entries())
            case "name", ("true" | "false" | "null") as name:
                return Literal(self._id(), token.place, _CONSTANTS[name])
            case "name", name if name != "in":
                return self._named(name, token.place)
            case "sign", "." if self.next.kind == "name":
                return self._named(self._take().text, token.place)
        self.at -= 1
        raise ExpressionError(f"Syntax error: mismatched input '{token.text}' expecting {STARTS}", token.place)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        entries = []
        while not self._sign("}"):
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if not self._sign(","):
                break
            self._take()
        self._expect("}")
        return tuple(entries)

    def _named(self, name: str, place: int) -> Node:
        if name in _RESERVED:
            raise ExpressionError(f"reserved identifier: {name}", place)
        if not self._sign("("):
            self.names.add(name)
            return Ident(self._id(), place, name)
        opening = self._take().place
        number, args = self._id(), self._list(")")
        if name != "has" or len(args) != 1:
            return Call(number, opening, name, None, args)
        [arg] = args
        if not isinstance(arg, Select) or arg.optional:
            raise ExpressionError("invalid argument to has() macro", arg.place)
        return Select(number, opening, arg.operand, arg.member, tested=True)
