"""What a test leaves open fails that test, and says where it was opened.

An unclosed socket is only noticed when the garbage collector finds it, in whichever test that is. Tests that start
processes and servers, where such a thing depends on what else the machine does, are followed by a collection.
"""

import gc
import socket
import sys
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

DEPTH = 12
_opened: dict[int, str] = {}
"""By `id`, which is all that is left to go by when the collector takes a socket."""


def say_where_sockets_are_opened() -> None:
    """In their `repr`, which the warning about an unclosed one quotes."""
    make, show = socket.socket.__init__, socket.socket.__repr__

    def opened(self: socket.socket, *arguments: Any, **more: Any) -> None:
        make(self, *arguments, **more)
        _opened[id(self)] = " < ".join(islice(_callers(sys._getframe(1)), DEPTH))

    def shown(self: socket.socket) -> str:
        return f"{show(self)} opened in {_opened.get(id(self), '?')}"

    socket.socket.__init__ = opened  # type: ignore[method-assign]  # a fault put in
    socket.socket.__repr__ = shown  # type: ignore[assignment,method-assign]


def forget_what_is_there() -> None:
    """Collections look no more at what was imported, so that one takes milliseconds."""
    gc.collect()
    gc.freeze()


def find() -> list[str]:
    """What a collection finds open now: warnings are errors here, and one that a finalizer raises goes to this hook."""
    found: list[str] = []

    def hear(unraisable: "sys.UnraisableHookArgs") -> None:
        found.append(str(unraisable.exc_value))

    before, sys.unraisablehook = sys.unraisablehook, hear
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before
    return found


def _callers(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
