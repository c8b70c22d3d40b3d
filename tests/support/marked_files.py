"""Files that have none of the tests that a marker expression asks for are not imported.

Whoever runs `-m "node and not campaign"` needs a twelfth of the files, and importing all of them takes longer than
some tests. A file says by name which of the markers its tests have (`pytest.mark.node`), as text: when no set of those
fits the expression, no test of the file can. `unnamed` finds tests that have a marker which their file does not name;
a session that collects everything fails with them.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

_NAMED = re.compile(r"\bmark\.([a-z]+)\b")
_WORDS = re.compile(r"[a-z_]+")


TESTS = Path(__file__).parents[1]


@cache
def named(path: Path) -> frozenset[str]:
    """The markers that a file names, or a conftest.py of the folders in which it is."""
    names = frozenset(_NAMED.findall(path.read_text())) if path.exists() else frozenset[str]()
    if path.parent == TESTS or TESTS not in path.parents:
        return names
    above = path.parents[1] if path.name == "conftest.py" else path.parent
    return names | named(above / "conftest.py")


def may_have(path: Path, expression: str, markers: Collection[str]) -> bool:
    """Whether a file can have a test that the expression asks for, by those markers; what else is in the expression is
    not known by a file's text, so it may be so."""
    words = {word for word in _WORDS.findall(expression) if word not in ("and", "or", "not")}
    if not expression or not words <= set(markers):
        return True
    wanted, present = Expression.compile(expression), sorted(named(path) & words)

    def fits(chosen: Collection[str]) -> bool:
        return wanted.evaluate(lambda name, /, **_: name in chosen)

    return any(fits(chosen) for count in range(len(present) + 1) for chosen in combinations(present, count))


def unnamed(items: Collection[pytest.Item], markers: Collection[str]) -> Iterator[str]:
    """Tests with a marker that their file does not name."""
    for item in items:
        for marker in markers:
            if item.get_closest_marker(marker) is not None and marker not in named(item.path):
                yield f"{item.nodeid}: {marker}"
