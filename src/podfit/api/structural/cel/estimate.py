"""The CEL cost estimate: the most that an expression can cost before it runs, in upstream's units.

A step costs 1, a text a tenth of its length for each time it is walked, a pattern a quarter of its length for each step
of the text; what is done for each item costs as often as there can be items.
"""

from dataclasses import dataclass

from podfit.api.structural.cel.check import Checked
from podfit.api.structural.cel.estimated_calls import FunctionCost
from podfit.api.structural.cel.sizes import MOST, UNKNOWN, Size, add, multiply
from podfit.api.structural.cel.syntax import Call, Entries, Fold, Ident, Items, Literal, Node, Select
from podfit.api.structural.cel.types import KEY, SCALARS, Declared, Type

_LIST, _MAP = 10, 30
_PART = "@"


_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a macro: where its value comes from, and how large it is where that says nothing."""

    path: _Path
    size: Size | None = None


def estimate(checked: Checked, root: Declared | None) -> int:
    """`root` is what is known of `self`, None where nothing is."""
    return _Estimate(checked, root).cost(checked.tree.root)


class _Estimate:
    def __init__(self, checked: Checked, root: Declared | None) -> None:
        self._checked, self._root = checked, root
        self._paths: dict[int, _Path] = {}
        self._sizes: dict[int, Size] = {}
        self._items: dict[int, Size] = {}
        """What the parts of a list or map made here can be as large as."""
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> int:
        match node:
            case Literal():
                return 0
            case Ident():
                known = self._locals.get(node.name)
                self._paths[node.number] = known[-1].path if known else (node.name,)
                return 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Items():
                total = sum(self.cost(item) for item in node.items) + _LIST
                self._items[node.number] = self._all([self.size(item) for item in node.items])
                return min(MOST, total)
            case Entries():
                total = sum(self.cost(key) + self.cost(value) for key, value in node.entries) + _MAP
                self._items[node.number] = self._all([self.size(value) for _, value in node.entries])
                return min(MOST, total)
            case Fold():
                return self._fold(node)
        raise TypeError(type(node))

    def _all(self, sizes: list[Size]) -> Size:
        found = Size(MOST, 0) if sizes else Size(0, 0)
        for size in sizes:
            found = found.either(size)
        return found

    def _kind(self, node: Node) -> Type:
        return self._checked.types[node.number]

    # ------------------------------------------------------------ sizes

    def size(self, node: Node) -> Size:
        return self._known(node) or UNKNOWN

    def _known(self, node: Node) -> Size | None:
        if node.number in self._sizes:
            return self._sizes[node.number]
        match node:
            case Literal(value=str() | bytes() as value):
                return Size(len(value), len(value))
            case Literal():
                return Size(1, 1)
            case Items(items=parts) | Entries(entries=parts):
                return Size(len(parts), len(parts))
        if (most := self._declared(self._path(node))) is not None:
            return Size(0, most)
        kind = self._kind(node)
        if kind in SCALARS or (kind.name == "optional_type" and kind.parts[0] in SCALARS):
            return Size(1, 1)
        if isinstance(node, Ident) and (known := self._locals.get(node.name)):
            return known[-1].size
        return None

    def _path(self, node: Node) -> _Path:
        if isinstance(node, Ident) and (known := self._locals.get(node.name)):
            return known[-1].path
        return self._paths.get(node.number, ())

    def _declared(self, path: _Path) -> int | None:
        if not path or path[0] == _PART or self._root is None:
            return None
        known: Declared | None = self._root
        for step in path[1:]:
            if known is None:
                return None
            if step in ("@items", "@values"):
                known = known.inner
            elif step == "@keys":
                known = KEY if known.keyed else None
            else:
                known = known.members.get(step)
        return known.most if known is not None else None

    def _item_size(self, node: Node) -> Size:
        """Of the items of a list: by where the list is from, or by what it was made of."""
        path = self._path(node)
        most = self._declared((*path, "@items")) if path else None
        return UNKNOWN if most is None else Size(0, most)

    # ------------------------------------------------------------ nodes

    def _select(self, node: Select) -> int:
        total = self.cost(node.operand)
        if node.tested:
            return total
        on = self._kind(node.operand)
        self._paths[node.number] = (*self._path(node.operand), node.member) if self._path(node.operand) else ()
        return min(MOST, total + (1 if on.name == "map" or on.members is not None else 0))

    def _fold(self, node: Fold) -> int:
        total = self.cost(node.over)
        path, over = self._path(node.over), self._kind(node.over)
        steps: tuple[str, ...] = ("@items",) if over.name == "list" else ("@keys",)
        if len(node.names) == 2:
            steps = ("@indices", "@items") if over.name == "list" else ("@keys", "@values")
        inner = self._items.get(node.over.number)
        for name, step in zip(node.names, steps, strict=True):
            size = inner if step in ("@items", "@values") else None
            self._locals.setdefault(name, []).append(_Local((*path, step) if path else (_PART,), size))
        element_cost, rest, item = self._each(node)
        for name in node.names:
            self._locals[name].pop()
        count = self.size(node.over)
        if node.macro in ("all", "exists", "exists_one"):
            self._sizes[node.number] = Size(1, 1)
        else:
            self._sizes[node.number] = count
            if item is not None:
                self._items[node.number] = item
        return add(total + rest, multiply(count.most, element_cost))

    def _each(self, node: Fold) -> tuple[int, int, Size | None]:
        """What one item costs, what the macro costs beside, and how large what it makes is."""
        costs = [self.cost(arg) for arg in node.args]
        match node.macro:
            case "all":
                return add(costs[0], 3), 1, None
            case "exists":
                return add(costs[0], 4), 1, None
            case "exists_one":
                return add(costs[0], 2), 2, None
            case "filter":
                items = self._locals[node.names[-1]][-1]
                most = self._declared(items.path)
                size = Size(0, most) if most is not None else items.size or UNKNOWN
                return add(costs[0], 13), _LIST + 1, Size(0, size.most)
        made, beside = self.size(node.args[-1]), _LIST if node.macro != "transformMap" else _MAP
        element_cost = add(costs[-1], 2 + _LIST)
        return (add(element_cost, costs[0]) if len(costs) == 2 else element_cost), beside + 1, Size(0, made.most)

    def _call(self, node: Call) -> int:
        name = self._checked.functions.get(node.number, node.name)
        costs = [self.cost(arg) for arg in node.args]
        target = node.target if name == node.name else None
        total = min(MOST, sum(costs) + (self.cost(target) if target is not None else 0))
        match name:
            case "_?_:_":
                self._chosen(node)
                return add(costs[0], max(costs[1:]))
            case "_&&_" | "_||_":
                return total
            case "dyn":
                self._copied(node, node.args[0])
                return add(total, 1)
            case "_[_]" | "_[?_]":
                step = "@values" if self._kind(node.args[0]).name == "map" else "@items"
                path = self._path(node.args[0])
                self._paths[node.number] = (*path, step) if path else ()
                if node.args[0].number in self._items:
                    self._sizes[node.number] = self._items[node.args[0].number]
                return add(total, 1)
        own = FunctionCost(self, node, name, target).cost()
        return add(total, own)

    def _chosen(self, node: Call) -> None:
        self._sizes[node.number] = self.size(node.args[1]).either(self.size(node.args[2]))
        one, other = (self._items.get(arg.number) for arg in node.args[1:])
        if one is not None and other is not None:
            self._items[node.number] = one.either(other)

    def _copied(self, node: Node, other: Node) -> None:
        if (size := self._known(other)) is not None:
            self._sizes[node.number] = size
        if other.number in self._items:
            self._items[node.number] = self._items[other.number]

    def joined(self, node: Call) -> Size:
        """A sum of texts or lists."""
        size = self.size(node.args[0]).plus(self.size(node.args[1]))
        self._sizes[node.number] = size
        one, other = (self._items.get(arg.number) for arg in node.args)
        if one is not None and other is not None:
            self._items[node.number] = one.either(other)
        return size

    def makes(self, node: Node, size: Size) -> None:
        self._sizes[node.number] = size

    def item_size(self, node: Node) -> Size:
        return self._item_size(node)

    def kind(self, node: Node) -> Type:
        return self._kind(node)

    def overloads(self, node: Node) -> tuple[str, ...]:
        return self._checked.calls[node.number]
