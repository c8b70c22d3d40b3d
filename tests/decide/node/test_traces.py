"""The node machine, as trace scripts: `traces/*.txt`. How to read one is in `support.node_trace`."""

from pathlib import Path

import pytest

from support.node_trace import check

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))
ROWS = pytest.mark.row(
    "R-089", "R-094", "R-096", "R-099", "R-100", "R-101", "R-104", "R-108", "R-110", "R-117", "R-172"
)


@ROWS
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_machine_does_what_the_script_says(path: Path) -> None:
    check(path)


def test_there_are_scripts() -> None:
    assert len(TRACES) >= 8
