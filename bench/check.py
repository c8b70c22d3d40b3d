"""A check with a history: what some works cost now beside what they cost in the runs before. It warns, and never fails.

    python bench/check.py [--record] [--strict] [--history bench/history.jsonl]

Behaviour tests read no clock; how long things take is watched here. A figure is the CPU of the quickest of some tries,
in beats: how many times as long as a fixed piece of Python takes that was run beside it, so that figures of several
machines and of a busy one can be compared. Warned of is what takes more than MOST times the median of its last LAST
records. `--record` adds today's figures to the history; with `--strict` a warning is exit code 1.
"""

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import writes
from fixture import POD
from measure import table

import vpa
from podfit.api.structural.cel.check import Checked, check
from podfit.api.structural.cel.evaluate import Program
from podfit.testing.cluster import Cluster

HISTORY = Path(__file__).with_name("history.jsonl")
MOST, LAST, TRIES = 2.0, 10, 5
REQUESTS, CONTAINERS = 100, 10_000
CEL = "[1,2,3,4,5,6,7,8,9,10].all(a, " * 7 + "true" + ")" * 7
CEL_BUDGET = 1_000_000

Figures = dict[str, float]


def beat() -> float:
    """Seconds of CPU that the fixed piece of work takes now: dicts, lists, texts and a sort."""
    before = time.thread_time()
    sorted({str(number): [number] for number in range(20_000)})
    return time.thread_time() - before


def beats(seconds: float) -> float:
    return seconds / min(beat() for _ in range(TRIES))


def least(work: Callable[[], object]) -> float:
    took = []
    for _ in range(TRIES):
        gc.collect()
        before = time.process_time()
        work()
        took.append(time.process_time() - before)
    return min(took)


async def requests() -> Figures:
    """The API server's own work for a request of each kind."""
    figures = Figures()
    async with writes.server() as api:
        for name, make in writes.KINDS.items():
            times = [
                seconds
                for number in range(TRIES)
                for seconds in await writes.send(api, make(7 * (number + 1), REQUESTS))
            ]
            figures[f"request: {name}"] = beats(min(times))
    return figures


def autoscaler() -> Figures:
    """Each pass over many containers."""
    passes, _, _ = vpa.measured(CONTAINERS, TRIES)
    return {f"vpa: {name}": beats(seconds) for name, seconds in passes.items()}


def expression() -> Figures:
    checked = check(CEL, {})
    assert isinstance(checked, Checked)
    program = Program(checked)
    return {"CEL: to the end of its budget": beats(least(lambda: program.run({}, CEL_BUDGET)))}


def hours() -> float:
    """Seconds of CPU for two hours of virtual time with ten pods that run."""
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory))
        try:
            for number in range(10):
                pod: dict[str, Any] = POD | {"metadata": {"name": f"web-{number}"}}
                cluster.apply(pod)
            before = time.process_time()
            cluster.clock.advance(hours=2)
            return time.process_time() - before
        finally:
            cluster.close()


def virtual_time() -> Figures:
    return {"cluster: two hours with ten pods": beats(min(hours() for _ in range(3)))}


def measured() -> Figures:
    return asyncio.run(requests()) | autoscaler() | expression() | virtual_time()


def records(path: Path) -> list[Figures]:
    return [json.loads(line)["beats"] for line in path.read_text().splitlines()] if path.exists() else []


def usual(name: str, before: list[Figures]) -> float | None:
    """The median of the last records; None where there is none."""
    known = [figures[name] for figures in before if name in figures][-LAST:]
    return statistics.median(known) if known else None


def compared(figures: Figures, before: list[Figures]) -> Iterator[tuple[str, float, float | None, str]]:
    for name, value in figures.items():
        most = usual(name, before)
        word = "no record" if most is None else "WARNING: slower" if value > MOST * most else "as before"
        yield name, value, most, word


def record(path: Path, figures: Figures) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    rounded = {name: float(f"{value:.3g}") for name, value in figures.items()}
    line = {"day": time.strftime("%F", time.gmtime()), "commit": commit.stdout.strip(), "beats": rounded}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--history", type=Path, default=HISTORY)
    given = parser.parse_args()
    figures, before = measured(), records(given.history)
    rows = list(compared(figures, before))
    table(
        [
            ["CPU in beats", "now", "usual", ""],
            *([name, f"{value:.3g}", "-" if most is None else f"{most:.3g}", word] for name, value, most, word in rows),
        ]
    )
    slower = [name for name, _, _, word in rows if word.startswith("WARNING")]
    print(f"{len(slower)} of {len(rows)} take more than {MOST} times what they took: {', '.join(slower) or 'none'}")
    if given.record:
        record(given.history, figures)
    return int(given.strict and bool(slower))


if __name__ == "__main__":
    sys.exit(main())
