"""The next time of a schedule.

Local time counts, hour by hour as it passes: an hour that a change of the clock skips has no runs, one that it repeats
has them twice, as upstream's scheduler has it.
"""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from podfit.core.cron import Schedule

YEARS = 5
"""A schedule that is not due for so long never is, such as that of a 31st of February."""
MINUTE = timedelta(minutes=1)


def next_time(schedule: Schedule, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first time later than `after` (both in UTC), to the minute; None when there is none."""
    if schedule.seconds:
        return after.replace(microsecond=0) + timedelta(seconds=schedule.seconds)
    moment = after.replace(second=0, microsecond=0) + MINUTE
    local = moment.astimezone(zone)
    last = date(local.year + YEARS, 12, 31)
    while local.date() <= last:
        if not _fits(schedule, local.date()):
            moment = _next_day(local, zone)
        elif local.hour not in schedule.hours:
            moment += timedelta(minutes=60 - local.minute)
        elif local.minute not in schedule.minutes:
            moment += MINUTE
        else:
            return moment
        local = moment.astimezone(zone)
    return None


def _fits(schedule: Schedule, day: date) -> bool:
    if day.month not in schedule.months:
        return False
    by_date, by_weekday = day.day in schedule.dates, day.isoweekday() % 7 in schedule.weekdays
    return by_date or by_weekday if schedule.either else by_date and by_weekday


def _next_day(local: datetime, zone: ZoneInfo) -> datetime:
    """Its first minute, in UTC."""
    tomorrow = local.date() + timedelta(days=1)
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=zone).astimezone(UTC)
