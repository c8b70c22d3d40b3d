"""Regular expressions in CEL: RE2 as Go reads it, with Go's error messages."""

from typing import Any

import re2

from podfit.core.bounded_cache import KEPT_PATTERNS, cached_within, weight_of_pattern

_SAID = {
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}


@cached_within(KEPT_PATTERNS, weigh=weight_of_pattern)
def compiled(pattern: str) -> Any:
    """Raises ValueError."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"error parsing regexp: {_go(error, pattern)}") from None


def _go(error: Exception, pattern: str) -> str:
    said = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
    text, _, part = said.partition(": ")
    return f"{_SAID.get(text, text)}: `{part or pattern}`"
