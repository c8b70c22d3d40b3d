"""systemd, where it is the first process: whether a SIGTERM comes with a shutdown of the machine."""

import asyncio
import logging
from pathlib import Path

log = logging.getLogger(__name__)

BOOTED = Path("/run/systemd/system")
"""There while systemd is the first process (sd_booted(3))."""
QUESTION = ("systemctl", "is-system-running")
ANSWER_SECONDS = 5.0


async def service_manager(booted: Path = BOOTED, question: tuple[str, ...] = QUESTION) -> str:
    """Such as `running`, `degraded` or `stopping`; empty without systemd, `unknown` when it does not answer."""
    if not await asyncio.to_thread(booted.is_dir):
        return ""
    try:
        process = await asyncio.create_subprocess_exec(
            *question, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
    except OSError as error:
        log.warning("systemd cannot be asked whether the machine goes down error=%s", error)
        return "unknown"
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return "unknown"
    return answer.decode(errors="replace").strip() or "unknown"
