"""What the benchmarks share: percentiles, a table with goals, and a cluster of their own."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

# A user's Python keeps compiled modules; some build machines tell it not to.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PODFIT = str(Path(sys.executable).with_name("podfit"))


def percentile(values: Sequence[float], share: int) -> float:
    return quantiles(values, n=100, method="inclusive")[share - 1] if len(values) > 1 else values[0]


def table(rows: Sequence[Sequence[str]]) -> None:
    """The first row is the header."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(
                cell.rjust(width) if index else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )


class Turns:
    """CPU in ms that the loop's thread spends between two turns, at most: how long it keeps everybody waiting."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        """Until cancelled; looks every millisecond."""
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            self.longest, before = max(self.longest, 1000 * (now - before)), now


def judge(value: float, goal: float) -> str:
    return "reached" if value <= goal else f"missed by {value - goal:.1f}"


def machine() -> str:
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return f"{os.cpu_count()} CPUs, load average {load}, Python {sys.version.split()[0]}"


@contextmanager
def data_directory() -> Iterator[Path]:
    """A fresh data directory; whatever runs on it is stopped, and it is removed."""
    path = Path(tempfile.mkdtemp(prefix="podfit-bench-"))
    try:
        yield path
    finally:
        subprocess.run([PODFIT, "down", "--data", str(path)], check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(path)


def up(data: Path, *options: str) -> None:
    """Start a detached cluster on a real node and wait until it is ready."""
    kubeconfig = str(data / "bench.kubeconfig")
    command = [
        PODFIT,
        "up",
        "--detach",
        "--data",
        str(data),
        "--port",
        "0",
        "--kubeconfig",
        kubeconfig,
        "--eviction-hard",
        "",
    ]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
