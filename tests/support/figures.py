"""The figures that the documents quote, written between markers: `python -m support.figures`, in tests/.

`<!-- figure NAME -->…<!-- end -->` in README.md or docs/*.md holds the figure of that name; nobody types them.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from support import agreement

ROOT = Path(__file__).parents[2]
_MARKED = re.compile(r"(<!-- figure ([\w-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_ROWS = re.compile(r"; (\d+) of (\d+) rows shown\.")


def figures() -> dict[str, str]:
    """By name; a table begins and ends with a line of its own."""
    every = list(agreement.counts())
    total = every[-1]
    return {
        "conformance": _conformance(),
        "agreement": f"\n{agreement.table(every)}\n",
        "agreement-total": f"{total.whole + total.own_text:,} of {total.served:,}",
    } | {count.file.replace("/", "-"): f"{count.whole} of {count.served}" for count in every}


def _conformance() -> str:
    """What the last `make conformance` wrote."""
    found = _ROWS.search((ROOT / "docs" / "conformance.md").read_text())
    assert found is not None, "docs/conformance.md does not say how many rows were shown"
    return f"{found[1]} of {found[2]}"


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def written(text: str, known: Mapping[str, str]) -> str:
    """The document with its figures as they are. KeyError for a marker that names none."""
    return _MARKED.sub(lambda match: f"{match[1]}{known[match[2]]}{match[4]}", text)


def marked(text: str) -> list[str]:
    return [name for _, name, _, _ in _MARKED.findall(text)]


def write(say: Callable[[str], object]) -> None:
    known = figures()
    for path in documents():
        before = path.read_text()
        after = written(before, known)
        if after != before:
            path.write_text(after)
            say(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    write(sys.stdout.write)
