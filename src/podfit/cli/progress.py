"""Progress lines of a resize under way, and what stands after Ctrl-C."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podfit.actions.resize_pods import Progress
from podfit.answers.facts.readable import readable_text
from podfit.answers.plan.result import Plan
from podfit.cli import render
from podfit.cli.cluster_questions import commands
from podfit.core.clock import Clock

REPORT_SECONDS = 1.0
"""Seconds after which somebody who looks at a terminal wants to know what is going on."""


@asynccontextmanager
async def watched(progress: Progress, plan: Plan, about: str, clock: Clock) -> AsyncIterator[None]:
    """Tells on stderr what a resize waits for, in a terminal, and what was sent when it is interrupted."""
    telling = asyncio.create_task(_tell(progress, clock)) if sys.stderr.isatty() else None
    try:
        yield
    except asyncio.CancelledError:
        for line in stands(progress, plan):
            render.progress(line)
        if progress.outcomes or progress.sending:
            render.advice(f"  see:  {commands().podfit('why', *filter(None, (about,)))}")
        raise
    finally:
        if telling is not None:
            telling.cancel()


async def _tell(progress: Progress, clock: Clock) -> None:
    told = ""
    while True:
        await clock.sleep(REPORT_SECONDS)
        now = _state(progress)
        if now and now != told:
            render.progress(now)
            told = now


def _state(progress: Progress) -> str:
    """What the pod that is waited for waits for."""
    if progress.seen is None:
        return ""
    because = f": {readable_text(progress.seen.message)}" if progress.seen.message else ""
    return f"{progress.pod}  resize {progress.seen.state}{because}"


def stands(progress: Progress, plan: Plan) -> list[str]:
    """What was sent, what came of it, and what was left."""
    done = [outcome.pod for outcome in progress.outcomes if outcome.good]
    lines = [f"interrupted: {len(done)} of {len(plan.pods)} {'pod' if len(plan.pods) == 1 else 'pods'} resized"]
    if progress.sent and progress.seen is not None:
        lines.append(f"{_state(progress)}; it was sent, and the node goes on with it")
    elif progress.sending:
        lines.append(f"{progress.pod}  was being sent: whether the API server has stored it is not known")
    asked = [name for name in progress.asked if name != progress.pod]
    if asked:
        lines.append(f"{', '.join(asked)}  asked for: the node goes on with it")
    left = len(plan.pods) - len(progress.outcomes) - len(asked) - bool(progress.pod and progress.sending)
    if left:
        lines.append(f"{left} left as {'it is' if left == 1 else 'they are'}")
    return lines
