"""What one API request asks of etcd: requests by kind, and milliseconds until it is answered.

    .venv/bin/python bench/etcd.py [--requests 100] [--at-once 16] [--before PATH]

One API server in this process on one etcd (`scripts/setup-etcd`). The client is a user whose rights come from a
binding; a resource quota and a LimitRange count its pods. Then as many requests are sent at once. `--before` is another
checkout, such as `git worktree add --detach ../before COMMIT` makes: the two run one after the other.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from objects import PODS, STRATEGIC, pod, resize
from writes import ADMIN, request

from podfit.apiserver.context import Context
from podfit.apiserver.server import ApiServer
from podfit.core.features import FeatureGates
from podfit.net.system import SystemClock
from podfit.net.wire import Identity, Request
from podfit.store.etcd.members import EtcdMember
from podfit.store.etcd.opening import etcd_store
from podfit.store.etcd.options import EtcdOptions

HERE = Path(__file__).resolve().parents[1]
JANE = Identity("jane", ("system:authenticated",))
DEFAULT = "/api/v1/namespaces/default"
BINDING = {
    "metadata": {"name": "jane"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
}
SETTING_UP = (
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING),
    ("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "default"}}),
    ("POST", f"{DEFAULT}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9k", "cpu": "9k"}}}),
    ("POST", f"{DEFAULT}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"}]}}),
    ("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}),
)
ROOM = {"status": {"allocatable": {"cpu": "9k", "memory": "9Ti", "pods": "99k"}}}
KINDS: dict[str, Callable[[int], Request]] = {
    "create": lambda number: request("POST", PODS, pod(f"c-{number}", node="n1")),
    "get": lambda number: request("GET", f"{PODS}/c-{number}", b""),
    "list of 100": lambda _: request("GET", PODS, b"", limit="100"),
    "labels patch": lambda number: request("PATCH", f"{PODS}/c-{number}", labels(number), STRATEGIC),
    "resize": lambda number: request("PATCH", f"{PODS}/c-{number}/resize", resize(1), STRATEGIC),
    "delete": lambda number: request("DELETE", f"{PODS}/c-{number}", b"", gracePeriodSeconds="0"),
}


def labels(number: int) -> bytes:
    return json.dumps({"metadata": {"labels": {"example.org/number": str(number)}}}).encode()


async def send(api: ApiServer, asked: Request, who: Identity = JANE) -> float:
    began = time.perf_counter()
    answer = await api.handler(asked.with_identity(who))
    if answer.status >= 300:
        raise SystemExit(f"{asked.method} {asked.path}: {answer.status} {answer.body!r}")
    return time.perf_counter() - began


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Requests to etcd, by what they are."""
    asked, call = Counter[str](), EtcdMember.call

    def counting(self: EtcdMember, method: str, *given: Any, **more: Any) -> Any:
        asked[method.rpartition("/")[2]] += 1
        return call(self, method, *given, **more)

    EtcdMember.call = counting  # type: ignore[method-assign]
    yield asked
    EtcdMember.call = call  # type: ignore[method-assign]


async def measure(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """By kind: requests to etcd for one, milliseconds for one, and both for `--at-once`."""
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as directory:
        store = await etcd_store(EtcdOptions(servers=(url,), prefix=f"/bench-{os.getpid()}"))
        api = ApiServer(
            Context(store, SystemClock(), FeatureGates(), lambda _: None), signing_key=Path(directory) / "sa"
        )
        await api.start()
        for method, path, body in SETTING_UP:
            await send(api, request(method, path, json.dumps(body).encode()), ADMIN)
        await send(api, request("PATCH", "/api/v1/nodes/n1/status", json.dumps(ROOM).encode(), STRATEGIC), ADMIN)
        found = {}
        for name, make in KINDS.items():
            with counted() as asked:
                alone = [await send(api, make(number)) for number in range(options.requests)]
            with counted() as together:
                began = time.perf_counter()
                for start in range(options.requests, 2 * options.requests, options.at_once):
                    numbers = range(start, min(start + options.at_once, 2 * options.requests))
                    await asyncio.gather(*(send(api, make(number)) for number in numbers))
                took = time.perf_counter() - began
            found[name] = {
                "requests": {kind: count / options.requests for kind, count in sorted(asked.items())},
                "ms": 1000 * median(alone),
                "requests at once": sum(together.values()) / options.requests,
                "ms at once": 1000 * took / options.requests,
            }
        await api.stop()
        await store.close()
        return found


@contextmanager
def etcd() -> Iterator[str]:
    sys.path.insert(0, str(HERE / "tests"))
    from support.etcd import etcd_cluster

    with etcd_cluster() as members:
        yield members[0].client


def show(name: str, found: dict[str, Any], at_once: int) -> None:
    print(f"{name:16}  to etcd  of these                        ms  {at_once} at once: to etcd      ms")
    for kind, row in found.items():
        by_kind = ", ".join(f"{what} {count:.1f}" for what, count in row["requests"].items())
        total = sum(row["requests"].values())
        crowd = f"{row['requests at once']:19.2f}  {row['ms at once']:6.2f}"
        print(f"{kind:16}  {total:7.1f}  {by_kind:27}  {row['ms']:8.2f}  {crowd}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--before", type=Path, help="another checkout, with this one's tools")
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        print(json.dumps(asyncio.run(measure(options.url, options))))
        return
    load = ", ".join(f"{figure:.1f}" for figure in os.getloadavg())
    print(f"requests to etcd: {os.cpu_count()} CPUs, load average {load}")
    with etcd() as url:
        for name, checkout in (("before", options.before), ("now", HERE)):
            if checkout is None:
                continue
            command = [sys.executable, __file__, "--url", url, "--requests", str(options.requests)]
            command += ["--at-once", str(options.at_once)]
            environment = os.environ | {"PYTHONPATH": f"{checkout.resolve() / 'src'}:{HERE / 'bench'}"}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            show(name, json.loads(done.stdout), options.at_once)


if __name__ == "__main__":
    main()
