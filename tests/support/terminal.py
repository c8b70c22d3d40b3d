"""A podfit command in a terminal of its own: a pseudo-terminal of some width, with or without colour."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from types import MappingProxyType
from typing import NamedTuple

from support.eventually import PATIENCE

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
QUIET = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM", "KUBECONFIG")


class Seen(NamedTuple):
    """What a terminal shows, and the exit code."""

    text: str
    code: int

    @property
    def plain(self) -> str:
        return COLOUR.sub("", self.text)

    @property
    def lines(self) -> list[str]:
        return self.plain.splitlines()


def in_terminal(
    command: Sequence[str],
    *,
    columns: int = 80,
    cwd: Path | None = None,
    stdin: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Seen:
    """Run a command with a terminal as its stdout and stderr."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in QUIET and not name.startswith("PYTEST_")}
    env = kept | {"TERM": "xterm"} | dict(environment)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, cwd=cwd, env=env, text=True
    )
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    told = _all(ours)
    return Seen(told.decode().replace("\r\n", "\n"), process.wait(timeout=60 * PATIENCE))


def _all(descriptor: int) -> bytes:
    """Until nobody holds the other end any more, which Linux tells as an error."""
    told = b""
    try:
        while piece := os.read(descriptor, 65536):
            told += piece
    except OSError:
        return told
    finally:
        os.close(descriptor)
    return told


def podfit(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "podfit.cli", *arguments]
