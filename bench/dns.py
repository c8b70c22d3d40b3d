"""The name server of pods: CPU of a question, and how long answers take at a steady rate.

`python bench/dns.py [--rate 5000] [--seconds 5] [-o json]`: a name server in a process of its own, as `podfit dns` and
`up` run it (uvloop), with 1,000 Services and a headless one of 100 endpoints; a client on this machine asks by UDP at
that rate, and counts for each question the time until its answer. CPU is the server's own (user and system), divided by
the questions. Beside: names that are asked once each (nothing is prepared), names that there are not, and names of
others from the cache.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop

from podfit.decide.dns.records import Record, RecordType, address_record
from podfit.decide.dns.resolvers import Believed, Given
from podfit.decide.dns.zone import Question, Zone
from podfit.dns.cache import Kept
from podfit.dns.forwarder import Forwarder
from podfit.dns.metrics import DnsMetrics
from podfit.dns.server import DnsServer
from podfit.dns.wire import name_wire, pack_believed
from podfit.net.system import SystemClock, SystemRandom

SERVICES, ENDPOINTS = 1000, 100
MOST_CPU_US, MOST_P99_MS = 120.0, 5.0


def zone() -> Zone:
    made = Zone("cluster.local", "10.96.0.10")
    made.set_namespace("shop", there=True)
    for number in range(SERVICES):
        name = f"s{number}.shop.svc.cluster.local"
        srv = Record(f"_http._tcp.{name}", RecordType.SRV, name, (0, 100, 80))
        made.put(("shop", f"s{number}", ""), (address_record(name, f"10.96.{number // 250 + 1}.{number % 250}"), srv))
    peers = tuple(address_record("peers.shop.svc.cluster.local", f"10.244.0.{number}") for number in range(ENDPOINTS))
    made.put(("shop", "peers", ""), peers)
    return made


def serve(pipe: Connection) -> None:
    """Says its port, then its CPU in seconds for each line that it is sent."""

    async def run() -> None:
        clock, counts = SystemClock(), DnsMetrics()

        async def nobody() -> tuple[()]:
            return ()

        forwarder = Forwarder(nobody, clock, SystemRandom(), counts)
        now = clock.monotonic()
        for number in range(200):
            name = f"w{number}.example.com"
            what = Believed(0, (Given(name, 1, 30, name_wire(name), bytes((192, 0, 2, 1))),), (), 30)
            text = name_wire(name) + b"\0\1\0\1"
            forwarder.cache.put(Question(name, 1), Kept(what, pack_believed(text, what), now, now + 3600))
        server = DnsServer(zone(), forwarder, [ip_network("127.0.0.0/8")], clock, counts)
        pipe.send(await server.listen("127.0.0.1", 0))
        while await asyncio.to_thread(pipe.recv):
            used = resource.getrusage(resource.RUSAGE_SELF)
            pipe.send(used.ru_utime + used.ru_stime)
        await server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def questions(names: Iterator[str], kind: int = 1) -> Iterator[bytes]:
    tail = kind.to_bytes(2, "big") + b"\0\1" + b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
    for number, name in enumerate(names):
        yield (number & 0xFFFF).to_bytes(2, "big") + b"\1\0\0\1\0\0\0\0\0\1" + name_wire(name) + tail


def repeated(names: list[str]) -> Iterator[str]:
    while True:
        yield from names


CASES: dict[str, Callable[[], Iterator[bytes]]] = {
    "Services": lambda: questions(repeated([f"s{number}.shop.svc.cluster.local" for number in range(SERVICES)])),
    "SRV": lambda: questions(repeated([f"_http._tcp.s{n}.shop.svc.cluster.local" for n in range(SERVICES)]), 33),
    "100 endpoints": lambda: questions(repeated(["peers.shop.svc.cluster.local"])),
    "names that there are not, each once": lambda: questions(
        f"n{number}.shop.svc.cluster.local" for number in range(10**7)
    ),
    "names of others, kept": lambda: questions(repeated([f"w{number}.example.com" for number in range(200)])),
}


def ask(port: int, asked: Iterator[bytes], rate: float, seconds: float) -> tuple[list[float], int]:
    """Seconds until each answer, and how many questions were sent: at their times, however late answers are."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.connect(("127.0.0.1", port))
        sock.setblocking(False)
        sent_at, took = [0.0] * 65536, list[float]()
        begun, total = time.perf_counter(), int(rate * seconds)
        sent, last = 0, 0.0
        while sent < total or (len(took) < sent and time.perf_counter() - last < 1):
            now = time.perf_counter()
            while sent < total and now >= begun + sent / rate:
                question = next(asked)
                sent_at[int.from_bytes(question[:2], "big")] = last = now
                sock.send(question)
                sent += 1
            try:
                answer = sock.recv(4096)
            except BlockingIOError:
                time.sleep(0.0001)
                continue
            took.append(time.perf_counter() - sent_at[int.from_bytes(answer[:2], "big")])
    return took, sent


def measure(rate: float, seconds: float) -> dict[str, dict[str, float]]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    found = {}
    try:
        port = ours.recv()
        for name, case in CASES.items():
            asked = case()
            ask(port, asked, rate, 0.3)
            ours.send(True)
            before = ours.recv()
            took, sent = ask(port, asked, rate, seconds)
            ours.send(True)
            cpu = ours.recv() - before
            cuts = statistics.quantiles(took, n=100)
            found[name] = {
                "cpu_us": 1e6 * cpu / sent,
                "p50_ms": 1e3 * cuts[49],
                "p99_ms": 1e3 * cuts[98],
                "lost": sent - len(took),
                "asked": sent,
            }
    finally:
        ours.send(False)
        process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    given = parser.parse_args()
    found = measure(given.rate, given.seconds)
    if given.output == "json":
        print(json.dumps(found))
        return
    load = Path("/proc/loadavg").read_text().split()[0]
    print(f"{given.rate:.0f} questions a second, {os.cpu_count()} CPUs, load {load}")
    print(f"{'':38}{'CPU us':>8}{'p50 ms':>8}{'p99 ms':>8}{'lost':>6}")
    for name, row in found.items():
        cells = f"{row['cpu_us']:8.1f}{row['p50_ms']:8.2f}{row['p99_ms']:8.2f}{row['lost']:6.0f}"
        print(f"{name:38}{cells}")
    print(f"goal: at most {MOST_CPU_US:.0f} us of CPU a question, p99 under {MOST_P99_MS:.0f} ms")


if __name__ == "__main__":
    main()
