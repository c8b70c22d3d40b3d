"""Services of pods with addresses on a real node: reached by address and port, from pods and from this machine."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.test_pod_network import OTHERS, PORT, TABLE_OF_OTHERS, asks, killed, server
from support.eventually import eventually
from support.machine import Snapshot
from support.services import free_port
from support.up import Up, manifest, run, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
LABELS = {"app": "web"}
HERE = "198.51.100.5"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two pods of one port behind a Service, and one that asks."""
    before = Snapshot.take()
    up = Up(tmp_path_factory.mktemp("served"))
    up.start("--pod-network", "pod")
    try:
        up.apply(*(labelled(name) for name in ("web-1", "web-2")), manifest("asks", hostNetwork=False), service("web"))
        for name in ("web-1", "web-2", "asks"):
            up.pod_when(name, running, "runs")
        yield up
    finally:
        answer = up.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(before) == {}


def labelled(name: str, **spec: Any) -> dict[str, Any]:
    made = server(name, **spec)
    made["metadata"]["labels"] = LABELS
    return made


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "targetPort": PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": LABELS, "ports": ports, **spec},
    }


def cluster_ip(up: Up, name: str) -> str:
    return str(up.get("service", name)["spec"]["clusterIP"])


def answers(up: Up, host: str, port: int, *, times: int = 12) -> set[str]:
    return {asks(up, "asks", host, port) for _ in range(times)}


def both_answer(up: Up, host: str, port: int) -> None:
    found = set[str]()

    def seen() -> set[str]:
        found.update(answers(up, host, port, times=4))
        return found

    eventually(seen, lambda names: {"web-1", "web-2"} <= names, within=30, what="both pods answer")


def test_a_service_leads_pods_and_this_machine_to_each_of_its_pods(served: Up) -> None:
    host = cluster_ip(served, "web")
    both_answer(served, host, 80)
    got = eventually(lambda: fetched_at(host, 80), bool, within=10, what="an answer here")
    assert got.strip()[-5:] in ("web-1", "web-2")


def fetched_at(host: str, port: int) -> str:
    """The body that this machine is answered; empty when it is not."""
    try:
        with socket.create_connection((host, port), 2) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    except OSError:
        return ""
    return said.rpartition("\r\n\r\n")[2]


def test_a_pod_reaches_itself_by_its_service(served: Up) -> None:
    host = cluster_ip(served, "web")
    seen = {asks(served, "web-1", host, 80) for _ in range(16)}
    assert seen == {"web-1", "web-2"}


def test_a_service_without_pods_refuses_and_answers_once_it_has_one(served: Up) -> None:
    served.apply(service("later", selector={"app": "later"}))
    host = cluster_ip(served, "later")
    assert asks(served, "asks", host, 80) == ""
    made = server("later")
    made["metadata"]["labels"] = {"app": "later"}
    served.apply(made)
    served.pod_when("later", running, "runs")
    eventually(lambda: asks(served, "asks", host, 80), lambda said: said == "later", within=20, what="its pod answers")
    served.ok("delete", "pod/later", "--now")
    eventually(lambda: asks(served, "asks", host, 80), lambda said: said == "", within=20, what="nobody answers")
    served.ok("delete", "service/later")


def test_a_node_port_answers_pods_and_this_machine(served: Up) -> None:
    served.apply(service("open", type="NodePort"))
    port = served.get("service", "open")["spec"]["ports"][0]["nodePort"]
    node = served.get("pod", "web-1")["status"]["hostIP"]
    both_answer(served, node, port)
    got = eventually(lambda: fetched_at(node, port), bool, within=10, what="an answer here")
    assert got.strip() in ("web-1", "web-2")
    served.ok("delete", "service/open")


@contextmanager
def another_machine() -> Iterator[tuple[str, ...]]:
    """The words that run a command there: it is a namespace of its own here, at 198.51.100.6 beside 198.51.100.5."""
    name, device = f"podfit-test-{os.getpid() % 10000}", f"ps{os.getpid() % 10000}"
    commands = (
        f"ip netns add {name}",
        f"ip link add {device} type veth peer name eth0 netns {name}",
        f"ip addr add {HERE}/30 dev {device}",
        f"ip link set {device} up",
        f"ip -n {name} addr add 198.51.100.6/30 dev eth0",
        f"ip -n {name} link set eth0 up",
    )
    try:
        for command in commands:
            assert run(*command.split()).code == 0, command
        words = ("ip", "netns", "exec", name, "busybox")
        assert run(*words, "ping", "-c", "1", "-W", "2", HERE).code == 0
        yield words
    finally:
        run("ip", "link", "del", device)
        run("ip", "netns", "del", name)


def test_a_node_port_answers_others_only_where_it_was_said(served: Up) -> None:
    served.apply(service("open", type="NodePort"))
    port = served.get("service", "open")["spec"]["ports"][0]["nodePort"]
    with another_machine() as there:
        assert run(*there, "nc", "-w", "2", HERE, str(port), stdin="").code != 0
    assert fetched_at("127.0.0.1", port).strip() in ("web-1", "web-2")
    served.ok("delete", "service/open")


def endpoints(name: str, of: str, addresses: list[str], port: int) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]} for address in addresses],
        "ports": [{"port": port, "protocol": "TCP"}],
    }


@pytest.mark.parametrize("thousands", [2, pytest.param(10, marks=pytest.mark.campaign)])
def test_a_published_service_leads_nobody_to_the_api_server_and_ten_thousand_endpoints_stop_no_other(
    cluster_dir: Up, thousands: int
) -> None:
    """NodePorts answer everybody here. One leads to a pod; one names the API server's address for pods, which others
    may not reach; one has ten thousand endpoints, and clients that are to stay with theirs.
    """
    cluster_dir.start("--nodeport-addresses", "0.0.0.0/0")
    cluster_dir.apply(labelled("web-1"), manifest("asks", hostNetwork=False), service("web", type="NodePort"))
    asking, web = (cluster_dir.pod_when(name, running, "runs")["status"]["podIP"] for name in ("asks", "web-1"))
    assert asking != web
    gateway, api = f"{asking.rpartition('.')[0]}.1", int(cluster_dir.state()["server"].rpartition(":")[2])
    cluster_dir.apply(
        service("trap", type="NodePort", selector=None),
        service("many", selector=None, sessionAffinity="ClientIP"),
        endpoints("trap-1", "trap", [gateway], api),
    )
    for part in range(thousands):
        addresses = [f"10.77.{part * 4 + index // 250}.{index % 250 + 1}" for index in range(1000)]
        cluster_dir.apply(endpoints(f"many-{part}", "many", addresses, PORT))
    open_port, trap = (cluster_dir.get("service", name)["spec"]["ports"][0]["nodePort"] for name in ("web", "trap"))
    with another_machine() as there:
        ask = ("nc", "-w", "2", HERE)
        request = "GET / HTTP/1.0\r\n\r\n"
        eventually(
            lambda: run(*there, *ask, str(open_port), stdin=request).out,
            lambda said: "web-1" in said,
            within=30,
            what="the pod answers",
        )
        assert run(*there, *ask, str(trap), stdin="").code != 0
        assert run(*there, *ask, str(api), stdin="").code != 0
    host = cluster_ip(cluster_dir, "trap")
    assert cluster_dir.kubectl("exec", "asks", "--", "sh", "-c", f"nc -w 2 {host} 80 </dev/null").code == 0
    cluster_dir.ok("delete", "pod/web-1", "--now")
    gone = cluster_ip(cluster_dir, "web")
    eventually(lambda: fetched_at(gone, 80), lambda said: not said, within=10, what="a change beside them arrives")
    assert cluster_dir.down().code == 0


def test_a_port_of_the_node_leads_to_its_pod(served: Up) -> None:
    port = free_port()
    pod = server("held")
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": PORT, "hostPort": port}]
    served.apply(pod)
    node = served.pod_when("held", running, "runs")["status"]["hostIP"]
    eventually(lambda: asks(served, "asks", node, port), lambda said: said == "held", within=20, what="the port leads")
    served.ok("delete", "pod/held", "--now")
    eventually(lambda: asks(served, "asks", node, port), lambda said: said == "", within=20, what="the port is closed")


def test_an_operator_reaches_the_api_server_by_the_service_kubernetes(served: Up) -> None:
    env = served.ok("exec", "asks", "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT")
    host, port = env.split()
    assert (host, port) == (cluster_ip(served, "kubernetes"), "443")
    assert served.kubectl("exec", "asks", "--", "sh", "-c", f"nc -w 2 {host} {port} </dev/null").code == 0


@pytest.mark.parametrize("trap", ["127.0.0.1", "169.254.0.1"])
def test_endpoints_at_loopback_are_refused(trap: str, served: Up) -> None:
    """Whoever may write endpoints must not open the loopback of this machine to pods."""
    slices = endpoints("trap-1", "web", [trap], PORT)
    refused = served.kubectl("apply", "-f", "-", stdin=json.dumps(slices))
    assert refused.code != 0
    assert "may not be in the" in refused.err


def test_rules_come_back_when_somebody_removes_them_and_stay_over_a_kill(cluster_dir: Up) -> None:
    run("nft", "-f", "-", stdin=TABLE_OF_OTHERS)
    try:
        cluster_dir.start("--pod-network", "pod")
        cluster_dir.apply(labelled("web-1"), manifest("asks", hostNetwork=False), service("web"))
        for name in ("web-1", "asks"):
            cluster_dir.pod_when(name, running, "runs")
        host = cluster_ip(cluster_dir, "web")
        eventually(lambda: asks(cluster_dir, "asks", host, 80), bool, within=20, what="the Service answers")
        os.kill(cluster_dir.state()["pid"], signal.SIGKILL)
        assert fetched_at(host, 80).strip() == "web-1"
        cluster_dir.start("--pod-network", "pod")
        assert asks(cluster_dir, "asks", host, 80) == "web-1"
        table = next(line for line in run("nft", "list", "tables").out.splitlines() if of_services(line, cluster_dir))
        killed(cluster_dir)
        cluster_dir.start("--pod-network", "host")
        assert table not in run("nft", "list", "tables").out.splitlines(), "nobody keeps these rules up to date"
        assert asks(cluster_dir, "asks", cluster_dir.get("pod", "web-1")["status"]["podIP"], PORT) == "web-1"
        assert cluster_dir.down().code == 0
        assert OTHERS in run("nft", "list", "tables").out
    finally:
        run("nft", "delete", "table", "ip", OTHERS)


def of_services(table: str, up: Up) -> bool:
    name = table.split()[-1]
    return name.endswith("-services") and str(up.root) in run("nft", "list", "table", "ip", name).out
