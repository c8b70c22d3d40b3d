"""How far the API server agrees with what a real Kubernetes 1.36 answered: `python -m support.agreement`, in tests/.

Of the cases of `api/*.json` about what is served: those whose whole answer a test compares, those of which it compares
code and reason because the text is ours, and those that no test replays, which differ on purpose. The figures follow
from what the tests are given (`golden.REPLAYED`), so they hold when the tests pass.
"""

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from support import golden
from support.replay import served

TESTS = Path(__file__).parents[1]
SCHEMAS = "openapi"
"""The group of `api/discovery.json` that `tests/apiserver/test_openapi.py` compares by schemas, not by answers."""


class Count(NamedTuple):
    """Cases of one file."""

    file: str
    served: int
    whole: int
    own_text: int
    differ: tuple[str, ...]

    @property
    def line(self) -> str:
        share = f"{100 * (self.whole + self.own_text) / self.served:.1f} %"
        return f"| {self.file} | {self.served} | {self.whole} | {self.own_text} | {len(self.differ)} | {share} |"


def counts() -> Iterator[Count]:
    """One for each file, and one for all."""
    for module in sorted(TESTS.rglob("test_golden*.py")):
        importlib.import_module(".".join(module.relative_to(TESTS).with_suffix("").parts))
    found: dict[str, list[str]] = {}
    for file, case in golden.recorded("api/*.json*"):
        if _is_served(file, case):
            found.setdefault(file, []).append(case["id"])
    every = [_count(file, ids) for file, ids in found.items()]
    yield from every
    yield Count(
        "all",
        sum(suite.served for suite in every),
        sum(suite.whole for suite in every),
        sum(suite.own_text for suite in every),
        tuple(name for suite in every for name in suite.differ),
    )


def _is_served(file: str, case: golden.Case) -> bool:
    from apiserver.test_golden_discovery import about_served  # which is imported with the others

    known = case["group"] != SCHEMAS and served(case)
    return known and (not file.endswith("discovery") or about_served(case))


def _count(file: str, ids: list[str]) -> Count:
    known = {name: golden.REPLAYED[file, name] for name in ids if (file, name) in golden.REPLAYED}
    whole = sum(known.values())
    return Count(file, len(ids), whole, len(known) - whole, tuple(name for name in ids if name not in known))


def table(every: Iterable[Count]) -> str:
    head = "| cases about what is served | number | whole answer | code and reason | differ | agree |"
    return "\n".join([head, "|---|---|---|---|---|---|", *(count.line for count in every)])


if __name__ == "__main__":
    sys.stdout.write(table(counts()) + "\n")
