"""What long lists cost others: a client's gets while all pods are listed, whole and in pages.

    python bench/lists.py [--pods 100000] [--seconds 20]

The server is a process of its own, with HTTPS, on a store in memory. One process lists again and again, as JSON and as
kubectl's tables; this one asks for one pod after the other, 200 times a second, and is timed. `turn` is the longest
CPU time of the server's loop between two turns; the goal of the p99 is 20 ms.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api_client import Connection, Load, encoded
from api_server import cpu_of, tls
from measure import Turns, judge, machine, percentile, table
from objects import PODS, pod

from podfit.apiserver.context import Context
from podfit.apiserver.server import ApiServer
from podfit.core.features import FeatureGates
from podfit.net.authority import Authority
from podfit.net.event_loop import run
from podfit.net.http_server import HttpsServer
from podfit.net.inline_executor import InlineExecutor
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Identity, Request, Response
from podfit.store.log import Loaded
from podfit.store.logged import LoggedStore
from podfit.store.memory import MemoryLog, memory_store
from podfit.store.protocol import Record

GOAL = 20.0  # milliseconds
PAUSE = 0.005  # seconds between two gets
PAGE = 500
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
COURSES = {
    "nothing is listed": "",
    "whole": f"{PODS}",
    f"pages of {PAGE}": f"{PODS}?limit={PAGE}",
    "whole, as a table": TABLE,
}


async def one_pod() -> bytes:
    """A pod as the server keeps it."""
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as made:
        store = memory_store(InlineExecutor)
        api = ApiServer(
            Context(store, SystemClock(), FeatureGates(), lambda _: None), signing_key=Path(made) / "sa.key"
        )
        await api.start()
        for path, body in (("serviceaccounts", b'{"metadata":{"name":"default"}}'), ("pods", pod("pod-000000"))):
            url = f"/api/v1/namespaces/default/{path}"
            asked = Request("POST", url, {}, {"content-type": "application/json"}, body)
            answer = await api.handler(asked.with_identity(Identity("admin", ("system:masters",))))
            assert isinstance(answer, Response)
            assert answer.status == 201, answer.body
        record = await store.get("/registry/pods/default/pod-000000")
        assert record is not None
        await api.stop()
        await store.close()
        return record.value


async def serve(directory: Path, pods: int) -> None:
    """Until SIGTERM; says its port, and on SIGUSR1 the longest turn since it was last asked."""
    value, stop, turns = await one_pod(), asyncio.Event(), Turns()
    records = [
        Record(f"/registry/pods/default/pod-{number:06}", value.replace(b"pod-000000", b"pod-%06d" % number), 2, 2)
        for number in range(pods)
    ]
    store, clock = LoggedStore(MemoryLog(), Loaded(records, 2, compacted=0)), SystemClock()
    del records
    authority = Authority.load(directory / "pki", clock=clock)
    authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    api = ApiServer(Context(store, clock, FeatureGates(), lambda _: None), signing_key=directory / "sa.key")
    await api.start()
    certificate = authority.server("server", hosts=("127.0.0.1",))
    https = HttpsServer(api.handler, server_context(certificate), clients=authority.certificate)
    print(await https.listen("127.0.0.1", 0), flush=True)

    def tell() -> None:
        print(turns.longest, flush=True)
        turns.longest = 0.0

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, tell)
    looking = asyncio.create_task(turns.run())
    await stop.wait()
    looking.cancel()
    await https.close(deadline=1)
    await api.stop()
    await store.close()


# ---------------------------------------------------------------------- who lists


def list_for_ever(directory: Path, port: int, path: str, accept: str) -> None:
    """Says the number of each list that is complete."""
    client = Load(port, tls(directory / "pki"), lambda: 0.0).connect()
    number = 0
    while True:
        token = ""
        while True:
            answer = _read(client, f"{path}&continue={token}" if token else path, accept)
            token = answer.partition(b'"continue":"')[2].partition(b'"')[0].decode()
            if not token:
                break
        number += 1
        print(number, flush=True)


def _read(client: Connection, path: str, accept: str) -> bytes:
    """The first 64 KiB of an answer, which is read to its end."""
    request = encoded("GET", path).replace(b"Accept: application/json", b"Accept: " + accept.encode())
    client.sock.setblocking(True)
    client.sock.sendall(request)
    begun, last, length, chunked = b"", b"", -1, False
    while True:
        data: bytes = client.sock.recv(1 << 20)
        if not data:
            raise RuntimeError("the server closed the connection")
        begun = (begun + data)[: 1 << 16]
        last = (last + data)[-16:]
        if length < 0:
            head, found, body = begun.partition(b"\r\n\r\n")
            if not found:
                continue
            assert head[9:10] == b"2", begun
            text = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            length = int(text) - len(body) if text else 0
            chunked = not text
        else:
            length -= len(data)
        if (chunked and last.endswith(b"0\r\n\r\n")) or (not chunked and length <= 0):
            return begun


@contextmanager
def child(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process ended"
    return line


# ---------------------------------------------------------------------- who is timed


def gets(load: Load, seconds: float, pods: int) -> list[float]:
    """Milliseconds that each took."""
    client, end, times = load.connect(), time.perf_counter() + seconds, list[float]()
    buffer = bytearray(1 << 20)
    while time.perf_counter() < end:
        client.send(encoded("GET", f"{PODS}/pod-{len(times) * 7919 % pods:06}"))
        client.sock.setblocking(True)
        while not client.receive(buffer):
            pass
        times.append(1000 * (time.perf_counter() - client.sent))
        time.sleep(PAUSE)
    return times


def measure(directory: Path, process: "subprocess.Popen[str]", options: argparse.Namespace) -> None:
    port = int(line_of(process))
    load = Load(port, tls(directory / "pki"), lambda: cpu_of(process.pid))
    gets(load, 1, options.pods)
    rows = [("listed meanwhile", "lists", "gets", "p50 ms", "p99 ms", "goal", "", "turn ms")]

    def turn() -> float:
        process.send_signal(signal.SIGUSR1)
        return float(line_of(process))

    for name, path in COURSES.items():
        turn()
        lists = 0
        if not path:
            times = gets(load, options.seconds, options.pods)
            longest = turn()
        else:
            place, accept = (PODS, TABLE) if path == TABLE else (path, "application/json")
            with child("--list", str(directory), str(port), place, accept) as lister:
                times = gets(load, options.seconds, options.pods)
                longest = turn()
                lister.terminate()
                assert lister.stdout is not None
                lists = len(lister.stdout.read().split())
        p50, p99 = percentile(times, 50), percentile(times, 99)
        shown = (f"{p50:.1f}", f"{p99:.1f}", f"{GOAL:.0f}", judge(p99, GOAL), f"{longest:.1f}")
        rows.append((name, str(lists), str(len(times)), *shown))
    table(rows)


def main() -> None:
    if sys.argv[1:2] == ["--list"]:
        place, port, path, accept = sys.argv[2:]
        list_for_ever(Path(place), int(port), path, accept)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        run(serve(options.serve, options.pods))
        return
    print(f"{options.pods} pods: {machine()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as made:
        directory = Path(made)
        with child("--serve", made, "--pods", str(options.pods)) as process:
            measure(directory, process, options)


if __name__ == "__main__":
    main()
