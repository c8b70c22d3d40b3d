"""What is said of a resize under way: what it waits for, and what stands when Ctrl-C ends the command."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podfit.actions.resize_pods import Course
from podfit.answers.plan_result import Plan
from podfit.answers.target import Target
from podfit.cli import render
from podfit.cli.asking import commands
from podfit.core.clock import Clock

PATIENCE = 1.0
"""Seconds after which somebody who looks at a terminal wants to know what is going on."""


@asynccontextmanager
async def watched(course: Course, plan: Plan, about: Target, clock: Clock) -> AsyncIterator[None]:
    """Tells on stderr what a resize waits for, in a terminal, and what was sent when it is interrupted."""
    telling = asyncio.create_task(_tell(course, clock)) if sys.stderr.isatty() else None
    try:
        yield
    except asyncio.CancelledError:
        for line in stands(course, plan):
            render.progress(line)
        if course.deeds or course.sending:
            render.advice(f"  see:  {commands().podfit('why', str(about))}")
        raise
    finally:
        if telling is not None:
            telling.cancel()


async def _tell(course: Course, clock: Clock) -> None:
    told = ""
    while True:
        await clock.sleep(PATIENCE)
        now = _state(course)
        if now and now != told:
            render.progress(now)
            told = now


def _state(course: Course) -> str:
    """What the pod that is waited for waits for."""
    if course.seen is None:
        return ""
    because = f": {course.seen.message}" if course.seen.message else ""
    return f"{course.pod}  resize {course.seen.state}{because}"


def stands(course: Course, plan: Plan) -> list[str]:
    """What was sent, what came of it, and what was left."""
    done = [each.pod for each in course.deeds if each.good]
    lines = [f"interrupted: {len(done)} of {len(plan.pods)} {'pod' if len(plan.pods) == 1 else 'pods'} resized"]
    if course.sent and course.seen is not None:
        lines.append(f"{_state(course)}; it was sent, and the node goes on with it")
    elif course.sending:
        lines.append(f"{course.pod}  was being sent: whether the API server has stored it is not known")
    left = len(plan.pods) - len(course.deeds) - bool(course.pod and course.sending)
    if left:
        lines.append(f"{left} left as {'it is' if left == 1 else 'they are'}")
    return lines
