"""The versions of what lies in a data directory, in `version.json`: what is older is taken over, what is newer refused.

    directory     the files and folders themselves, `pki/` and `up.json` among them
    checkpoints   allocated and actuated resources of nodes, with their journals
    (the store carries its own, `store.sqlite.file`; so do backups, and the leases of `client.election`)

A directory without the file was made before versions were written: version 0 of each part. Each step makes the next
version of a part. The file is written, durably, when all steps are done, so a start that was killed takes them again:
a step has to bear that.
"""

from collections.abc import Callable, Mapping

import msgspec

from podfit.net.files import write_atomic
from podfit.process.data.data_dir import DataDir
from podfit.process.data.release import described
from podfit.process.errors import MachineError

Step = Callable[[DataDir], None]


class DataVersion(msgspec.Struct, frozen=True):
    """`parts` are versions by name; `written_by` says which podfit was the last to change them."""

    parts: dict[str, int] = {}
    written_by: str = "podfit 0.1.0"


def _as_it_is(data: DataDir) -> None:
    """Version 1 is what was written before versions were."""


STEPS: Mapping[str, tuple[Step, ...]] = {"directory": (_as_it_is,), "checkpoints": (_as_it_is,)}


def take_over(data: DataDir, steps: Mapping[str, tuple[Step, ...]] = STEPS) -> None:
    """Bring the directory, which this process holds, to the versions of this podfit.

    Raises MachineError when a part is newer, and then nothing was changed.
    """
    found = read_version(data)
    newest = {part: len(taken) for part, taken in steps.items()}
    for part, version in found.parts.items():
        if version > newest.get(part, 0):
            raise _newer(data, found, part, newest.get(part, 0))
    if found.parts == newest:
        return
    for part, taken in steps.items():
        for step in taken[found.parts.get(part, 0) :]:
            step(data)
    write_atomic(data.version, msgspec.json.encode(DataVersion(newest, described())))


def read_version(data: DataDir) -> DataVersion:
    """Raises MachineError when it cannot be understood."""
    try:
        return msgspec.json.decode(data.version.read_bytes(), type=DataVersion)
    except FileNotFoundError:
        return DataVersion()
    except (OSError, msgspec.DecodeError) as error:
        what = f"{data.version} cannot be read: {error}"
        raise MachineError(
            what, fix=("restore it from a copy of the directory, or choose another with --data",)
        ) from error


def _newer(data: DataDir, found: DataVersion, part: str, known: int) -> MachineError:
    what = f"{data.root} was written by {found.written_by}: its {part} has version {found.parts[part]}"
    return MachineError(
        f"{what}, this podfit reads {known}",
        fix=("run that podfit, or a newer one", "or choose another directory with --data"),
    )
