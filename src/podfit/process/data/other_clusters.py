"""Finds clusters on other data directories among this machine's processes."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import UpState, running
from podfit.process.errors import MachineError

PROGRAMS = ("podfit", "podfit.cli")
VERBS = ("up", "apiserver")


def others(data: DataDir) -> tuple[str, ...]:
    """Directories, without the one that is given. Of processes that may not be looked at nothing is known."""
    found = {root for root in _named() if root != data.root}
    return tuple(sorted(str(root) for root in found if _runs(root)))


def cluster_on(port: int) -> tuple[Path, UpState] | None:
    """The cluster of this machine whose API is on the port, by its directory and what it wrote."""
    for root in set(_named()):
        with suppress(MachineError):
            state = running(DataDir(root))
            if state is not None and state.server.endswith(f":{port}"):
                return root, state
    return None


def _runs(root: Path) -> bool:
    try:
        return running(DataDir(root)) is not None
    except MachineError:
        return False


def _named() -> Iterator[Path]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if (options := _options(words)) is not None:
                yield _directory(options, (process / "cwd").readlink())
        except OSError:  # it has ended, or belongs to somebody else
            continue


def _options(words: Sequence[str]) -> Sequence[str] | None:
    """What follows `podfit up`; None for another program."""
    for index, word in enumerate(words[1:4], start=1):
        if word in VERBS and Path(words[index - 1]).name in PROGRAMS:
            return words[index + 1 :]
    return None


def _directory(options: Sequence[str], where: Path) -> Path:
    for option, value in zip(options, (*options[1:], ""), strict=True):
        if option == "--data" or option.startswith("--data="):
            return where / (value if option == "--data" else option.removeprefix("--data="))
    return DataDir.at(None).root
