"""RFC 3339 times as the API writes them: seconds in UTC, or microseconds for MicroTime fields."""

from datetime import UTC, datetime, timedelta

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """`2026-11-21T03:55:07Z`; fractions are cut."""
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return in_utc.isoformat(timespec="seconds")[:19] + "Z"


def format_micro(moment: datetime) -> str:
    """`2026-11-21T03:55:07.000123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def seconds_later(moment: datetime, seconds: float) -> datetime:
    """So many seconds later (earlier when negative), but never outside of the years 1 to 9999."""
    try:
        return moment.astimezone(UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return LAST if seconds > 0 else FIRST


def parse_time(text: str) -> datetime:
    """Read either form; ValueError when it is neither, or outside of the years 1 to 9999."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text}: {error}") from None
