"""The command line: how long `podfit --help` and `podfit why pod/web` take, beside a Python that does nothing.

    .venv/bin/python bench/commands.py [--rounds 20]

Milliseconds of a whole process, median and worst; `why` asks a cluster with a simulated node over HTTPS.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measure import PODFIT, data_directory, judge, machine, percentile, table, up

from podfit.api.codec import convert
from podfit.api.core.pods import Pod
from podfit.client.kubeconfig import load

POD = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
}


def timed(command: Sequence[str], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds + 1):  # the first also compiles what is imported
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found.append(1000 * (time.perf_counter() - began))
    return found[1:]


async def create_pod(kubeconfig: str) -> None:
    client = load([Path(kubeconfig)]).client()
    await client.create(convert(POD, Pod))
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
        rows = [("command", "median", "worst", "goal", "")]
        for name, command, goal in (
            ("python -c pass", [sys.executable, "-c", "pass"], 0.0),
            ("podfit --help", [PODFIT, "--help"], 150.0),
            ("podfit why pod/web", [PODFIT, "why", "pod/web", "--kubeconfig", kubeconfig], 400.0),
        ):
            found = timed(command, rounds)
            middle = percentile(found, 50)
            told = (f"{goal:.0f}", judge(middle, goal)) if goal else ("", "the floor")
            rows.append((name, f"{middle:.0f}", f"{max(found):.0f}", *told))
        table(rows)


if __name__ == "__main__":
    main()
