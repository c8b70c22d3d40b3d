"""`up --detach`: the same command in a process of its own, followed until it is ready."""

import os
import subprocess
import sys

from podfit.process.errors import ClusterError
from podfit.process.foreground import READY_FD, Announce
from podfit.process.options import MakeRoom, UpOptions

LOG_LINES = 15


def start_detached(options: UpOptions, *, log_format: str, verbose: int, announce: Announce) -> None:
    """Returns when the cluster is ready. Raises ClusterError with what it said when it did not get there."""
    options.data.create()
    reading, writing = os.pipe()
    with options.data.log.open("ab") as log:
        log_start = log.tell()
        child = subprocess.Popen(
            [sys.executable, "-m", "podfit.cli", *arguments_of(options, log_format, verbose)],
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
        with options.data.log.open() as log:
            log.seek(log_start)
            said = tuple(log.read().splitlines()[-LOG_LINES:])
        failure = ClusterError(f"the cluster did not start (exit code {code})", evidence=said)
        failure.exit_code = code or 3
        raise failure


def arguments_of(options: UpOptions, log_format: str, verbose: int) -> list[str]:
    """The command line that means the same."""
    arguments = ["up", "--data", str(options.data.root), "--port", str(options.port), "--nodes", str(options.nodes)]
    if options.kubeconfig:
        arguments += ["--kubeconfig", str(options.kubeconfig.absolute())]
    if options.node:
        arguments += ["--node", str(options.node)]
    arguments += options.listening.arguments() + options.ranges.arguments()
    if options.runtime_endpoint:
        arguments += ["--container-runtime-endpoint", options.runtime_endpoint]
    if options.make_room is not MakeRoom.NO:
        arguments.append("--make-room" if options.make_room is MakeRoom.SHRINK else "--make-room=preempt")
    if options.gates.overrides:
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in options.gates.overrides.items())
        arguments += ["--feature-gates", gates]
    if options.legacy.switches:
        arguments += ["--legacy", ",".join(sorted(options.legacy.switches))]
        arguments += ["--legacy-clients", ",".join(options.legacy.clients)]
    if options.encryption:
        arguments += ["--encryption-provider-config", str(options.encryption.absolute())]
    arguments += options.kubelet.arguments() + options.audit.arguments()
    return [*arguments, "--log-format", log_format, *["-v"] * verbose]
