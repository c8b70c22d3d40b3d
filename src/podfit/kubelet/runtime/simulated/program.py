"""What a simulated container's command does (sleep, exit), by its first words.

`sleep N`, `true`, `false` and `exit N` end as they say, also behind `sh -c`; everything else runs until it is stopped.
A `sleep` does not stop when it is asked to: it handles no signal, and the kernel keeps from the first process of a
container those that it does not handle. So it is killed at the end of its grace period, as on any node.
"""

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from podfit.core.times import format_micro
from podfit.decide.lifecycle.facts import ContainerStatus
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.simulated.state import NANO

_SECONDS = re.compile(r"^\d+(\.\d+)?$")


class Ending(msgspec.Struct, frozen=True):
    """After how many seconds of running, and with which exit code."""

    seconds: float
    code: int


WELL = Ending(1, 0)
"""Of a program that nobody knows, and that is to end."""


def ending(command: Sequence[str]) -> Ending | None:
    """None when the command runs until it is stopped."""
    match _words(command):
        case ["sleep", seconds] if _SECONDS.match(seconds):
            return Ending(float(seconds), 0)
        case ["true"]:
            return Ending(0, 0)
        case ["false"]:
            return Ending(0, 1)
        case ["exit", code] if code.isdecimal():
            return Ending(0, int(code) % 256)
        case ["sleep", seconds, ";", "exit", code] if _SECONDS.match(seconds) and code.isdecimal():
            return Ending(float(seconds), int(code) % 256)
    return None


def has_to_be_killed(command: Sequence[str]) -> bool:
    """Whether it does not end when it is asked to."""
    match _words(command):
        case ["sleep", _]:
            return True
    return False


def _words(command: Sequence[str]) -> list[str]:
    """The words of the command, or of the script that its shell is given."""
    words = list(command)
    if len(words) >= 3 and words[0].rpartition("/")[2] in ("sh", "ash", "bash") and words[1] == "-c":
        return _script(words[2])
    return words


def _script(script: str) -> list[str]:
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []


def begin_log(container: ContainerStatus) -> None:
    """Write the file unless it is there, or the container has none. Raises CRIError."""
    path = Path(container.log_path)
    if not container.log_path or path.exists():
        return
    when = format_micro(datetime.fromtimestamp(container.created_at / NANO, UTC))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{when} stdout F this container is simulated: it runs nothing\n")
    except OSError as error:
        raise CRIError(f"cannot begin the log of {container.id}: {error.strerror}") from error
