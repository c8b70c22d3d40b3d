"""The journey of one resize, from the PATCH to its completion, through everything that runs in `podfit up`.

    .venv/bin/python bench/journey.py [--rounds 300] [--show] [--before PATH]

A pod of a simulated node grows and shrinks again. One resize is counted: calls of Python functions, functions, files,
codings (calls into msgspec and json), and the requests to the API. Then many are timed, without counting: CPU
of the process, the median of a resize. `--before` is another checkout, such as `git worktree add --detach ../before
COMMIT` makes; the two are timed in turns. `--show` lists the files in which most calls are.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from podfit.net.event_loop import COLLECT
from podfit.testing.cluster import Cluster

HERE = Path(__file__).resolve().parents[1]
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "i",
                "resources": {
                    "requests": {"cpu": "100m", "memory": "64Mi"},
                    "limits": {"cpu": "200m", "memory": "128Mi"},
                },
            }
        ]
    },
}
SIZES = ({"cpu": "150m", "memory": "96Mi"}, {"cpu": "100m", "memory": "64Mi"})
CODINGS = ("encode", "encode_into", "decode", "convert", "to_builtins")
CODEC = "meta/codec.py"
WARM = 50


class Journey:
    """A cluster whose one pod is resized."""

    def __init__(self, directory: Path) -> None:
        self.cluster = Cluster(directory)
        self.cluster.apply(POD)
        self.cluster.clock.advance(90)  # what a start brings with it is over
        self._number = 0
        for _ in range(WARM):
            self.resize()

    def resize(self) -> None:
        self.cluster.resize("web", app={"requests": SIZES[self._number % 2]})
        self.cluster.settle()
        self._number += 1

    def cpu(self, rounds: int) -> float:
        """Milliseconds of CPU of the process, the median."""
        taken = []
        gc.collect()
        gc.set_threshold(*COLLECT)  # as in `podfit up`
        for _ in range(rounds):
            began = time.process_time()
            self.resize()
            taken.append(time.process_time() - began)
            if self._number % 50 == 0:  # the time of day, for whatever waits for it, is not of the journey
                self.cluster.clock.advance(30)
        return 1000 * median(taken)


class Counts:
    """What one journey calls, in the thread of the cluster."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.codings: Counter[str] = Counter()
        self.requests: dict[FrameType, str] = {}
        """By the frame that sends them, which is called again each time that it goes on."""

    def count(self, journey: Journey) -> None:
        async def begin() -> None:
            sys.setprofile(self._told)

        async def end() -> None:
            sys.setprofile(None)

        journey.cluster.run(begin())
        journey.resize()
        journey.cluster.run(end())

    def _told(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and "/podfit/" in code.co_filename:
            self.calls[code.co_filename.partition("/podfit/")[2], code.co_qualname] += 1
            if code.co_qualname == "Local.send":
                request = frame.f_locals.get("request")
                self.requests[frame] = f"{getattr(request, 'method', '?')} {getattr(request, 'path', '')}"
        elif event == "call" and code.co_filename.endswith(("json/decoder.py", "json/encoder.py")):
            if code.co_name in ("decode", "encode"):
                self.codings[self._caller(frame)] += 1
        elif event == "c_call" and argument.__name__ in CODINGS:
            module = getattr(argument, "__module__", "") or type(argument.__self__).__module__
            if module.startswith("msgspec"):
                self.codings[self._caller(frame)] += 1

    @staticmethod
    def _caller(frame: FrameType) -> str:
        """The nearest function that is not the codec."""
        at: FrameType | None = frame
        while at is not None and ("/podfit/" not in at.f_code.co_filename or at.f_code.co_filename.endswith(CODEC)):
            at = at.f_back
        return "" if at is None else f"{at.f_code.co_filename.partition('/podfit/')[2]}:{at.f_code.co_qualname}"

    def lines(self, *, show: bool) -> Iterator[str]:
        files = Counter[str]()
        for (file, _), count in self.calls.items():
            files[file] += count
        yield f"calls {self.calls.total()}, functions {len(self.calls)}, files {len(files)}"
        yield f"codings {self.codings.total()}, requests {len(self.requests)}"
        yield from (f"    {request}" for request in self.requests.values())
        if show:
            yield from (f"  {count:5} {name}" for name, count in self.codings.most_common(60))
            yield from (f"  {count:5} {name}" for name, count in files.most_common(60))


def other(checkout: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    return subprocess.Popen(
        [sys.executable, __file__, "--serve"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ask(process: "subprocess.Popen[str]", rounds: int) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(rounds, file=process.stdin, flush=True)
    return float(json.loads(process.stdout.readline()))


def compare(before: Path, rounds: int) -> Iterator[str]:
    """In turns, so that whatever else the machine does meets both."""
    sides = [other(before), other(HERE)]
    try:
        taken = [[ask(side, 25) for side in sides] for _ in range(max(2, rounds // 25))]
    finally:
        for side in sides:
            side.terminate()
            side.wait()
    then, now = (median(figures) for figures in zip(*taken, strict=True))
    yield f"CPU of a resize: {then:.2f} ms before, {now:.2f} ms now, {median(b / a for a, b in taken):.2f} of it"


def serve() -> None:
    with tempfile.TemporaryDirectory() as directory:
        journey = Journey(Path(directory))
        for line in sys.stdin:
            print(json.dumps(journey.cpu(int(line))), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    with tempfile.TemporaryDirectory() as directory:
        journey, counts = Journey(Path(directory)), Counts()
        counts.count(journey)
        print(*counts.lines(show=given.show), sep="\n")
        if given.before is None:
            print(f"CPU of a resize: {journey.cpu(given.rounds):.2f} ms")
        journey.cluster.close()
    if given.before is not None:
        print(*compare(given.before, given.rounds), sep="\n")


if __name__ == "__main__":
    main()
