"""Ages as people read them."""

import pytest

from podfit.core.durations import human_duration

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (5 * HOUR + 420, "5h7m"),
        (8 * HOUR, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 4 * HOUR, "3d4h"),
        (8 * DAY, "8d"),
        (200 * DAY, "200d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 40 * DAY, "3y40d"),
        (8 * YEAR, "8y"),
    ],
)
def test_two_units_at_most(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text
