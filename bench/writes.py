"""CPU of the API server for each kind of request, without sockets: the handler in process, on a store in memory.

    python bench/writes.py [--requests 500] [--rounds 5] [--only create,resize] [--profile resize]

`bench/api.py` measures the same through HTTPS and to the disk; here only the server's own work counts: decoding,
defaults, admission, validation, managed fields, encoding. Process time of the quickest request: what other processes
on the machine do to the caches is not the server's.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from objects import PODS, STRATEGIC, pod, resize

from podfit.apiserver.context import Context
from podfit.apiserver.server import ApiServer
from podfit.core.features import FeatureGates
from podfit.net.system import SystemClock
from podfit.net.wire import Identity, Request
from podfit.store.memory import memory_store
from podfit.store.sqlite import sqlite_store

ADMIN = Identity("admin", ("system:masters",))
KUBELET = Identity("system:node:n1", ("system:nodes", "system:authenticated"))
SCHEDULER = Identity("system:kube-scheduler", ("system:authenticated",))
EVENTS = "/api/v1/namespaces/default/events"
APPLY = "application/apply-patch+yaml"
EXISTING = 200
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
MAY_READ = {
    "metadata": {"name": "readers"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
}
Requests = Iterator[tuple[Identity | None, Request]]
TOKENS: list[str] = []
"""Of the account that `token_gets` asks as; the last is that of the server."""


class Inline(ThreadPoolExecutor):
    """Does at once what is asked of it. It is defined here because versions of podfit have it in different places."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  (it is the caller's: raised where the future is awaited)
            future.set_exception(error)
        return future


def request(method: str, path: str, body: bytes, kind: str = "application/json", **query: str) -> Request:
    headers = {"content-type": kind, "user-agent": "podfit/bench"}
    return Request(method, path, {name: (value,) for name, value in query.items()}, headers, body)


def creates(prefix: str, count: int, *, node: str = "n1") -> Requests:
    for number in range(count):
        yield ADMIN, request("POST", PODS, pod(f"{prefix}-{number}", node=node))


def unlike_creates(prefix: str, count: int) -> Requests:
    """Pods of which each has a template of its own."""
    for number in range(count):
        document = json.loads(pod(f"{prefix}-{number}"))
        container = document["spec"]["containers"][0]
        container["image"] = f"registry.example/{prefix}:{number}"
        container["env"][0]["value"] = f"{prefix}-{number}"
        yield ADMIN, request("POST", PODS, json.dumps(document).encode())


def resizes(seed: int, count: int) -> Requests:
    for number in range(count):
        yield (
            ADMIN,
            request("PATCH", f"{PODS}/pod-{number % EXISTING}/resize", resize(seed + number // EXISTING), STRATEGIC),
        )


def status(seed: int) -> bytes:
    """What a kubelet says of a pod that runs; `seed` makes each different."""
    cpu = {"requests": {"cpu": f"{100 + seed % 50}m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
    when = f"2026-01-02T03:{seed // 60 % 60:02}:{seed % 60:02}Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": when, "observedGeneration": 1}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    container = {
        "name": "app",
        "image": "registry.example/app:1.2.3",
        "imageID": "sha256:" + "0" * 64,
        "ready": True,
        "containerID": "containerd://" + "1" * 64,
        "restartCount": 0,
        "started": True,
        "resources": cpu,
        "allocatedResources": cpu["requests"],
        "state": {"running": {"startedAt": when}},
    }
    return json.dumps(
        {
            "status": {
                "phase": "Running",
                "conditions": conditions,
                "containerStatuses": [container],
                "hostIP": "10.0.0.1",
                "hostIPs": [{"ip": "10.0.0.1"}],
                "podIP": "10.1.0.1",
                "podIPs": [{"ip": "10.1.0.1"}],
                "startTime": when,
                "qosClass": "Burstable",
                "observedGeneration": 1,
            }
        }
    ).encode()


def statuses(seed: int, count: int) -> Requests:
    for number in range(count):
        yield (
            KUBELET,
            request("PATCH", f"{PODS}/pod-{number % EXISTING}/status", status(seed + number // EXISTING), STRATEGIC),
        )


def kubelet_statuses(seed: int, count: int) -> Requests:
    """As kubelets write them: the order of all conditions, and one that comes or goes."""
    for number in range(count):
        turn = seed + number // EXISTING
        ready = {"type": "Ready", "status": "True", "observedGeneration": turn}
        resizing = {"type": "PodResizeInProgress"} | ({"status": "True"} if turn % 2 else {"$patch": "delete"})
        order = [{"type": "PodResizeInProgress"}, {"type": "Ready"}] if turn % 2 else [{"type": "Ready"}]
        body = {"status": {"$setElementOrder/conditions": order, "conditions": [resizing, ready]}}
        path = f"{PODS}/pod-{number % EXISTING}/status"
        yield KUBELET, request("PATCH", path, json.dumps(body).encode(), STRATEGIC)


def events(prefix: str, count: int) -> Requests:
    for number in range(count):
        body = {
            "metadata": {"name": f"{prefix}.{number}", "namespace": "default"},
            "type": "Normal",
            "reason": "Pulled",
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "pod-1",
                "namespace": "default",
                "uid": "2c7ad0a5-0d3c-4b1e-a8b9-1f0f5b8d3a11",
            },
            "message": "Container image is present on the machine",
            "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "source": {"component": "kubelet", "host": "n1"},
        }
        yield SCHEDULER, request("POST", EVENTS, json.dumps(body).encode())


def applies(seed: int, count: int) -> Requests:
    """A pod applied again with another annotation: the applier owns all that is in the document."""
    for number in range(count):
        name = f"applied-{number % EXISTING}"
        document = json.loads(pod(name))
        document["metadata"]["annotations"]["example.org/round"] = str(seed + number // EXISTING)
        yield ADMIN, request("PATCH", f"{PODS}/{name}", json.dumps(document).encode(), APPLY, fieldManager="applier")


def puts(seed: int, count: int) -> Requests:
    """A whole status by PUT, as client-go's UpdateStatus sends it."""
    for number in range(count):
        name = f"pod-{number % EXISTING}"
        whole = json.loads(pod(name)) | json.loads(status(seed + number // EXISTING))
        yield ADMIN, request("PUT", f"{PODS}/{name}/status", json.dumps(whole).encode())


def labels(seed: int, count: int) -> Requests:
    for number in range(count):
        body = json.dumps({"metadata": {"labels": {"example.org/round": str(seed + number // EXISTING)}}}).encode()
        yield ADMIN, request("PATCH", f"{PODS}/pod-{number % EXISTING}", body, STRATEGIC)


def bindings(prefix: str, count: int) -> Requests:
    """Of pods that `unbound` made."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    for number in range(count):
        body = {"metadata": {"name": f"{prefix}-{number}"}, "target": target}
        yield ADMIN, request("POST", f"{PODS}/{prefix}-{number}/binding", json.dumps(body).encode())


def gets(count: int) -> Requests:
    for number in range(count):
        yield ADMIN, request("GET", f"{PODS}/pod-{number % EXISTING}", b"")


def token_gets(count: int) -> Requests:
    """As a pod asks, by the token of its account."""
    for number in range(count):
        asked = request("GET", f"{PODS}/pod-{number % EXISTING}", b"")
        yield None, replace(asked, headers={**asked.headers, "authorization": f"Bearer {TOKENS[-1]}"})


def lists(count: int) -> Requests:
    for _ in range(max(1, count // 20)):
        yield ADMIN, request("GET", PODS, b"", limit=str(EXISTING))


KINDS: dict[str, Callable[[int, int], Requests]] = {
    "create": lambda seed, count: creates(f"c{seed}", count),
    "unlike create": lambda seed, count: unlike_creates(f"l{seed}", count),
    "unbound create": lambda seed, count: creates(f"u{seed}", count, node=""),
    "binding": lambda seed, count: bindings(f"u{seed}", count),
    "resize": resizes,
    "labels patch": labels,
    "status patch": statuses,
    "kubelet's status": kubelet_statuses,
    "status put": puts,
    "event": lambda seed, count: events(f"e{seed}", count),
    "apply": applies,
    "get": lambda _, count: gets(count),
    "get by token": lambda _, count: token_gets(count),
    "list of 200": lambda _, count: lists(count),
}


@asynccontextmanager
async def server(*, sqlite: bool = False) -> AsyncIterator[ApiServer]:
    """With a node that has room, and the pods that are read and changed; on a store in memory, or in a file."""
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as made:
        store = sqlite_store(Path(made) / "store") if sqlite else memory_store(Inline)
        api = ApiServer(Context(store, SystemClock(), FeatureGates(), lambda _: None), signing_key=Path(made) / "sa")
        await api.start()
        allocatable = b'{"status":{"allocatable":{"cpu":"9k","memory":"9Ti","pods":"99k"}}}'
        account = request("POST", "/api/v1/namespaces/default/serviceaccounts", b'{"metadata":{"name":"default"}}')
        node = request("POST", "/api/v1/nodes", b'{"metadata":{"name":"n1"}}')
        room = request("PATCH", "/api/v1/nodes/n1/status", allocatable, STRATEGIC)
        await send(api, iter([(ADMIN, obj) for obj in (account, node, room)]))
        rights = request("POST", BINDINGS, json.dumps(MAY_READ).encode())
        await send(api, iter([(ADMIN, rights)]))
        asked = request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", b'{"spec":{}}')
        issued = await api.handler(asked.with_identity(ADMIN))
        assert isinstance(issued.body, bytes)
        TOKENS.append(json.loads(issued.body)["status"]["token"])
        await send(api, creates("pod", EXISTING))
        await send(api, statuses(0, EXISTING))
        await send(api, applies(0, EXISTING))
        yield api
        await api.stop()
        await store.close()


async def run(options: argparse.Namespace) -> None:
    async with server() as api:
        for name, make in KINDS.items():
            if not options.only or name in options.only.split(","):
                await measure(api, name, make, options)


async def measure(api: ApiServer, name: str, make: Callable[[int, int], Requests], options: argparse.Namespace) -> None:
    found = cProfile.Profile(time.thread_time)
    times: list[float] = []
    for number in range(options.rounds):
        prepared = list(make(7 * (number + 1), options.requests))
        gc.collect()
        if options.profile == name:
            found.enable()
        times += await send(api, iter(prepared))
        found.disable()
    times.sort()
    print(f"{name:14} {1e6 * times[0]:6.0f} us   (median {1e6 * times[len(times) // 2]:.0f})", flush=True)
    if options.profile == name:
        pstats.Stats(found, stream=sys.stdout).sort_stats(options.sort).print_stats(options.lines)


async def send(api: ApiServer, requests: Requests) -> list[float]:
    """The process time that each took."""
    times = []
    for identity, request in requests:
        began = time.process_time()
        answer = await api.handler(request if identity is None else request.with_identity(identity))
        times.append(time.process_time() - began)
        if answer.status >= 300:
            raise SystemExit(f"{request.method} {request.path}: {answer.status} {answer.body!r}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=EXISTING)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="kinds of requests, with commas between them")
    parser.add_argument("--profile", default="", help="the kind of request that is looked at by function")
    parser.add_argument("--sort", default="tottime")
    parser.add_argument("--lines", type=int, default=60)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
