"""Run inside of a container, by the python of the machine: a server that is sensitive to latency, a spike, and a batch.

latency.py server SECONDS FILE    a request each 25 ms, which takes 2 ms of CPU; FILE: milliseconds of each
latency.py spike SECONDS FILE     nothing but work; FILE: of each 50 ms which part of a CPU it had
latency.py batch SECONDS FILE     50 ms of work, then 25 ms of nothing, and so on; FILE: nothing
"""

import json
import sys
import time
from pathlib import Path

EVERY, WORK, WINDOW = 0.025, 0.002, 0.050


def work(seconds: float) -> None:
    """So much CPU, whatever else runs."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def server(seconds: float) -> list[float]:
    began, took = time.perf_counter(), []
    for number in range(int(seconds / EVERY)):
        due = began + number * EVERY
        if (early := due - time.perf_counter()) > 0:
            time.sleep(early)
        work(WORK)
        took.append(1000 * (time.perf_counter() - due))
    return took


def spike(seconds: float) -> list[float]:
    parts = []
    for _ in range(int(seconds / WINDOW)):
        began, cpu = time.perf_counter(), time.thread_time()
        while time.perf_counter() - began < WINDOW:
            pass
        parts.append((time.thread_time() - cpu) / (time.perf_counter() - began))
    return parts


def batch(seconds: float) -> list[float]:
    """It leaves a CPU free for moments, or the guest would lose its own for longer: what has a real-time priority, as
    the guest on this machine, may have 95 % of a CPU, and stands still for 50 ms in each second that it wants more."""
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        work(0.05)
        time.sleep(0.025)
    return []


if __name__ == "__main__":
    what, lasting, file = sys.argv[1:]
    found = {"server": server, "spike": spike, "batch": batch}[what](float(lasting))
    Path(f"{file}.new").write_text(json.dumps(found))
    Path(f"{file}.new").rename(file)
