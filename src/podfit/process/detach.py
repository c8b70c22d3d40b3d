"""`up --detach`: the same command in a process of its own, followed until it is ready."""

import os
import subprocess
import sys

from podfit.process.data.data_dir import DataDir
from podfit.process.errors import ClusterError
from podfit.process.foreground import Announce
from podfit.process.run_cluster import READY_FD

LOG_LINES = 15
ERROR = "error: "


def start_detached(data: DataDir, arguments: list[str], *, announce: Announce) -> None:
    """`arguments` are the flags of `up`. Returns when the cluster is ready.

    Raises ClusterError with what it said when it did not get there."""
    data.create()
    reading, writing = os.pipe()
    with data.log.open("ab") as log:
        log_start = log.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "podfit.cli", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(writing,),
            env=os.environ | {READY_FD: str(writing)},
            cwd="/",
        )
    os.close(writing)
    last = ""
    with open(reading) as pipe:
        for line in pipe:
            last = line.rstrip("\n")
            announce(last)
    if not last.startswith("next:"):
        code = child.wait()
        with data.log.open() as log:
            log.seek(log_start)
            said = log.read().splitlines()[-LOG_LINES:]
        failure = not_started(said, code)
        failure.exit_code = code or 3
        raise failure


def not_started(said: list[str], code: int) -> ClusterError:
    """The error that the process itself told last, with what it said of it; without one, all that it said."""
    at = max((number for number, line in enumerate(said) if line.startswith(ERROR)), default=None)
    if at is None:
        return ClusterError(f"the cluster did not start (exit code {code})", evidence=tuple(said))
    evidence = tuple(line.removeprefix("  ") for line in said[at + 1 :])
    return ClusterError(f"the cluster did not start: {said[at].removeprefix(ERROR)}", evidence=evidence)
