"""The command line: what `podfit --help`, `why`, `plan` and `top` cost, beside a Python that does nothing.

    .venv/bin/python bench/commands.py [--rounds 20]

Milliseconds of a whole process: CPU (user and system, median), which other work on the machine hardly changes, and by
the clock (median and worst). They ask a cluster with a simulated node over HTTPS, as an administrator with a
certificate.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measure import PODFIT, data_directory, judge, machine, percentile, table, up

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load

POD = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
}
GOAL_CPU = 350.0  # of a question; by the clock 400


def timed(command: Sequence[str], rounds: int) -> list[tuple[float, float]]:
    """CPU and clock of each."""
    found = []
    for _ in range(rounds + 1):  # the first also compiles what is imported
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
        found.append((1000 * (used.ru_utime + used.ru_stime), 1000 * took))
    return found[1:]


async def create_pod(kubeconfig: str) -> None:
    client = load([Path(kubeconfig)]).client()
    await client.create(convert(POD, Pod))
    pod = await client.get(Pod, "web", "default")
    while pod.status.phase != "Running":
        await asyncio.sleep(0.1)
        pod = await client.get(Pod, "web", "default")
    await client.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=20)
    rounds = arguments.parse_args().rounds
    print(f"commands, milliseconds, {rounds} of each: {machine()}")
    with data_directory() as data:
        up(data, "--node", "simulated")
        kubeconfig = str(data / "admin.kubeconfig")
        asyncio.run(create_pod(kubeconfig))
        rows = [("command", "CPU", "goal", "", "by the clock", "worst", "goal", "")]
        for command, cpu_goal, goal in (
            ([sys.executable, "-c", "pass"], 0.0, 0.0),
            ([PODFIT, "--help"], 0.0, 150.0),
            ([PODFIT, "why", "pod/web", "--kubeconfig", kubeconfig], GOAL_CPU, 400.0),
            ([PODFIT, "plan", "pod/web", "--cpu", "200m", "--kubeconfig", kubeconfig], GOAL_CPU, 400.0),
            ([PODFIT, "top", "--kubeconfig", kubeconfig], GOAL_CPU, 400.0),
        ):
            cpu, clock = zip(*timed(command, rounds), strict=True)
            told = [
                cell
                for middle, aim in ((percentile(cpu, 50), cpu_goal), (percentile(clock, 50), goal))
                for cell in (f"{middle:.0f}", f"{aim:.0f}" if aim else "-", judge(middle, aim) if aim else "-")
            ]
            name = " ".join((Path(command[0]).name, *command[1 : -2 if "--kubeconfig" in command else None]))
            rows.append((name, *told[:4], f"{max(clock):.0f}", *told[4:]))
        table(rows)


if __name__ == "__main__":
    main()
