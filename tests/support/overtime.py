"""A test that outlasts its time has failed, also when the alarm went off in a task that nobody asks how it went."""

import pytest


def judge(report: pytest.TestReport, seconds: float) -> None:
    """Make a failure of a test that passed after more than these seconds; 0 allows any."""
    if report.when == "call" and report.passed and 0 < seconds <= report.duration:
        report.outcome = "failed"
        report.longrepr = f"it took {report.duration:.0f} s, and {seconds:.0f} s are allowed"
