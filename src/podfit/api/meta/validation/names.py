"""Validation of names and labels. Each function returns what is wrong with a text; nothing when it is valid.

A cluster says the same few thousand names over and over, the keys of labels above all, so verdicts are remembered.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache, wraps

_EDGES = "and must start and end with an alphanumeric character"
_NAME = f"must consist of alphanumeric characters, '-', '_' or '.', {_EDGES}"
_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM = rf"{_LABEL_FORM}(\.{_LABEL_FORM})*"
_QUALIFIED_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM = f"({_QUALIFIED_FORM})?"
_KEY_FORM = "[-._a-zA-Z0-9]+"
_HEADER_FORM = "[-A-Za-z0-9]+"
_REMEMBERED, _LONGEST = 8192, 256  # texts of each shape, and the letters of one

Check = Callable[[str], list[str]]


def _remembering(check: Check) -> Check:
    """The same check, which looks at a text of ordinary length once, and at a longer one once in a row."""
    verdict, of_long = (lru_cache(most)(lambda text: tuple(check(text))) for most in (_REMEMBERED, 1))

    @wraps(check)
    def remembering(text: str) -> list[str]:
        return list((of_long if len(text) > _LONGEST else verdict)(text))

    return remembering


def _no_match(rule: str, form: str, *examples: str) -> str:
    given = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{rule} (e.g. {given}, regex used for validation is '{form}')"


_NOT_LABEL = _no_match(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_EDGES}",
    _LABEL_FORM,
    "my-name",
    "123-abc",
)
_NOT_SUBDOMAIN = _no_match(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_EDGES}",
    _SUBDOMAIN_FORM,
    "example.com",
)
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_FORM = rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*"
_NOT_UNDERSCORED = _no_match(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', {_EDGES}",
    _SUBDOMAIN_FORM,
    "example.com",
)
_WILDCARD_FORM = rf"\*\.{_SUBDOMAIN_FORM}"
_NOT_WILDCARD = _no_match(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD_FORM,
    "*.example.com",
)
_PATH_FORM = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_LABEL_1035_FORM = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NOT_LABEL_1035 = _no_match(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035_FORM,
    "my-name",
    "abc-123",
)
_NOT_QUALIFIED = _no_match(f"name part {_NAME}", _QUALIFIED_FORM, "MyName", "my.name", "123-abc")
_NOT_VALUE = _no_match(
    f"a valid label must be an empty string or {_NAME.removeprefix('must ')}",
    _VALUE_FORM,
    "MyValue",
    "my_value",
    "12345",
)
_NOT_KEY = _no_match(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _KEY_FORM,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_NOT_HEADER = _no_match(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER_FORM, "X-Header-Name"
)


_matcher = cache(lambda form: re.compile(form).fullmatch)
"""Of the forms in this file."""


def _checked(text: str, form: str, message: str, limit: int) -> list[str]:
    problems = [f"must be no more than {limit} characters"] if len(text.encode()) > limit else []
    return problems if _matcher(form)(text) else [*problems, message]


@_remembering
def dns_label(text: str) -> list[str]:
    dotted = "." in text and re.fullmatch(_SUBDOMAIN_FORM, text)
    return _checked(text, _LABEL_FORM, "must not contain dots" if dotted else _NOT_LABEL, 63)


@_remembering
def dns_1035_label(text: str) -> list[str]:
    """A label that begins with a letter."""
    return _checked(text, _LABEL_1035_FORM, _NOT_LABEL_1035, 63)


@_remembering
def dns_subdomain(text: str) -> list[str]:
    """Most are one label, and asked about as such, too."""
    if "." not in text and not dns_label(text):
        return []
    return _checked(text, _SUBDOMAIN_FORM, _NOT_SUBDOMAIN, 253)


@_remembering
def dns_subdomain_with_underscores(text: str) -> list[str]:
    """As search paths of resolvers may be."""
    return _checked(text, _UNDERSCORED_FORM, _NOT_UNDERSCORED, 253)


@_remembering
def wildcard_subdomain(text: str) -> list[str]:
    """A domain whose first part is any."""
    return _checked(text, _WILDCARD_FORM, _NOT_WILDCARD, 253)


def http_path(text: str) -> list[str]:
    return [] if re.fullmatch(_PATH_FORM, text) else [f"Invalid path (regex used for validation is '{_PATH_FORM}')"]


def generated(check_text: str) -> str:
    """The prefix of a generated name as a whole name: a trailing dash will be followed by letters."""
    return check_text[:-1] + "a" if check_text.endswith("-") else check_text


@_remembering
def qualified(text: str) -> list[str]:
    """`name` or `domain/name`, as keys of labels are."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            _no_match(f"a qualified name {_NAME}", _QUALIFIED_FORM, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_QUALIFIED_FORM, name):
        problems.append(_NOT_QUALIFIED)
    return problems


@_remembering
def label_value(text: str) -> list[str]:
    problems = ["must be no more than 63 bytes"] if len(text.encode()) > 63 else []
    return problems if re.fullmatch(_VALUE_FORM, text) else [*problems, _NOT_VALUE]


@_remembering
def config_key(text: str) -> list[str]:
    """A key of a ConfigMap or Secret, which becomes a file name."""
    if problems := _checked(text, _KEY_FORM, _NOT_KEY, 253):
        return problems
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    return ["must not start with '..'"] if text.startswith("..") else []


def path_segment(text: str) -> list[str]:
    """Names of RBAC objects may be anything that fits between two slashes."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in "/%" if letter in text]


def header(text: str) -> list[str]:
    return [] if re.fullmatch(_HEADER_FORM, text) else [_NOT_HEADER]


@_remembering
def env_name(text: str) -> list[str]:
    """Any printable ASCII but `=`, the relaxed rule that is on by default."""
    if not text:
        return ["environment variable name must consist of at least one character"]
    if all(" " <= letter <= "~" and letter != "=" for letter in text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


@_remembering
def port_name(text: str) -> list[str]:
    """An IANA service name."""
    problems = []
    if len(text) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]*", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(number: int) -> list[str]:
    return [] if 1 <= number <= 65535 else ["must be between 1 and 65535, inclusive"]


def user_id(number: int) -> list[str]:
    return [] if 0 <= number <= 2**31 - 1 else ["must be between 0 and 2147483647, inclusive"]


def is_sysctl(text: str) -> bool:
    part = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
    return len(text) <= 253 and bool(re.fullmatch(f"({part}[./])*{part}", text))
