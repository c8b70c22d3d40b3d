"""JSON as Go's encoding/json has it: what it writes otherwise than Python's encoders, and its syntax errors.

Upstream's answers quote the errors. Python's parsers say them otherwise and at other places, so a refused text is read
once more, by Go's rules: bytes, not letters; the first byte that cannot be there is named, and what it would have had
to be.
"""

import re

LONGEST = 16 * 1024
"""Bytes that are read for a message; it is written in Python, and everybody waits meanwhile."""
_END = "unexpected end of JSON input"
_SPACE = re.compile(rb"[ \t\r\n]*+")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*+')
_DIGITS = re.compile(rb"[0-9]*+")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_ESCAPES = b'bfnrt\\/"'
_DIGIT = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0x27: "\\'", 0x5C: "\\\\"}
_HTML = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
_LINES = {"\u2028".encode(): b"\\u2028", "\u2029".encode(): b"\\u2029"}
_FIRST, _BEGIN = b"\xe2", b"\xe2\x80"  # of both
_VALUE, _VALUE_OR_END, _NAME, _NAME_OR_END, _COLON, _AFTER = range(6)
_CLOSING = {"{": b"}", "[": b"]"}
_AFTER_WHAT = {"": "after top-level value", "{": "after object key:value pair", "[": "after array element"}


def escaped(text: bytes) -> bytes:
    """JSON with what a browser could take for markup, and what JavaScript takes for the end of a line, as Go writes
    it: `\\u0026` for `&`. Outside of strings JSON has none of these."""
    for plain, written in _HTML.items():
        if plain in text:
            text = text.replace(plain, written)
    if _FIRST in text and _BEGIN in text:  # one byte is looked for thirty times as quickly as two
        for plain, written in _LINES.items():
            text = text.replace(plain, written)
    return text


class _Wrong(Exception):
    """The text of the error."""


def syntax_error(text: bytes) -> str | None:
    """Such as `invalid character 'x' looking for beginning of value`; None for what is JSON to Go, and for what is
    longer than LONGEST."""
    if len(text) > LONGEST:
        return None
    try:
        _read(text)
    except _Wrong as wrong:
        return str(wrong)
    return None


def _read(text: bytes) -> None:  # noqa: C901  (the states of Go's scanner)
    opened: list[str] = []
    expected, place = _VALUE, 0
    while True:
        place = _skipped(_SPACE, text, place)
        if place == len(text):
            if expected == _AFTER and not opened:
                return
            raise _Wrong(_END)
        first = text[place : place + 1]
        if expected == _AFTER:
            expected = _after(first, opened)
            place += 1
        elif expected == _COLON:
            if first != b":":
                raise _unexpected(first, "after object key")
            expected, place = _VALUE, place + 1
        elif (expected == _VALUE_OR_END and first == b"]") or (expected == _NAME_OR_END and first == b"}"):
            opened.pop()
            expected, place = _AFTER, place + 1
        elif expected in (_NAME, _NAME_OR_END):
            if first != b'"':
                raise _unexpected(first, "looking for beginning of object key string")
            expected, place = _COLON, _string(text, place + 1)
        elif first in b"{[":
            opened.append(first.decode())
            expected, place = (_NAME_OR_END if first == b"{" else _VALUE_OR_END), place + 1
        else:
            expected, place = _AFTER, _scalar(text, place, first)


def _after(first: bytes, opened: list[str]) -> int:
    """What may come behind the byte that follows a value."""
    inside = opened[-1] if opened else ""
    if inside and first == _CLOSING[inside]:
        opened.pop()
        return _AFTER
    if inside and first == b",":
        return _NAME if inside == "{" else _VALUE
    raise _unexpected(first, _AFTER_WHAT[inside])


def _scalar(text: bytes, place: int, first: bytes) -> int:
    """The place behind a string, a word or a number."""
    if first == b'"':
        return _string(text, place + 1)
    if word := _WORDS.get(first):
        for index in range(1, len(word)):
            wanted = word[index : index + 1].decode()
            _need(text, place + index, word[index : index + 1], f"in literal {word.decode()} (expecting '{wanted}')")
        return place + len(word)
    if first in b"-0123456789":
        return _number(text, place)
    raise _unexpected(first, "looking for beginning of value")


def _string(text: bytes, place: int) -> int:
    while True:
        place = _skipped(_PLAIN, text, place)
        letter = text[place : place + 1]
        if letter == b'"':
            return place + 1
        if letter != b"\\":
            raise _unexpected(letter, "in string literal")
        escaped = _need(text, place + 1, _ESCAPES + b"u", "in string escape code")
        place += 2
        for _ in range(4 if escaped == b"u" else 0):
            _need(text, place, _HEX, "in \\u hexadecimal character escape")
            place += 1


def _number(text: bytes, place: int) -> int:
    if text.startswith(b"-", place):
        place += 1
        _need(text, place, _DIGIT, "in numeric literal")
    place = place + 1 if text.startswith(b"0", place) else _skipped(_DIGITS, text, place)
    if text.startswith(b".", place):
        place += 1
        _need(text, place, _DIGIT, "after decimal point in numeric literal")
        place = _skipped(_DIGITS, text, place)
    if text.startswith((b"e", b"E"), place):
        place += 2 if text.startswith((b"+", b"-"), place + 1) else 1
        _need(text, place, _DIGIT, "in exponent of numeric literal")
        place = _skipped(_DIGITS, text, place)
    return place


def _skipped(pattern: re.Pattern[bytes], text: bytes, place: int) -> int:
    found = pattern.match(text, place)
    assert found is not None  # each of them matches nothing as well
    return found.end()


def _need(text: bytes, place: int, known: bytes, where: str) -> bytes:
    """The byte at a place. At the end of the text Go reads a space, which is none of these."""
    letter = text[place : place + 1] or b" "
    if letter not in known:
        raise _unexpected(letter, where)
    return letter


def _unexpected(letter: bytes, where: str) -> _Wrong:
    return _Wrong(f"invalid character '{_shown(letter[0])}' {where}" if letter else _END)


def _shown(byte: int) -> str:
    """Go takes a byte for a letter of Latin-1, and quotes what cannot be printed."""
    if byte in _NAMED:
        return _NAMED[byte]
    letter = chr(byte)
    if letter.isprintable() and byte != 0xAD:
        return letter
    return f"\\x{byte:02x}" if byte < 0x80 else f"\\u{byte:04x}"
