"""Names that say nothing do not come back: loop variables are called after what the loop goes through."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EMPTY = {"each", "found"}
"""What every loop's variable could be called. As an accumulator or a result `found` may stand."""


@pytest.mark.parametrize("folder", ["src", "tests", "bench", "scripts"])
def test_loop_variables_say_what_they_are(folder: str) -> None:
    named = {
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        for line, name in _loop_variables(ast.parse(path.read_text()))
        if name in EMPTY
    }
    assert not named, "name the pod, the container, the line, ..."


def _loop_variables(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, name) of what `for`, comprehensions and lambdas bind."""
    bound: list[ast.expr] = []
    arguments: list[ast.arg] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            bound.append(node.target)
        elif isinstance(node, ast.Lambda):
            arguments += node.args.args
    names = [inner for target in bound for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    return [(name.lineno, name.id) for name in names] + [(argument.lineno, argument.arg) for argument in arguments]
