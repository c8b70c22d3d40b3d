"""`podfit doctor`: what this machine can run, and the command that mends what it lacks."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podfit.cli import exits, render
from podfit.cli.output import NarrowOutputOption, Output
from podfit.decide.machine import Check, State, commands, lacking
from podfit.net.system import SystemClock
from podfit.process.data.data_dir import DEFAULT_PORT, DataDir, default_data_dir
from podfit.process.doctor import Report, examine

TONES = {State.OK: render.GOOD, State.NOTE: render.WAITS, State.LACKING: render.BAD}


def doctor(
    *,
    data: Annotated[Path | None, Parameter(help=f"Data directory. [default: {default_data_dir()}]")] = None,
    port: Annotated[int, Parameter(help="Of the API; 0 takes a free one.")] = DEFAULT_PORT,
    output: NarrowOutputOption = Output.TEXT,
) -> int:
    """Say what this machine can run: API server, simulated nodes, a real node; and what mends what it lacks.

    Nothing is changed. Exit code 3 when a real node, or the API server, cannot run here; a note is no lack.
    """
    report = examine(DataDir.at(data), SystemClock(), port=port)
    if not output.for_people:
        render.document(report, output)
    else:
        _tell("API server and simulated nodes", report.server)
        _tell("a real node", report.node)
        _advise(report)
    return exits.MACHINE if lacking((*report.server, *report.node)) else exits.DONE


def _tell(title: str, checks: tuple[Check, ...]) -> None:
    lacks = len(lacking(checks))
    render.line(f"{title}: {'can run here' if not lacks else f'cannot run here, {lacks} of {len(checks)} checks fail'}")
    width = max((len(check.part) for check in checks), default=0)
    for check in checks:
        render.styled(
            f"  {check.part:<{width}}", render.toned(f"{check.state.value:<7}", TONES[check.state]), check.found
        )


def _advise(report: Report) -> None:
    checks = (*report.server, *report.node)
    for command in commands(lacking(checks)):
        render.line(f"mend it:  {command}")
    for command in commands(check for check in checks if check.state is State.NOTE):
        render.line(f"for the notes:  {command}")
