"""The pytest fixture: until a cluster is ready, what a test costs, and two hours of time with ten pods.

    .venv/bin/python bench/fixture.py [--rounds 10]

Seconds of real time, median (and worst). Beside them, as others report: kind takes 12 to 50 s until a cluster is ready,
envtest about 5 s.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podfit.testing.cluster import Cluster

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
    },
}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    made = work()
    return time.perf_counter() - began, made


def show(what: str, seconds: list[float], goal: str) -> None:
    print(f"{what:<44} {statistics.median(seconds):8.3f} s  (worst {max(seconds):.3f})   goal {goal}")


def one_round(*, with_hours: bool) -> tuple[float, float, float]:
    """Until ready, a whole test, and two hours (0 when not asked for)."""
    with tempfile.TemporaryDirectory() as directory:
        ready, cluster = timed(lambda: Cluster(Path(directory)))
        used, _ = timed(lambda: (cluster.apply(POD | {"metadata": {"name": "web"}}), cluster.pod("web")))
        hours = 0.0
        if with_hours:
            for number in range(9):
                cluster.apply(POD | {"metadata": {"name": f"web-{number}"}})
            hours, _ = timed(lambda: cluster.clock.advance(hours=2))
        closed, _ = timed(cluster.close)
    return ready, ready + used + closed, hours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    figures = [one_round(with_hours=number < 3) for number in range(rounds + 1)]  # the first also imports everything
    ready, test, hours = zip(*figures, strict=True)
    print(f"{'the first cluster of a process':<44} {ready[0]:8.3f} s")
    show("cluster ready", list(ready[1:]), "0.3 s")
    show("a test: ready, one pod running, closed", list(test[1:]), "-")
    show("two hours with ten pods", [hour for hour in hours if hour], "2 s")


if __name__ == "__main__":
    main()
