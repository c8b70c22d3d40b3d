"""The memory check, to the letter."""

import pytest

from podfit.decide.resize.memory_shrink import Memory, objection

PREFIX = "cannot decrease memory limits: "


@pytest.mark.parametrize(
    ("limits", "usage", "text"),
    [
        (Memory(100, {"c": 50}), Memory(99, {"c": 49}), ""),
        (Memory(100), Memory(100), PREFIX + "attempting to set pod memory limit (100) below current usage (100)"),
        (
            Memory(None, {"c": 50}),
            Memory(900, {"c": 60}),
            PREFIX + 'attempting to set container "c" memory limit (50) below current usage (60)',
        ),
        (
            Memory(100, {"c": 50}),
            Memory(None, {}),
            PREFIX + '[missing pod memory usage, missing container "c" memory usage]',
        ),
        (Memory(), Memory(5, {"c": 6}), ""),
    ],
)
def test_objection(limits: Memory, usage: Memory, text: str) -> None:
    assert objection(limits, usage) == text
