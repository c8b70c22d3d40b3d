"""Tests that outlast their time, and pass."""

import pytest

from support.overtime import judge


@pytest.mark.parametrize(
    ("duration", "allowed", "outcome"), [(119.0, 120.0, "passed"), (120.1, 120.0, "failed"), (120.1, 0.0, "passed")]
)
def test_a_test_that_outlasts_its_time_has_failed(duration: float, allowed: float, outcome: str) -> None:
    report = pytest.TestReport("t", ("t.py", 1, "t"), {}, "passed", None, "call", duration=duration)
    judge(report, allowed)
    assert report.outcome == outcome
