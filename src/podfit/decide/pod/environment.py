"""Environment variables: expansion of `$(NAME)`, and the bound on their size.

The kernel refuses to start a program with one string of more than 128 KiB (MAX_ARG_STRLEN), or with more than 2 MiB of
arguments and environment under the usual stack limit. The number of strings has a bound of ours: a runtime is sent each
of them. A few short variables that name each other twice reach any size,
so a size is known before its text is made.
"""

import re
from collections.abc import Mapping

STRING_BYTES = 128 * 1024
PATH_BYTES = 4096
TOTAL_BYTES = 2 * 1024 * 1024
STRINGS = 20_000
POINTER_BYTES = 8  # the kernel counts the pointer to each string as well
_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


class TooLarge(Exception):
    """A string, or all of them together, that no program could be started with."""


class Budget:
    """What a container's environment, command and arguments take together, while they are put together.

    A variable that a later one replaces counts as well: making it costs as much.
    """

    def __init__(self) -> None:
        self.used = self._strings = 0

    def expand(self, what: str, text: str, values: Mapping[str, str], *, name: str = "") -> str:
        """The expanded text. `what` is said in the message, `name` is that of a variable. Raises TooLarge."""
        expanded = expand_within(what, text, values, limit=STRING_BYTES)
        return self.take(what, expanded, name=name, written=len(text))

    def take(self, what: str, text: str, *, name: str = "", written: int = 0) -> str:
        """Count a text as it is. `written` is how long it was before it was expanded. Raises TooLarge."""
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        if name:
            size += len(name) + 1
        check_string(what, size)
        self.used += max(size, written) + 1 + POINTER_BYTES
        self._strings += 1
        if self._strings > STRINGS:
            raise TooLarge(f"environment, command and args are more than {STRINGS} strings, counted up to {what}")
        if self.used > TOTAL_BYTES:
            raise TooLarge(
                f"environment, command and args take more than {TOTAL_BYTES} bytes in all, counted up to {what}"
            )
        return text


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; a name that is not known stays as it is written, and $$ stands for one $."""
    return _REFERENCE.sub(lambda match: "$" if match[1] == "$" else values.get(match[2], match[0]), text)


def expand_within(what: str, text: str, values: Mapping[str, str], *, limit: int) -> str:
    """`expand`, for a result of less than `limit` letters. The size is known before the text is. Raises TooLarge."""
    check_string(what, len(text), limit=limit)
    size = len(text) + sum(
        1 - len(match[0]) if match[1] == "$" else len(values[match[2]]) - len(match[0])
        for match in _REFERENCE.finditer(text)
        if match[1] == "$" or match[2] in values
    )
    check_string(what, size, limit=limit)
    return expand(text, values)


def check_string(what: str, size: int, *, limit: int = STRING_BYTES) -> None:
    """Raises TooLarge."""
    if size >= limit:
        raise TooLarge(f"{what} takes {size} bytes, must be less than {limit}")
