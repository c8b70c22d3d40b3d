"""When schedules are due: upstream's rules for stars, steps and changes of the clock."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from podfit.core.cron import parse
from podfit.core.schedules import next_time


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "due"),
    [
        ("* * * * *", "UTC", "2026-01-01T00:00:30", "2026-01-01T00:01:00"),
        ("*/15 * * * *", "UTC", "2026-01-01T00:15:00", "2026-01-01T00:30:00"),
        ("20/15 * * * *", "UTC", "2026-01-01T00:51:00", "2026-01-01T01:20:00"),
        ("0 9-17/4 * * mon-fri", "UTC", "2026-01-02T17:00:00", "2026-01-05T09:00:00"),
        ("0 0 13 * fri", "UTC", "2026-01-03T00:00:00", "2026-01-09T00:00:00"),  # either
        ("0 0 */13 * fri", "UTC", "2026-01-03T00:00:00", "2026-01-09T00:00:00"),
        ("0 0 ? * sun", "UTC", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("0 0 29 feb *", "UTC", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 31 2 *", "UTC", "2026-01-01T00:00:00", ""),
        ("@daily", "America/New_York", "2026-01-01T00:00:00", "2026-01-01T05:00:00"),
        ("@weekly", "UTC", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
        ("@every 1h30m", "UTC", "2026-01-01T00:00:10", "2026-01-01T01:30:10"),
        ("30 2 * * *", "America/New_York", "2026-03-08T00:00:00", "2026-03-09T06:30:00"),  # that hour is skipped
        ("30 1 * * *", "America/New_York", "2026-11-01T05:30:00", "2026-11-01T06:30:00"),  # that hour comes twice
        ("15 10 * * *", "Asia/Kolkata", "2026-01-01T00:00:00", "2026-01-01T04:45:00"),
        ("0 * * * *", "Australia/Lord_Howe", "2026-04-04T14:10:00", "2026-04-04T15:30:00"),  # half an hour back
    ],
)
def test_the_next_time(schedule: str, zone: str, after: str, due: str) -> None:
    found = next_time(parse(schedule), datetime.fromisoformat(after).replace(tzinfo=UTC), ZoneInfo(zone))
    assert (found.strftime("%Y-%m-%dT%H:%M:%S") if found else "") == due
