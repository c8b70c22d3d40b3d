"""CPU of the API server for each kind of request, this checkout beside another one, in turns.

    python bench/against.py PATH [--rounds 15] [--requests 200] [--only create,resize] [--sqlite]

PATH is another checkout, such as `git worktree add --detach ../before COMMIT` makes. Each side is a process of its own
that answers the requests of `writes` on a store in memory, or with `--sqlite` in a file; its threads count. The two
take turns, a round of one kind at a time, so that whatever else the machine does meets both; the ratio is the median
over the rounds of one median request to the other.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from measure import machine, table
from writes import KINDS, send, server

HERE = Path(__file__).resolve().parents[1]


async def serve(*, sqlite: bool) -> None:
    """Answer a round for each line of standard input: the kind, a seed and how many requests."""
    async with server(sqlite=sqlite) as api:
        print("ready", flush=True)
        for line in sys.stdin:
            kind, seed, count = json.loads(line)
            prepared = list(KINDS[kind](seed, count))
            gc.collect()
            print(median(await send(api, iter(prepared))), flush=True)


class Side:
    """A process with the server of one checkout."""

    def __init__(self, process: "subprocess.Popen[str]", checkout: Path) -> None:
        self._process, self._checkout = process, checkout
        self._line()

    def round(self, kind: str, seed: int, count: int) -> float:
        """Microseconds of CPU that the median request takes."""
        assert self._process.stdin is not None
        print(json.dumps([kind, seed, count]), file=self._process.stdin, flush=True)
        return 1e6 * float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the server of {self._checkout} ended: what it said is above")
        return line


@contextmanager
def side(checkout: Path, *, sqlite: bool) -> Iterator[Side]:
    if not (checkout / "src" / "podfit").is_dir():
        raise SystemExit(f"{checkout} is no checkout of podfit: it has no src/podfit")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--serve", *(["--sqlite"] if sqlite else [])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Side(process, checkout)


def compare(before: Side, now: Side, options: argparse.Namespace) -> None:
    rows = [("request", "before", "now", "ratio", "half of the rounds")]
    for kind in options.only.split(",") if options.only else KINDS:
        pairs = []
        for number in range(options.rounds):
            first, second = (before, now) if number % 2 else (now, before)
            taken = {side: side.round(kind, 7 * (number + 1), options.requests) for side in (first, second)}
            pairs.append((taken[before], taken[now]))
        ratios = [new / old for old, new in pairs]
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        old, new = (median(pair) for pair in zip(*pairs, strict=True))
        rows.append((kind, f"{old:.0f} us", f"{new:.0f} us", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"))
    table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--only", default="", help="kinds of requests, with commas between them")
    parser.add_argument("--sqlite", action="store_true", help="on a store in a file")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(sqlite=options.sqlite))
        return
    if options.path is None:
        parser.error("say the path of the other checkout")
    print(f"in turns: {machine()}", flush=True)
    with side(options.path, sqlite=options.sqlite) as before, side(HERE, sqlite=options.sqlite) as now:
        compare(before, now, options)


if __name__ == "__main__":
    main()
