"""Whole lives of pods, as trace scripts: `traces/*.txt`. How to read one is in `support.life_trace`."""

from pathlib import Path

import pytest

from support.life_trace import check

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_life_goes_as_the_script_says(path: Path) -> None:
    check(path)


def test_there_are_scripts() -> None:
    assert len(TRACES) >= 10
