"""RFC 3339 parsing with the errors of Go's `time.Parse`, which upstream's answers quote."""

import re
from datetime import UTC, datetime, timedelta, timezone

from podfit.core.bounded_cache import cached_where_short

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROS = "2006-01-02T15:04:05.000000Z07:00"
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", re.ASCII)
_DATE = (("", "2006", 4), ("-", "01", 2), ("-", "02", 2), ("T", "15", 2), (":", "04", 2), (":", "05", 2))
_LARGEST = {"01": ("month", 12), "15": ("hour", 23), "04": ("minute", 59), "05": ("second", 59)}
_FRACTION = re.compile(r"[.,]\d+", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class _Wrong(Exception):
    """What stands behind the time in the error."""


def in_utc(text: str, layout: str) -> str:
    """The same moment as the API writes it: in UTC, in whole seconds or in microseconds, by its layout. ValueError in
    Go's words."""
    try:
        return _read(text, layout)
    except _Wrong as wrong:
        raise ValueError(f"parsing time {_quoted(text)}{wrong}") from None


def _read(text: str, layout: str) -> str:
    rest, numbers = text, []
    for prefix, element, size in _DATE:
        rest = _skipped(rest, prefix, layout)
        number, rest = _number(rest, element, size, layout)
        numbers.append(number)
    micro = 0
    if layout == MICROS:
        micro, rest = _micros(rest)
    elif fraction := _FRACTION.match(rest):
        rest = rest[fraction.end() :]
    offset, rest = _offset(rest, layout)
    if rest:
        raise _Wrong(f": extra text: {_quoted(rest)}")
    year, month, day = numbers[:3]
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS[month - 1] + leap:
        raise _Wrong(": day out of range")
    return _written(numbers, micro, offset, layout)


def _written(numbers: list[int], micro: int, offset: timedelta, layout: str) -> str:
    year, month, day, hour, minute, second = numbers
    if offset and year:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone(offset))
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            raise _Wrong(": year out of range") from None
        year, month, day, hour, minute = moment.year, moment.month, moment.day, moment.hour, moment.minute
    fraction = f".{micro:06}" if layout == MICROS else ""
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"


def _number(rest: str, element: str, size: int, layout: str) -> tuple[int, str]:
    digits = size if rest[:size].isdigit() and rest[:size].isascii() and len(rest) >= size else 0
    if not digits and element == "15" and rest[:1].isdigit() and rest[:1].isascii():
        digits = 1
    if not digits:
        raise _cannot(rest, element, layout)
    number = int(rest[:digits])
    what, largest = _LARGEST.get(element, ("", number))
    if number > largest or (element == "01" and number == 0):
        raise _Wrong(f": {what} out of range")
    return number, rest[digits:]


def _micros(rest: str) -> tuple[int, str]:
    digits = rest[1:7]
    if rest[:1] not in (".", ",") or len(digits) < 6 or not (digits.isdigit() and digits.isascii()):
        raise _cannot(rest, ".000000", MICROS)
    return int(digits), rest[7:]


def _offset(rest: str, layout: str) -> tuple[timedelta, str]:
    if rest[:1] == "Z":
        return timedelta(), rest[1:]
    found = _OFFSET.match(rest)
    if found is None:
        raise _cannot(rest, "Z07:00", layout)
    hours, minutes = int(found[2]), int(found[3])
    for what, number, largest in (("hour", hours, 24), ("minute", minutes, 60)):
        if number > largest:
            raise _Wrong(f": time zone offset {what} out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    if offset >= timedelta(days=1):
        raise _Wrong(": time zone offset hour out of range")
    return (-offset if found[1] == "-" else offset), rest[found.end() :]


def _skipped(rest: str, prefix: str, layout: str) -> str:
    if not rest.startswith(prefix):
        raise _cannot(rest, prefix, layout)
    return rest[len(prefix) :]


def _cannot(rest: str, element: str, layout: str) -> _Wrong:
    return _Wrong(f" as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(element)}")


@cached_where_short(1024, longest=40)
def is_in_utc(text: str, layout: str) -> bool:
    """Whether it looks as the API writes it; most do, and need no reading."""
    found = _CANONICAL.fullmatch(text)
    return found is not None and (found[1] is not None) is (layout == MICROS) and text[8:10] <= "28"


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    letters = []
    for byte in text.encode():
        if byte in b'"\\':
            letters.append("\\" + chr(byte))
        else:
            letters.append(chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}")
    return f'"{"".join(letters)}"'
