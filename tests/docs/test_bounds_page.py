"""Every row of docs/bounds.md names a test that is there, and says so where there is none."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bounds.md").read_text()
NAMED = re.compile(r"`((?:tests/)?[a-z_/0-9]*test_[a-z_0-9]+\.py(?:::[a-z_0-9]+)?)")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| what", "|---"))]
WITHOUT = "no test of the size"


def files(name: str) -> list[Path]:
    name = name.removeprefix("tests/")
    return list((ROOT / "tests").glob(name if "/" in name else f"**/{name}"))


@pytest.mark.parametrize("test", sorted(set(NAMED.findall(PAGE))))
def test_a_test_that_the_page_names_is_there(test: str) -> None:
    name, _, function = test.partition("::")
    found = files(name)
    assert found
    if function:
        assert any(re.search(rf"def {function}\(", path.read_text()) for path in found)


def test_every_row_names_a_test() -> None:
    rows = [row for row in ROWS if not NAMED.search(row) and not row.rstrip(" |").endswith(("the same", WITHOUT))]
    assert len(ROWS) > 40
    assert not rows
