"""Latency beside borrowers, in the kernel alone: the tiers that the kubelet makes, without containers. Root, cgroup v1.

    .venv/bin/python bench/spare.py

Five pairs, without and with a spinning process on each CPU in the tier of spare capacity: p99 of a request each 25 ms
that takes 2 ms of CPU, in the Burstable tier; which part of the CPU that it leaves the borrowers have; after how many
ms a spike has nine tenths of the CPU that it has alone. The tree comes before other work of the machine, but for what
has a real-time priority.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupConfig, Layout

PAIRS, SECONDS, MOST_SHARES = 5, 5.0, 262_144
LATENCY = Path(__file__).parents[1] / "tests" / "support" / "latency.py"
LAYOUT = Layout(f"/podfit-bench-{os.getpid()}")
OWNER, BORROWER = LAYOUT.pod("owner", "Burstable"), LAYOUT.pod("borrower", "Spare")


def inside(path: str, *command: str) -> "subprocess.Popen[bytes]":
    places = " ".join(f"/sys/fs/cgroup/{name}{path}/cgroup.procs" for name in ("cpu", "cpuacct"))
    enter = f'for place in {places}; do echo $$ > $place; done; exec "$@"'
    return subprocess.Popen(["sh", "-c", enter, "sh", *command])


def used(path: str) -> float:
    return int(Path(f"/sys/fs/cgroup/cpuacct{path}/cpuacct.usage").read_text()) / 1e9


def measured(what: str, out: Path, *, borrowed: bool) -> tuple[list[float], float]:
    cpus = len(os.sched_getaffinity(0))
    spinning = [inside(BORROWER, "sh", "-c", "while :; do :; done") for _ in range(cpus if borrowed else 0)]
    time.sleep(0.5)
    lent, owned, began = used(BORROWER), used(OWNER), time.monotonic()
    inside(OWNER, sys.executable, str(LATENCY), what, str(SECONDS), str(out)).wait()
    left = cpus * (time.monotonic() - began) - (used(OWNER) - owned)
    part = (used(BORROWER) - lent) / left
    for process in spinning:
        process.kill()
        process.wait()
    return json.loads(out.read_text()), part


def p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)]


def main() -> None:
    cgroups = detect(LAYOUT).cgroups
    for path in (LAYOUT.root, LAYOUT.qos("Burstable"), LAYOUT.qos("Spare"), OWNER, BORROWER):
        cgroups.create(path, CgroupConfig(cpu_shares=2 if path.startswith(LAYOUT.spare) else 512))
    for path in (LAYOUT.prefix, LAYOUT.root):
        cgroups.set_cpu_shares(path, MOST_SHARES)
    print(f"cpu.idle {'is' if cgroups.set_idle(LAYOUT.qos('Spare')) else 'is not'} there")
    try:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory, "found")
            pairs = [
                {borrowed: measured("server", out, borrowed=borrowed) for borrowed in (False, True)}
                for _ in range(PAIRS)
            ]
            spikes = [
                [measured("spike", out, borrowed=borrowed)[0] for borrowed in (False, True)] for _ in range(PAIRS)
            ]
    finally:
        time.sleep(0.5)
        for tree in LAYOUT.trees:
            cgroups.remove(tree)
    print("p99 alone, ms  ", ", ".join(f"{p99(pair[False][0]):.2f}" for pair in pairs))
    print("p99 beside, ms ", ", ".join(f"{p99(pair[True][0]):.2f}" for pair in pairs))
    print(f"median of ratios {statistics.median(p99(pair[True][0]) / p99(pair[False][0]) for pair in pairs):.2f}")
    print(f"borrowers had {100 * statistics.median(pair[True][1] for pair in pairs):.0f} % of what was left")
    backs = []
    for alone, beside in spikes:
        usual = 0.9 * statistics.median(alone)
        backs.append(50 * next((number for number, part in enumerate(beside) if part >= usual), len(beside)))
    print("a spike has its CPU after, ms", ", ".join(map(str, backs)))


if __name__ == "__main__":
    main()
