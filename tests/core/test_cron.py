"""Schedules of cron jobs."""

import pytest

from podfit.core.cron import objection


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-4,8 ? jan-MAR sun,1",
        "0 0 1 1 *",
        "59 23 31 12 6",
        "5/10 * * * *",
        "@daily",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
        "1-59/2 * * * *",
        "0,,5 * * * *",
    ],
)
def test_what_fits(schedule: str) -> None:
    assert objection(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "empty spec string"),
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * * * mon-xyz", 'failed to parse int from xyz: strconv.Atoi: parsing "xyz": invalid syntax'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("@every 5", 'failed to parse duration @every 5: time: invalid duration "5"'),
    ],
)
def test_what_does_not(schedule: str, why: str) -> None:
    assert objection(schedule) == why
