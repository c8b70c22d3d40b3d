"""A file is a concept: none of a few lines that only a neighbour in its folder imports."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podfit"
THIN = 40
"""Lines."""
REASONS = {
    "podfit.decide.node.reservations": "a rule of its own (R-117), which the state holds",
    "podfit.proxy.conntrack": "the door to a tool of the machine, as net/nft.py is",
}


def modules() -> dict[str, Path]:
    """By dotted name; packages, whose file says what their folder holds, apart."""
    paths = (path for path in SOURCE.rglob("*.py") if path.stem != "__init__")
    return {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in paths}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def thin(paths: dict[str, Path]) -> set[str]:
    """Modules of at most `THIN` lines that one module imports, of the same folder."""
    importers: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        importer = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for name in paths.keys() & set(imported(path)):
            importers[name].add(importer)
    alone = {name: next(iter(users)) for name, users in importers.items() if len(users) == 1}
    beside = {name for name, user in alone.items() if name.rpartition(".")[0] == user.rpartition(".")[0]}
    return {name for name in beside if len(paths[name].read_text().splitlines()) <= THIN}


def test_no_thin_file_serves_one_neighbour_alone() -> None:
    assert thin(modules()) == REASONS.keys(), "merge it into what imports it, or say why not"
