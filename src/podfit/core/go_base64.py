"""Base64 errors in the words of Go's decoder; line ends do not count."""

import re

_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_WHOLE = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)


def without_line_ends(text: str) -> str:
    return text.replace("\n", "").replace("\r", "") if "\n" in text or "\r" in text else text


def wrong_byte(text: str) -> int | None:
    """The place that Go's error names: `illegal base64 data at input byte N`; None for a text that can be decoded."""
    if _WHOLE.fullmatch(without_line_ends(text)):
        return None
    data = text.encode()
    place = taken = 0  # `taken` of the four letters that are decoded together
    while place < len(data):
        byte, place = data[place], place + 1
        if byte in _LETTERS:
            taken = (taken + 1) % 4
        elif byte == ord("="):
            return _after_padding(data, place, taken)
        elif byte not in b"\r\n":
            return place - 1
    return place - taken


def _after_padding(data: bytes, place: int, taken: int) -> int:
    """What is wrong behind, or with, the first `=`."""
    if taken < 2:
        return place - 1
    place = _past_line_ends(data, place)
    if taken == 2:
        if place == len(data):
            return place
        if data[place] != ord("="):
            return place - 1
        place = _past_line_ends(data, place + 1)
    return place


def _past_line_ends(data: bytes, place: int) -> int:
    while place < len(data) and data[place] in b"\r\n":
        place += 1
    return place
