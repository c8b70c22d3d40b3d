"""What Go's scanner says of texts that are not JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.core.go_json import LONGEST, escaped, syntax_error

VALUE, NAME = "looking for beginning of value", "looking for beginning of object key string"
END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", END),
        (b" \n", END),
        (b"{", END),
        (b"[1,2", END),
        (b'{"a"', END),
        (b'"abc', END),
        (b"not json", "invalid character 'o' in literal null (expecting 'u')"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"truE", "invalid character 'E' in literal true (expecting 'e')"),
        (b"[fals]", "invalid character ']' in literal false (expecting 'e')"),
        (b"[1,]", f"invalid character ']' {VALUE}"),
        (b"}", f"invalid character '}}' {VALUE}"),
        (b"\xef\xbb\xbf{}", f"invalid character '\u00ef' {VALUE}"),
        (b"\x00", f"invalid character '\\x00' {VALUE}"),
        (b"NaN", f"invalid character 'N' {VALUE}"),
        (b"+1", f"invalid character '+' {VALUE}"),
        (b'{"a":1,}', f"invalid character '}}' {NAME}"),
        (b"{a:1}", f"invalid character 'a' {NAME}"),
        (b"{'a':1}", f"invalid character '\\'' {NAME}"),
        (b"{1:2}", f"invalid character '1' {NAME}"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b'{"a":1]', "invalid character ']' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1}", "invalid character '}' after array element"),
        (b'{"a":1} xx', "invalid character 'x' after top-level value"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"[-]", "invalid character ']' in numeric literal"),
        (b"2.a", "invalid character 'a' after decimal point in numeric literal"),
        (b"1e+x", "invalid character 'x' in exponent of numeric literal"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
    ],
)
def test_the_first_byte_that_cannot_be_there(text: bytes, said: str) -> None:
    assert syntax_error(text) == said


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(_PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_what_is_json_has_no_error(value: object) -> None:
    assert syntax_error(json.dumps(value).encode()) is None
    assert syntax_error(json.dumps(value, indent=1, ensure_ascii=False).encode()) is None


@given(st.text(alphabet='{}[]",:0123eE+-.truefalsn \\u\n', max_size=12))
def test_python_refuses_the_same_texts(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert syntax_error(text.encode()) is not None
    else:
        assert syntax_error(text.encode()) is None


def test_long_texts_are_not_read() -> None:
    assert syntax_error(b"[" * LONGEST) == END
    assert syntax_error(b"[" * (LONGEST + 1)) is None


@given(st.text(alphabet='<>&\\"é\u2028\u2029\u2027a'))
def test_no_markup_is_written_as_it_is(text: str) -> None:
    written = escaped(json.dumps({text: [text]}, ensure_ascii=False).encode())
    assert json.loads(written) == {text: [text]}
    assert not set("<>&\u2028\u2029") & set(written.decode())
    assert written.decode().count("é") == 2 * text.count("é")
