"""Cron expressions: five fields of numbers, names, ranges and steps, or a word such as `@daily`.

`objection` says what is wrong with one, in the words of the parser that upstream uses (robfig/cron); `parse` gives its
numbers, `core.schedules` its times. It is our own because that parser's rules count: cron libraries for Python have
others for stars with a step, for `?`, and for hours that a change of the clock skips or repeats.
"""

import re

import msgspec

from podfit.core.numbers import parse_int


class _Bounds(msgspec.Struct, frozen=True):
    least: int
    most: int
    names: tuple[str, ...] = ()  # of the numbers from `least` on


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
_FIVE = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WORDS = tuple(_FIVE)
_EVERY = "@every "
_PIECE = re.compile(r"(?<![\d.])(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_ZONES = ("TZ=", "CRON_TZ=")


MOST_CHARACTERS = 4096
"""Of a schedule; one that names every number of every field has 400. Upstream has no such limit."""
_MOST_SECONDS = 2.0**63 / 1e9


class _Wrong(Exception):
    """The schedule does not parse; the message says why."""


def objection(schedule: str) -> str:
    """What is wrong with a schedule; nothing when it is fine. A time zone in front of it is not looked at."""
    if schedule.startswith(_ZONES):
        schedule = schedule.partition(" ")[2].strip()
    if not schedule:
        return "empty spec string"
    if len(schedule) > MOST_CHARACTERS:
        return f"longer than {MOST_CHARACTERS} characters"
    try:
        _check(schedule)
    except _Wrong as error:
        return str(error)
    return ""


class Schedule(msgspec.Struct, frozen=True):
    """When a job is due. With `either` a day fits when its date or its weekday does, as where both are given; else both
    have to. Of `@every` there are only `seconds`."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    dates: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()  # Sunday is 0
    either: bool = False
    seconds: float = 0.0


def parse(schedule: str) -> Schedule:
    """The schedule that `objection` has nothing against; ValueError for another."""
    if problem := objection(schedule):
        raise ValueError(problem)
    text = schedule.partition(" ")[2].strip() if schedule.startswith(_ZONES) else schedule
    if text.startswith(_EVERY):
        return Schedule(seconds=max(1.0, float(int(_go_seconds(text.removeprefix(_EVERY))))))
    fields = _FIVE.get(text, text).split()
    numbers, stars = list[frozenset[int]](), list[bool]()
    for field, bounds in zip(fields, _FIELDS, strict=True):
        parts = [_check_range(part, bounds) for part in filter(None, field.split(","))]
        numbers.append(frozenset(number for span, _ in parts for number in span))
        stars.append(any(star for _, star in parts))
    minutes, hours, dates, months, weekdays = numbers
    return Schedule(minutes, hours, dates, months, weekdays, either=not stars[2] and not stars[4])


def zone_of(schedule: str) -> str:
    """The time zone in front of a schedule, as old ones have it; empty without one."""
    return schedule.partition(" ")[0].partition("=")[2] if schedule.startswith(_ZONES) else ""


def _go_seconds(text: str) -> float:
    return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))


def _check(schedule: str) -> None:
    if schedule.startswith("@"):
        _check_word(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise _Wrong(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _check_range(part, bounds)


def _check_word(schedule: str) -> None:
    if schedule in _WORDS:
        return
    if not schedule.startswith(_EVERY):
        raise _Wrong(f"unrecognized descriptor: {schedule}")
    text = schedule.removeprefix(_EVERY)
    if not _DURATION.fullmatch(text) or _go_seconds(text) >= _MOST_SECONDS:
        raise _Wrong(f'failed to parse duration {schedule}: time: invalid duration "{text}"')


def _check_range(part: str, bounds: _Bounds) -> tuple[range, bool]:
    """The numbers of one part, and whether it is a bare star. Raises _Wrong."""
    span, *steps = part.split("/")
    low, *high = span.split("-")
    if low in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        start = _number(low, bounds)
        if len(high) > 1:
            raise _Wrong(f"too many hyphens: {part}")
        end = _number(high[0], bounds) if high else start
    if len(steps) > 1:
        raise _Wrong(f"too many slashes: {part}")
    step = _plain(steps[0]) if steps else 1
    if steps and not high:
        end = bounds.most
    if start < bounds.least:
        raise _Wrong(f"beginning of range ({start}) below minimum ({bounds.least}): {part}")
    if end > bounds.most:
        raise _Wrong(f"end of range ({end}) above maximum ({bounds.most}): {part}")
    if start > end:
        raise _Wrong(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _Wrong(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step), low in ("*", "?") and step == 1


def _number(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.least if name in bounds.names else _plain(text)


def _plain(text: str) -> int:
    try:
        number = parse_int(text)
    except ValueError as error:
        raise _Wrong(f"failed to parse int from {text}: {str(error).replace('ParseInt', 'Atoi')}") from None
    if number < 0:
        raise _Wrong(f"negative number ({number}) not allowed: {text}")
    return number
