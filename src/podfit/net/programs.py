"""Programs of the machine that are run to their end: what they are given, and what they said."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple


class Ended(NamedTuple):
    """`code` is negative after a signal."""

    code: int
    said: str
    errors: str


async def ran(*command: str, given: bytes = b"", seconds: float | None = None) -> Ended:
    """Raises OSError where it cannot be started, TimeoutError after `seconds`; then it has been killed, as it is when
    the caller is cancelled. The terminal's Ctrl-C does not reach it."""
    process = await started(*command, given=given)
    try:
        async with asyncio.timeout(seconds):
            said, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, said.decode(errors="replace"), errors.decode(errors="replace"))


async def started(*command: str, given: bytes = b"", environment: Mapping[str, str] | None = None) -> Process:
    """A process that reads `given` and whose output is piped. Raises OSError.

    What it reads is a file in memory: of a pipe, writing fails where a program ends before it has read it.
    """
    with _file_of(given) as file:
        return await asyncio.create_subprocess_exec(
            *command, stdin=file, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=True
        )


@contextmanager
def _file_of(given: bytes) -> Iterator[IO[bytes]]:
    with os.fdopen(os.memfd_create("given"), "w+b") as file:
        file.write(given)
        file.seek(0)
        yield file
