"""The VPA's bank of histograms: time of each pass over all containers, and memory, for some numbers of containers.

    python bench/vpa.py [--containers 1000,10000,100000] [--rounds 5]

Each container has its own labels and its own VPA, the most expensive case. Process time of the quickest round; memory
is what the process grew by, and of it what the arrays hold.
"""

import argparse
import gc
import resource
import time
from collections.abc import Callable, Iterable

import numpy as np
from measure import machine, table

from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.tracked import PodKey, VpaKey

NOW = 1_770_000_000.0
REGISTERED = 2
"""More times that all are registered: the quickest counts, as of all else."""
GOALS = {"register": "50", "CPU sample": "0.05", "memory sample": "0.05", "estimates": "2", "checkpoints": "100"}
"""Microseconds for each container (one sample of each resource: 0.1; checkpoints of 10,000 in one second)."""


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def timed(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def registered(number: int) -> ClusterState:
    state = ClusterState()
    for index in range(number):
        labels = {"app": f"a{index}"}
        state.set_vpa(VpaKey("ns", f"v{index}"), from_map(labels), None)
        state.set_pod(PodKey("ns", f"p{index}"), labels, ["c"], NOW)
    return state


def exhausted(every: Iterable[object]) -> None:
    for _ in every:
        pass


def measured(number: int, rounds: int) -> tuple[dict[str, float], float, float]:
    """Seconds of each pass; bytes of the process and of the arrays for each container."""
    random, before, found = np.random.default_rng(1), resident(), list[ClusterState]()
    passes = {"register": timed(lambda: found.append(registered(number)))}
    (state,) = found
    slots = state.model.containers.slots.used.nonzero()[0]
    keys = [VpaKey("ns", f"v{index}") for index in range(number)]
    members = state.members(keys)
    for turn in range(rounds + 1):
        now = np.full(number, NOW + 60.0 * turn)
        cpu, memory = random.lognormal(5, 1, number).round(), random.lognormal(19, 1, number).round()
        took = {
            "CPU sample": timed(lambda: state.model.add_cpu(slots, cpu, now)),  # noqa: B023  (called at once)
            "memory sample": timed(lambda: state.model.add_memory(slots, memory, now)),  # noqa: B023
            "estimates": timed(lambda: exhausted(state.estimates(members))),
        }
        if turn:  # the first one touches memory for the first time
            passes |= {name: min(seconds, passes.get(name, seconds)) for name, seconds in took.items()}
    grown = (resident() - before) / number
    passes["rendered"] = timed(lambda: state.recommend({key: {} for key in keys}))
    passes["checkpoints"] = timed(lambda: exhausted(state.checkpoints(keys, NOW + 3600)))
    for _ in range(REGISTERED):  # last, so that the memory of the first counts alone
        gc.collect()
        passes["register"] = min(passes["register"], timed(lambda: registered(number)))
    return passes, grown, state.model.nbytes / number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--containers", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    print(machine())
    rows = [["us for each container", "containers", "pass ms", "us", "goal us"]]
    memory = [["bytes for each container", "containers", "process", "arrays", "goal"]]
    for number in map(int, given.containers.split(",")):
        passes, grown, arrays = measured(number, given.rounds)
        for name, seconds in passes.items():
            row = [name, str(number), f"{seconds * 1e3:.1f}", f"{seconds / number * 1e6:.2f}", GOALS.get(name, "")]
            rows.append(row)
        memory.append(["model", str(number), f"{grown:.0f}", f"{arrays:.0f}", "3000"])
    table(rows)
    print()
    table(memory)


if __name__ == "__main__":
    main()
