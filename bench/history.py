"""The usage history: what it costs to write, how large it is, how long a start from it and questions take.

    python bench/history.py                 1,000 containers x 8 days by the minute, DuckDB as it is used
    python bench/history.py --libraries     one day of it in DuckDB and in PyArrow (pip install pyarrow), side by side
    python bench/history.py --containers 100 --days 2

Usage is a wave by the day, with noise. Each figure is of a process of its own, with its largest memory.
"""

import argparse
import asyncio
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGIN = 20_000 * 86_400
MEBI = 1 << 20


def memory() -> float:
    """MiB, the most of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now_mib() -> float:
    """MiB that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEBI


def usage(container: int, chance: random.Random) -> Callable[[int], tuple[int, int]]:
    """Of a minute: CPU in millicores, memory in bytes, of a container with a size and a day of its own."""
    size, phase = chance.lognormvariate(4.5, 1), chance.random() * 1440
    base = chance.lognormvariate(5, 1) * MEBI

    def at(minute: int) -> tuple[int, int]:
        wave = 1 + 0.5 * math.sin(2 * math.pi * (minute + phase) / 1440)
        cpu = size * wave * chance.lognormvariate(0, 0.3)
        return int(cpu) + 1, int(base * (1 + 0.1 * wave) + chance.random() * MEBI) // 4096 * 4096

    return at


async def write(path: Path, containers: int, days: int) -> dict[str, Any]:
    """By a recorder, with time that passes as fast as it can; segments as after each hour."""
    from podfit.api.core.v1.pods.types import Pod
    from podfit.api.meta.codec import convert
    from podfit.decide.autoscaling.tracked import PodKey
    from podfit.testing.clock import VirtualClock
    from podfit.vpa.history.own.compaction import Wanted, compact
    from podfit.vpa.history.own.files import HistoryDirectory
    from podfit.vpa.history.own.recorder import Recorder
    from podfit.vpa.recommender.usage import Sample

    chance, clock = random.Random(1), VirtualClock(datetime.fromtimestamp(BEGIN, UTC))
    spec = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]}
    keys = [PodKey("default", f"web-{number:04}-abcde") for number in range(containers)]
    pods = {
        key: convert(
            {"metadata": {"name": key.name, "namespace": "default", "labels": {"app": "web"}}, "spec": spec}, Pod
        )
        for key in keys
    }
    uses = [usage(number, chance) for number in range(containers)]
    spent = {"compaction wall s": 0.0, "compactions": 0.0}
    before, cpu = now_mib(), 0.0
    most = 0.0

    async def compacting(wanted: Any) -> None:
        began = time.monotonic()
        await compact(wanted)
        spent["compaction wall s"] += time.monotonic() - began
        spent["compactions"] += 1

    recorder = Recorder(HistoryDirectory(path), clock, compacting=compacting)
    recorder.knows(pods.get)
    recorder._open()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    for minute in range(1440 * days):
        told = [use(minute) for use in uses]
        now = clock.now().timestamp()
        read = [Sample(key, "app", now - 5.0, *amounts) for key, amounts in zip(keys, told, strict=True)]
        began = time.process_time()
        await recorder.usage(read)
        cpu += time.process_time() - began
        if minute % 60 == 59:
            assert recorder._journal is not None
            recorder._journal.sync()
            most = max(most, now_mib())
            recorder._close()
            recorder._open()
            assert recorder._file is not None
            await compacting(Wanted(directory=str(path), now=now, active=recorder._file.name))
        clock.jump(60.0)
    spent_by = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "writer CPU ms a minute": 1000 * cpu / (1440 * days),
        "writer MiB more": most - before,
        "bytes": sum(file.stat().st_size for file in path.iterdir()),
        "files": len(list(path.iterdir())),
        "compaction CPU s a day": (spent_by.ru_utime + spent_by.ru_stime - children.ru_utime - children.ru_stime)
        / days,
        "compaction MiB at most": spent_by.ru_maxrss / 1024,
        **spent,
    }


async def start(path: Path, days: int) -> dict[str, Any]:
    """A model from it, as a recommender makes it."""
    from podfit.core.selectors import from_map
    from podfit.decide.autoscaling.cluster_state import ClusterState
    from podfit.decide.autoscaling.tracked import VpaKey
    from podfit.vpa.history.own.streaming import own_history
    from podfit.vpa.history.replay import fill

    state = ClusterState()
    state.set_vpa(VpaKey("default", "web"), from_map({"app": "web"}), None)
    before, began, spent = now_mib(), time.monotonic(), time.process_time()
    now = BEGIN + 86_400.0 * days
    taken = await fill(state, await own_history(path, 8 * 86_400.0, "", print)(now), now)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "start s": time.monotonic() - began,
        "recommender CPU s": time.process_time() - spent,
        "reader CPU s": children.ru_utime + children.ru_stime,
        "samples": taken,
        "recommender MiB more": memory() - before,
        "reader MiB": children.ru_maxrss / 1024,
    }


QUESTIONS = {
    "one pod, a week, by the hour": "select time_bucket(interval 1 hour, time) as t, max(cpu) from usage "
    "where pod = 'web-0005-abcde' group by t",
    "90th percentile of each": "select pod, quantile_cont(cpu, 0.9), max(memory) from usage group by pod",
    "count": "select count(*) from usage",
}


async def ask_all(path: Path) -> dict[str, Any]:
    from podfit.net.system import SystemClock
    from podfit.vpa.history.own.queries import Asked, ask

    figures = {}
    for what, sql in QUESTIONS.items():
        began = time.monotonic()
        answer = await ask(Asked(directory=str(path), sql=sql, seconds=300, memory=1024), SystemClock(), print)
        assert not answer.failed, answer.failed
        figures[f"{what}, s"] = time.monotonic() - began
    figures["MiB"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return figures


def library(name: str) -> dict[str, Any]:
    """One day of 1,000 containers, sorted by container: written, one container read, all grouped."""
    import numpy as np

    began = time.monotonic()
    number, minutes = 1000, 1440
    chance = np.random.default_rng(1)
    if name == "duckdb":
        import duckdb
    else:
        import pyarrow as arrow
        from pyarrow import parquet
    loaded, memory_loaded = time.monotonic() - began, memory()
    series = np.repeat(np.arange(number, dtype=np.int32), minutes)
    times = np.tile(np.arange(minutes) * 60_000, number).astype(np.int64) + BEGIN * 1000
    cpu = chance.lognormal(4.5, 1, number * minutes).astype(np.int64)
    ram = chance.normal(2e8, 1e6, number * minutes).astype(np.int64) // 4096 * 4096
    pods = np.array([f"web-{place:04}-abcde" for place in range(number)], dtype=object)
    figures: dict[str, Any] = {"import s": loaded, "import MiB": memory_loaded}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "day.parquet"

        def timed(what: str, work: Callable[[], Any]) -> Any:
            began, spent = time.monotonic(), time.process_time()
            found = work()
            figures[f"{what} s"] = time.monotonic() - began
            figures[f"{what} CPU s"] = time.process_time() - spent
            return found

        if name == "duckdb":
            opened = duckdb.connect(config={"threads": 1, "memory_limit": "192MB"})
            opened.register("d", {"series": series, "time": times, "cpu": cpu, "memory": ram})
            opened.register("n", {"id": np.arange(number, dtype=np.int32), "pod": pods})
            copied = (
                "copy (select n.pod, make_timestamp_ms(d.time) as time, cpu, memory from d join n on d.series = n.id "
                f"order by pod, time) to '{path}' (format parquet, compression zstd, row_group_size 61440)"
            )
            timed("write", lambda: opened.execute(copied))
            figures["MiB when written"] = memory()
            one = f"select time, cpu, memory from '{path}' where pod = 'web-0500-abcde'"
            assert len(timed("one pod", lambda: opened.execute(one).fetchall())) == minutes
            every = f"select pod, max(cpu), quantile_cont(cpu, 0.9) from '{path}' group by pod"
            assert len(timed("all pods", lambda: opened.execute(every).fetchall())) == number
        else:
            columns = {
                "pod": arrow.DictionaryArray.from_arrays(series, pods),
                "time": arrow.array(times, arrow.timestamp("ms")),
                "cpu": cpu,
                "memory": ram,
            }
            timed(
                "write",
                lambda: parquet.write_table(arrow.table(columns), path, compression="zstd", row_group_size=61_440),
            )
            figures["MiB when written"] = memory()
            own = [("pod", "=", "web-0500-abcde")]
            assert timed("one pod", lambda: parquet.read_table(path, filters=own)).num_rows == minutes
            wanted = [("cpu", "max"), ("cpu", "tdigest")]
            grouped = timed(
                "all pods", lambda: parquet.read_table(path, columns=["pod", "cpu"]).group_by("pod").aggregate(wanted)
            )
            assert grouped.num_rows == number
        figures["bytes"] = path.stat().st_size
    figures["MiB"] = memory()
    return figures


def shown(title: str, figures: dict[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:<34}{value:>14,.3f}" if isinstance(value, float) else f"  {name:<34}{value:>14,}")


def separately(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--containers", type=int, default=1000)
    options.add_argument("--days", type=int, default=8)
    options.add_argument("--libraries", action="store_true")
    options.add_argument("--step", default="")
    options.add_argument("--path", type=Path)
    given = options.parse_args()
    if given.step:
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "write": lambda: asyncio.run(write(given.path, given.containers, given.days)),
            "start": lambda: asyncio.run(start(given.path, given.days)),
            "ask": lambda: asyncio.run(ask_all(given.path)),
            "duckdb": lambda: library("duckdb"),
            "pyarrow": lambda: library("pyarrow"),
        }
        print(json.dumps(steps[given.step]()))
        return
    if given.libraries:
        for name in ("duckdb", "pyarrow"):
            shown(name, separately("--step", name))
        return
    path = given.path or Path(tempfile.mkdtemp())
    try:
        size = ("--containers", str(given.containers), "--days", str(given.days), "--path", str(path))
        for step in ("write", "start", "ask"):
            shown(step, separately("--step", step, *size))
    finally:
        if given.path is None:
            shutil.rmtree(path)


if __name__ == "__main__":
    main()
