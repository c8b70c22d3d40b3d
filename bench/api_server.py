"""The API server that bench/api.py puts under load: a process of its own, and what it takes.

python bench/api_server.py DIRECTORY [--profile]
"""

import argparse
import asyncio
import cProfile
import pstats
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from api_client import Load

from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.context import Context
from podfit.apiserver.server import ApiServer
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.features import FeatureGates
from podfit.net.authority import Authority
from podfit.net.event_loop import run
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Identity
from podfit.process.control.stores import embedded_store


async def serve(directory: Path, profile: bool) -> None:
    """Until SIGTERM; says its port on standard output."""
    clock, stop = SystemClock(), asyncio.Event()
    authority = Authority.load(directory / "pki", clock=clock)
    authority.client("admin", user="kubernetes-admin", groups=("system:masters",))
    store = embedded_store(directory / "store.db")
    api = ApiServer(Context(store, clock, FeatureGates(), lambda _: None), signing_key=directory / "sa.key")
    await api.start()
    admin = Client(Local(api.handler, Identity("admin", ("system:masters",))))
    await admin.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    https = HttpsServer(
        api.handler, server_context(authority.server("server", hosts=("127.0.0.1",))), clients=authority.certificate
    )
    print(await https.listen("127.0.0.1", 0), flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with profiled(profile) as begin:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, begin)
        await stop.wait()
    await https.close(deadline=1)
    await api.stop()
    await store.close()


@contextmanager
def profiled(wanted: bool) -> Iterator[Callable[[], None]]:
    """What is given begins to look; the findings are printed at the end."""
    if not wanted:
        yield lambda: None
        return
    found = cProfile.Profile(time.thread_time)  # what others on the same cores take is not looked at
    yield found.enable
    found.disable()
    pstats.Stats(found, stream=sys.stderr).sort_stats("tottime").print_stats(60)


@contextmanager
def server(directory: Path, *, profile: bool = False) -> Iterator[tuple[int, Load]]:
    """The server's process id, and a client of it."""
    command = [sys.executable, __file__, str(directory), *(("--profile",) if profile else ())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield process.pid, Load(port, tls(directory / "pki"), lambda: cpu_of(process.pid))
    finally:
        process.terminate()
        process.wait(30)


def tls(pki: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def cpu_of(pid: int) -> float:
    """Seconds that all threads of a process took: Linux' CPU clock of another process."""
    return time.clock_gettime((~pid << 3) | 2)


def memory_of(pid: int) -> int:
    """Bytes, proportional."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    run(serve(options.directory, options.profile))


if __name__ == "__main__":
    main()
