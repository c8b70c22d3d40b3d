"""Durations as people read them, with two units at most, and as Go writes and reads them."""

import re

MOST_LETTERS = 100
_AMOUNTS = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: float) -> str:
    """`47s`, `3m5s`, `42m`, `5h7m`, `30h`, `3d4h`, `200d`, `3y40d`; a moment slightly ahead of us is `0s`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    return _two(whole, _YEAR, "y", _DAY, "d") if whole < 8 * _YEAR else f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def go_duration(seconds: float) -> str:
    """What Go writes for a duration of at least a second, to the millisecond: `15.053s`, `1m0s`, `2h0m3s`; below,
    `250ms`."""
    milli = round(seconds * 1000)
    if milli == 0:
        return "0s"
    if milli < 1000:
        return f"{milli}ms"
    hours, rest = divmod(milli, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    text = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `1m30s`. Raises ValueError for what is none, or longer than `MOST_LETTERS`."""
    parts = _AMOUNTS.findall(text[:MOST_LETTERS])
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise ValueError(f"{text[:MOST_LETTERS]!r} is no duration, such as 15s")
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def short_duration(seconds: float) -> str:
    """The shortest text for `parse_duration`: `5m`, `24h`, `1m30s`, `500ms`."""
    text = go_duration(seconds)
    text = text.removesuffix("0s") if text.endswith("m0s") else text
    return text.removesuffix("0m") if text.endswith("h0m") else text
