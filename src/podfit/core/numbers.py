"""Whole numbers of 64 bits as clients write them, refused in the words of Go's strconv.

A text of any length may come. Python reads long numbers in quadratic time, and refuses those of more than 4,300 digits
with an error of its own, so the digits are counted first.
"""

from podfit.core.fields import go_value

LEAST, MOST = -(2**63), 2**63 - 1
_DIGITS = 20  # of the longest that fits


def parse_int(text: str) -> int:
    """A signed number. ValueError: `strconv.ParseInt: parsing "x": invalid syntax`, or `… value out of range`."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(_problem(text, "invalid syntax"))
    if len(digits) > _DIGITS and (digits := digits.lstrip("0") or "0") and len(digits) > _DIGITS:
        raise ValueError(_problem(text, "value out of range"))
    number = -int(digits) if text[0] == "-" else int(digits)
    if not LEAST <= number <= MOST:
        raise ValueError(_problem(text, "value out of range"))
    return number


def _problem(text: str, why: str) -> str:
    return f"strconv.ParseInt: parsing {go_value(text)}: {why}"
