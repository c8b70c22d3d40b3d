"""`podfit version`: which podfit this is."""

import msgspec

from podfit import __version__
from podfit.cli import exits, render
from podfit.cli.output import NarrowOutputOption, Output
from podfit.process.data.release import commit, described


class Version(msgspec.Struct, frozen=True):
    """`commit` is `0123456789ab`, with `, changed` where files differ from it; empty where nothing tells."""

    version: str
    commit: str


def version(*, output: NarrowOutputOption = Output.TEXT) -> int:
    """Show which podfit this is, as --version does."""
    if output.for_people:
        render.line(described())
    else:
        render.document(Version(__version__, commit().removeprefix("commit ")), output)
    return exits.DONE
