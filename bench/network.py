"""The pods' network beside what it stands on, in one run.

    python bench/network.py [--rounds 30] [--services 1000] [--endpoints 10] [--connections 2000]

    pod start     until the status says Running, in turns with an address of its own and on the host's network, and the
                  bare call of the plugins (ptp with host-local, loopback) in a namespace of its own
    services      objects in, the whole table in the kernel, beside `nft -f` of the same text; the same of one endpoint
    connections   from this machine to a pod, through its Service's address and directly: connect, ask, be answered

Goals: pod start at most on the host's network + the bare call + 15 ms; the whole table 1.5 times the bare transaction;
one endpoint a bare one + 3 ms. Names (DNS) are measured by `bench/dns.py` once there is one.
"""

import argparse
import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from measure import data_directory, judge, machine, percentile, table, up

from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.decide.node.pod_network import PluginsPlace, conflist
from podfit.decide.services.backends import ProxyPlace, service_backends
from podfit.decide.services.rules import Parts, service_rules
from podfit.decide.services.ruleset import Frame, difference, whole
from podfit.net import nft
from podfit.net.processes import CNI_FOLDERS

START_GOAL, WHOLE_GOAL, ONE_GOAL = 15.0, 1.5, 3.0
GLANCE = 0.005
TABLE = f"podfit-bench-{os.getpid()}"
CLUSTER = "10.199.0.0/16"
PLACE = ProxyPlace("bench", "192.0.2.2", CLUSTER, "10.199.0.0/24")
SERVE = "mkdir -p /www; echo hello > /www/index.html; exec httpd -f -p 8080 -h /www"


# -------------------------------------------------------------------------- pods


async def started(client: Client, name: str, *, host: bool) -> float:
    """Milliseconds from the create to a status that says Running."""
    container = {"name": "c", "image": "busybox:1.36", "command": ["sleep", "100000"]}
    spec = {"hostNetwork": host, "terminationGracePeriodSeconds": 0, "containers": [container]}
    began = time.perf_counter()
    await client.create(convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod))
    while (await client.get(Pod, name, "default")).status.phase != "Running":
        await asyncio.sleep(GLANCE)
    took = time.perf_counter() - began
    await client.delete(Pod, name, "default")
    return 1000 * took


def bare_call(folder: Path, number: int) -> float:
    """Milliseconds that the plugins take by themselves, as the runtime calls them for a pod."""
    plugins = next(place for place in CNI_FOLDERS if Path(place, "ptp").exists())
    place = PluginsPlace(TABLE, str(folder), 1500)
    whole_list = conflist("10.198.0.0/24", place)
    one = {"cniVersion": whole_list["cniVersion"], "name": TABLE, **whole_list["plugins"][0]}
    loopback = {"cniVersion": whole_list["cniVersion"], "name": f"{TABLE}-lo", "type": "loopback"}
    namespace = f"{TABLE}-{number}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)

    def call(command: str, name: str, interface: str, config: dict[str, Any]) -> None:
        words = {"CNI_COMMAND": command, "CNI_CONTAINERID": namespace, "CNI_NETNS": f"/run/netns/{namespace}"}
        words |= {"CNI_IFNAME": interface, "CNI_PATH": plugins}
        given = msgspec.json.encode(config)
        subprocess.run([f"{plugins}/{name}"], env=os.environ | words, input=given, capture_output=True, check=True)

    try:
        began = time.perf_counter()
        call("ADD", "loopback", "lo", loopback)
        call("ADD", "ptp", "eth0", one)
        took = time.perf_counter() - began
        call("DEL", "ptp", "eth0", one)
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=True)
    return 1000 * took


async def pod_starts(client: Client, rounds: int) -> None:
    own, host, bare = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 2):
            own.append(await started(client, f"own-{number}", host=False))
            host.append(await started(client, f"host-{number}", host=True))
            bare.append(await asyncio.to_thread(bare_call, Path(folder), number))
    middle = [percentile(values[2:], 50) for values in (own, host, bare)]
    goal = middle[1] + middle[2] + START_GOAL
    table(
        [
            ("pod start", "own address", "host's network", "bare plugins", "goal", ""),
            ("ms, middle", *(f"{value:.1f}" for value in middle), f"{goal:.1f}", judge(middle[0], goal)),
        ]
    )


# -------------------------------------------------------------------------- services


def objects(services: int, endpoints: int) -> list[tuple[Service, EndpointSlice]]:
    made = []
    for number in range(services):
        address = f"10.96.{number // 250}.{number % 250 + 1}"
        spec = {"clusterIP": address, "clusterIPs": [address], "ports": [{"port": 80, "protocol": "TCP"}]}
        service = convert({"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec}, Service)
        ips = [f"10.199.{(number * endpoints + one) // 250 % 250}.{one + 2}" for one in range(endpoints)]
        found = [{"addresses": [ip], "conditions": {"ready": True}} for ip in ips]
        ports = [{"name": "", "port": 8080, "protocol": "TCP"}]
        made.append((service, convert({"addressType": "IPv4", "endpoints": found, "ports": ports}, EndpointSlice)))
    return made


def parts_of(service: Service, endpoints: EndpointSlice) -> Parts:
    backends = service_backends(service, (endpoints,), PLACE)
    assert backends is not None
    return service_rules(backends)


def bare(text: str) -> None:
    program = shutil.which("nft")
    assert program
    subprocess.run([program, "-f", "-"], input=text.encode(), check=True, capture_output=True)


async def changed(old: Parts, service: Service, endpoints: EndpointSlice) -> None:
    await nft.apply(difference(TABLE, old, parts_of(service, endpoints)))


async def timed(run: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await run()
    return 1000 * (time.perf_counter() - began)


async def services(rounds: int, number: int, endpoints: int) -> None:
    """In turns; each replaces the table that was there, as after the proxy's start on one that was killed."""
    made, frame = objects(number, endpoints), Frame(TABLE, "bench", PLACE)
    text = whole(frame, [parts_of(*one) for one in made])
    full, full_bare, one, one_bare = (list[float]() for _ in range(4))
    service, first = made[0]
    fewer = msgspec.structs.replace(first, endpoints=(first.endpoints or ())[1:])
    try:
        bare(text)
        for turn in range(rounds):
            full.append(await timed(lambda: nft.apply(whole(frame, [parts_of(*one) for one in made]))))
            full_bare.append(await timed(lambda: asyncio.to_thread(bare, text)))
            before, after = (first, fewer) if turn % 2 == 0 else (fewer, first)
            old = parts_of(service, before)
            one.append(await timed(partial(changed, old, service, after)))
            text_of_one = difference(TABLE, old, parts_of(service, after))
            one_bare.append(await timed(partial(asyncio.to_thread, bare, text_of_one)))
    finally:
        await nft.remove(TABLE)
    whole_middle, bare_middle = percentile(full, 50), percentile(full_bare, 50)
    one_middle, one_bare_middle = percentile(one, 50), percentile(one_bare, 50)
    goal, one_goal = WHOLE_GOAL * bare_middle, one_bare_middle + ONE_GOAL
    table(
        [
            (f"{number} services x {endpoints}", "podfit", "bare nft -f", "goal", ""),
            ("whole, ms", f"{whole_middle:.1f}", f"{bare_middle:.1f}", f"{goal:.1f}", judge(whole_middle, goal)),
            (
                "one endpoint, ms",
                f"{one_middle:.1f}",
                f"{one_bare_middle:.1f}",
                f"{one_goal:.1f}",
                judge(one_middle, one_goal),
            ),
        ]
    )


# -------------------------------------------------------------------------- connections


def asked(host: str, port: int) -> float:
    began = time.perf_counter()
    with socket.create_connection((host, port), 5) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while connection.recv(4096):
            pass
    return 1000 * (time.perf_counter() - began)


async def connections(client: Client, number: int) -> None:
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", SERVE], "readinessProbe": probe}
    meta = {"name": "served", "namespace": "default", "labels": {"app": "served"}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    await client.create(convert({"metadata": meta, "spec": spec}, Pod))
    wanted = {"selector": {"app": "served"}, "ports": [{"port": 80, "targetPort": 8080}]}
    service = await client.create(convert({"metadata": meta, "spec": wanted}, Service))
    while not (pod := await client.get(Pod, "served", "default")).status.container_statuses[0:1] or not all(
        status.ready for status in pod.status.container_statuses
    ):
        await asyncio.sleep(GLANCE)
    places = {"direct": (pod.status.pod_ip, 8080), "Service": (service.spec.cluster_ip, 80)}
    await asyncio.sleep(1)  # the rules are there
    took: dict[str, list[float]] = {name: [] for name in places}
    for _ in range(number):
        for name, place in places.items():
            took[name].append(await asyncio.to_thread(asked, *place))
    rows = [
        (name, f"{percentile(values, 50):.2f}", f"{percentile(values, 99):.2f}", f"{1000 / percentile(values, 50):.0f}")
        for name, values in took.items()
    ]
    table([("connections, ms", "middle", "p99", "a second, one after the other"), *rows])


async def run(data: Path, given: argparse.Namespace) -> None:
    client = load([data / "admin.kubeconfig"]).client()
    await pod_starts(client, given.rounds)
    await connections(client, given.connections)
    await client.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=30)
    arguments.add_argument("--services", type=int, default=1000)
    arguments.add_argument("--endpoints", type=int, default=10)
    arguments.add_argument("--connections", type=int, default=2000)
    given = arguments.parse_args()
    print(f"network, {given.rounds} rounds: {machine()}", flush=True)
    asyncio.run(services(given.rounds, given.services, given.endpoints))
    with data_directory() as data:
        up(data)
        asyncio.run(run(data, given))


if __name__ == "__main__":
    main()
