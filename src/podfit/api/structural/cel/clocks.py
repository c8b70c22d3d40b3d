"""CEL functions on timestamps and durations."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podfit.api.structural.cel.meter import Failure, Meter
from podfit.api.structural.cel.values import Duration, Timestamp

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHIFT = re.compile(r"([+-]?)(\d\d):(\d\d)")
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}")


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    """Raises Failure."""
    if found := _SHIFT.fullmatch(name):
        minutes = int(found[2]) * 60 + int(found[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    try:
        if not _ZONE.fullmatch(name):
            raise ValueError
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Failure(f"unknown time zone {name[:64]}") from None


def _moment(value: Timestamp, zone: str) -> datetime:
    try:
        moment = _EPOCH + timedelta(seconds=value.nanos // _SECOND)
        return moment.astimezone(_zone(zone)) if zone else moment
    except OverflowError:
        raise Failure("timestamp overflow") from None


def _of_moment(read: Callable[[datetime], int], of_duration: int = 0) -> Callable[..., int]:
    def part(_: Meter, value: Any, zone: str = "") -> int:
        if isinstance(value, Duration):
            if not of_duration:
                raise Failure("no such overload")
            return abs(value.nanos) // of_duration * (1 if value.nanos >= 0 else -1)
        return read(_moment(value, zone))

    return part


def _milliseconds(_: Meter, value: Any, zone: str = "") -> int:
    if isinstance(value, Duration):
        return abs(value.nanos) // 10**6 * (1 if value.nanos >= 0 else -1)
    return int(value.nanos % _SECOND // 10**6)


TIME_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "getFullYear": _of_moment(lambda moment: moment.year),
    "getMonth": _of_moment(lambda moment: moment.month - 1),
    "getDate": _of_moment(lambda moment: moment.day),
    "getDayOfMonth": _of_moment(lambda moment: moment.day - 1),
    "getDayOfWeek": _of_moment(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _of_moment(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _of_moment(lambda moment: moment.hour, 3600 * _SECOND),
    "getMinutes": _of_moment(lambda moment: moment.minute, 60 * _SECOND),
    "getSeconds": _of_moment(lambda moment: moment.second, _SECOND),
    "getMilliseconds": _milliseconds,
}
