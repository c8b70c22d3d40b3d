"""Names of Services and pods on a real node. The conformance specs of upstream's "[sig-network] DNS" are here by their
names: their steps, with busybox' nslookup and ping where they have dig and getent, and the DNS library for what busybox
cannot (TCP).
"""

import json
import os
import re
import signal
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from e2e.test_pod_network import PORT, address, server
from support.dns import answers, record
from support.eventually import PATIENCE, eventually
from support.machine import Snapshot
from support.up import Up, manifest, run, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
KUBE_DNS = "10.96.0.10"
RESOLVER = "127.0.53.7"
"""Where the host's resolver of these tests listens, at port 53."""
SVC = "default.svc.cluster.local"
HTTP = [{"name": "http", "port": 80, "targetPort": PORT}]


class _Outside(socketserver.BaseRequestHandler):
    """The names of the world, as far as these tests know it."""

    def handle(self) -> None:
        data, sock = self.request
        asked = dns.message.from_wire(data).question[0]
        known = {"foo.example.com.": "192.0.2.53", "bar.example.com.": "192.0.2.54"}
        found = known.get(asked.name.to_text().lower())
        here = [record(asked.name.to_text(omit_final_dot=True), "A", found)] if found and asked.rdtype == 1 else []
        sock.sendto(answers(data, *here), self.client_address)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The resolv.conf that names a resolver of this machine."""
    with socketserver.UDPServer((RESOLVER, 53), _Outside) as resolver:
        thread = threading.Thread(target=resolver.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        path = tmp_path_factory.mktemp("outside") / "resolv.conf"
        path.write_text(f"nameserver {RESOLVER}\n")
        yield path
        resolver.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory, outside: Path) -> Iterator[Up]:
    before = Snapshot.take()
    up = Up(tmp_path_factory.mktemp("named"))
    said = up.start("--pod-network", "pod", "--dns-resolv-conf", str(outside)).out
    assert re.search(r"^  dns       cluster.local, at 10\.\S+ port 53$", said, re.MULTILINE)
    try:
        up.apply(
            manifest("asks", hostNetwork=False),
            labelled("web"),
            service("web", ports=HTTP),
            service("headless", clusterIP="None", ports=HTTP),
        )
        for name in ("asks", "web"):
            up.pod_when(name, running, "runs")
        yield up
    finally:
        answer = up.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(before) == {}


def labelled(name: str, **spec: Any) -> dict[str, Any]:
    made = server(name, **spec)
    made["metadata"]["labels"] = {"app": "web"}
    return made


def service(name: str, **spec: Any) -> dict[str, Any]:
    full = {"selector": {"app": "web"}, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": full}


def looked_up(up: Up, name: str, kind: str = "a", *, pod: str = "asks", at: str = "") -> set[str]:
    """What a pod's nslookup finds; empty when there is no such name."""
    out = up.kubectl("exec", pod, "--", "nslookup", f"-type={kind}", name, *([at] if at else [])).out
    answer = out.partition("\n\n")[2]
    found = re.findall(r"^Address: (\S+)$|canonical name = (\S+)$|name = (\S+)$|service = (.+)$", answer, re.MULTILINE)
    return {next(filter(None, groups)).rstrip(".") for groups in found}


def resolved(up: Up, pod: str, name: str) -> str:
    """The address that the C library of a pod finds for a name; empty without one."""
    out = up.kubectl("exec", pod, "--", "ping", "-c", "1", "-W", "1", name).out
    found = re.match(r"PING \S+ \((\S+?)\)", out)
    return found[1] if found else ""


def asked(name: str, kind: str = "A", *, tcp: bool = False) -> set[str]:
    """What this machine is answered at the Service kube-dns."""
    message = dns.message.make_query(name, kind)
    reply = (dns.query.tcp if tcp else dns.query.udp)(message, KUBE_DNS, timeout=5 * PATIENCE)
    return {str(rdata).rstrip(".") for rrset in reply.answer for rdata in rrset}


def cluster_ip(up: Up, name: str) -> str:
    return str(up.get("service", name)["spec"]["clusterIP"])


# ---------------------------------------------------------------- the specs


@pytest.mark.parametrize("tcp", [False, True])
def test_dns_should_provide_dns_for_the_cluster(tcp: bool, named: Up) -> None:
    assert asked(f"kubernetes.{SVC}", tcp=tcp) == {"10.96.0.1"}
    assert looked_up(named, f"kubernetes.{SVC}") == {"10.96.0.1"}
    own = address(named, "asks")
    assert asked(f"{own.replace('.', '-')}.default.pod.cluster.local", tcp=tcp) == {own}
    assert asked("dns-version.cluster.local", "TXT", tcp=tcp) == {'"1.1.0"'}


def test_dns_should_provide_etc_hosts_entries_for_the_cluster(named: Up) -> None:
    named.apply(labelled("dns-querier-1", hostname="dns-querier-1", subdomain="dns-test-service"))
    mine = named.pod_when("dns-querier-1", running, "runs")["status"]["podIP"]
    for name in ("dns-querier-1", f"dns-querier-1.dns-test-service.{SVC}"):
        assert resolved(named, "dns-querier-1", name) == mine
    named.ok("delete", "pod/dns-querier-1", "--now")


def test_dns_should_provide_dns_for_services(named: Up) -> None:
    web, headless = cluster_ip(named, "web"), {address(named, "web")}
    host = next(iter(headless)).replace(".", "-")
    for name in ("headless", f"headless.{SVC}"):
        assert looked_up(named, name) == headless
    for name in ("headless", "headless.default", "headless.default.svc"):
        assert {resolved(named, "asks", name)} == headless
    assert looked_up(named, f"_http._tcp.headless.{SVC}", "srv") == {f"0 100 {PORT} {host}.headless.{SVC}"}
    assert looked_up(named, f"_http._tcp.web.{SVC}", "srv") == {f"0 100 80 web.{SVC}"}
    for tcp in (False, True):
        assert asked(f"_http._tcp.web.{SVC}", "SRV", tcp=tcp) == {f"0 100 80 web.{SVC}"}
    reverse = ".".join(reversed(web.split(".")))
    assert looked_up(named, f"{reverse}.in-addr.arpa", "ptr") == {f"web.{SVC}"}


def test_dns_should_resolve_dns_of_partial_qualified_names_for_services(named: Up) -> None:
    for name in ("web", "web.default", "web.default.svc"):
        assert resolved(named, "asks", name) == cluster_ip(named, "web")


def test_dns_should_provide_dns_for_pods_for_hostname_and_for_subdomain(named: Up) -> None:
    named.apply(
        labelled("dns-querier-2", hostname="dns-querier-2", subdomain="dns-test-service-2"),
        service("dns-test-service-2", clusterIP="None", ports=HTTP),
    )
    mine = named.pod_when("dns-querier-2", running, "runs")["status"]["podIP"]
    full = f"dns-querier-2.dns-test-service-2.{SVC}"
    eventually(lambda: looked_up(named, full), lambda values: values == {mine}, within=10, what="it has its name")
    assert asked(full, tcp=True) == {mine}
    for name in ("dns-querier-2", full):
        assert resolved(named, "dns-querier-2", name) == mine
    assert resolved(named, "asks", full) == mine
    named.ok("delete", "pod/dns-querier-2", "service/dns-test-service-2", "--now")
    eventually(lambda: asked(full), lambda values: values == set(), within=10, what="the name is gone")


def test_dns_should_provide_dns_for_external_name_services(named: Up) -> None:
    name = f"dns-test-service-3.{SVC}"

    def becomes(kind: str, wanted: set[str]) -> None:
        eventually(lambda: looked_up(named, name, kind), lambda values: values == wanted, within=10, what=f"{wanted}")

    named.apply(service("dns-test-service-3", type="ExternalName", externalName="foo.example.com", selector=None))
    becomes("cname", {"foo.example.com"})
    assert resolved(named, "asks", name) == "192.0.2.53"
    named.ok("patch", "service/dns-test-service-3", "-p", '{"spec":{"externalName":"bar.example.com"}}')
    becomes("cname", {"bar.example.com"})
    assert resolved(named, "asks", name) == "192.0.2.54"
    changed = {"spec": {"type": "ClusterIP", "externalName": None, "ports": HTTP}}
    named.ok("patch", "service/dns-test-service-3", "-p", json.dumps(changed))
    becomes("a", {cluster_ip(named, "dns-test-service-3")})
    named.ok("delete", "service/dns-test-service-3")


def test_names_of_the_world_are_asked_of_the_hosts_resolver(named: Up) -> None:
    assert looked_up(named, "foo.example.com") == {"192.0.2.53"}
    assert resolved(named, "asks", "bar.example.com") == "192.0.2.54"


def test_service_account_issuer_discovery_should_support_oidc_discovery(named: Up) -> None:
    """With what a pod has: the name that it finds, the certificate that it trusts, its token."""
    for name in ("kubernetes.default", "kubernetes.default.svc", f"kubernetes.{SVC}"):
        assert resolved(named, "asks", name) == "10.96.0.1"
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    certificate, token = (named.ok("exec", "asks", "--", "cat", f"{folder}/{file}") for file in ("ca.crt", "token"))
    trusted = ssl.create_default_context(cadata=certificate)
    found = {}
    for page in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        with (
            socket.create_connection(("10.96.0.1", 443), 5) as plain,
            trusted.wrap_socket(plain, server_hostname="kubernetes.default.svc") as secured,
        ):
            asking = f"GET {page} HTTP/1.0\r\nHost: kubernetes.default.svc\r\nAuthorization: Bearer {token}\r\n\r\n"
            secured.sendall(asking.encode())
            answer = b"".join(iter(lambda: secured.recv(65536), b""))
        found[page] = json.loads(answer.partition(b"\r\n\r\n")[2])
    discovery, keys = found.values()
    [key] = keys["keys"]
    assert discovery["issuer"] == jwt.decode(token, ECKey.import_key(key)).claims["iss"]
    assert discovery["jwks_uri"].endswith("/openid/v1/jwks")


# ---------------------------------------------------------------- StatefulSets, policies


def test_the_peers_of_a_stateful_set_find_each_other_by_their_names(named: Up) -> None:
    labels = {"app": "db"}
    pod = server("unused")["spec"]
    spec = {
        "serviceName": "db",
        "replicas": 2,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    peers = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    named.apply(service("db", clusterIP="None", selector=labels, ports=HTTP), peers)
    named.ok("rollout", "status", "statefulset/db", "--timeout=60s", timeout=90)
    first, second = address(named, "db-0"), address(named, "db-1")
    eventually(lambda: asked(f"db.{SVC}"), lambda values: values == {first, second}, within=10, what="both are named")
    assert resolved(named, "db-0", "db-1.db") == second
    assert resolved(named, "db-1", f"db-0.db.{SVC}") == first
    named.ok("delete", "pod/db-1", "--now")
    named.ok("rollout", "status", "statefulset/db", "--timeout=60s", timeout=90)
    anew = address(named, "db-1")
    eventually(lambda: asked(f"db-1.db.{SVC}"), lambda values: values == {anew}, within=10, what="it is named anew")
    named.ok("delete", "statefulset/db", "service/db", "--now")


def test_each_dns_policy_has_its_resolv_conf(named: Up) -> None:
    own = {
        "nameservers": ["192.0.2.1"],
        "searches": ["resolv.conf.local"],
        "options": [{"name": "ndots", "value": "2"}],
    }
    many = {"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"]}
    pods: dict[str, dict[str, Any]] = {
        "cluster-first": {"hostNetwork": False},
        "of-the-host": {"hostNetwork": True},
        "with-host-net": {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
        "default": {"hostNetwork": False, "dnsPolicy": "Default"},
        "none": {"hostNetwork": False, "dnsPolicy": "None", "dnsConfig": own},
        "too-many": {"hostNetwork": False, "dnsConfig": many},
    }
    named.apply(*(manifest(name, **spec) for name, spec in pods.items()))
    files = {}
    for name in pods:
        named.pod_when(name, running, "runs")
        files[name] = named.ok("exec", name, "--", "cat", "/etc/resolv.conf")
    host = Path("/etc/resolv.conf").read_text()
    hosts_searches = [word for line in host.splitlines() if line.startswith("search ") for word in line.split()[1:]]
    searches = " ".join(["default.svc.cluster.local", "svc.cluster.local", "cluster.local", *hosts_searches])
    wanted = f"search {searches}\nnameserver {KUBE_DNS}\noptions ndots:5\n"
    assert (files["cluster-first"], files["with-host-net"]) == (wanted, wanted)
    assert {name: files[name].split() for name in ("of-the-host", "default")} == dict.fromkeys(
        ("of-the-host", "default"), host.split()
    )
    assert files["none"] == "search resolv.conf.local\nnameserver 192.0.2.1\noptions ndots:2\n"
    assert looked_up(named, f"web.{SVC}", pod="with-host-net") == {cluster_ip(named, "web")}
    assert [line for line in files["too-many"].splitlines() if line.startswith("nameserver")] == [
        f"nameserver {server}" for server in (KUBE_DNS, "192.0.2.1", "192.0.2.2")
    ]
    told = eventually(
        lambda: named.ok(
            "get", "events", "--field-selector", "involvedObject.name=too-many", "-o", "jsonpath={..message}"
        ),
        lambda text: "Nameserver limits" in text,
        within=10,
        what="the event",
    )
    assert f"the applied nameserver line is: {KUBE_DNS} 192.0.2.1 192.0.2.2" in told
    named.ok("delete", "pod", *pods, "--now")


# ---------------------------------------------------------------- others


def test_a_name_server_of_somebody_else_is_left_alone(named: Up) -> None:
    kube_dns = ("service/kube-dns", "-n", "kube-system")
    slices = ("get", "endpointslices", "-n", "kube-system", "-l", "kubernetes.io/service-name=kube-dns", "-o", "name")
    named.ok("patch", *kube_dns, "-p", '{"spec":{"selector":{"k8s-app":"kube-dns"}}}')
    eventually(
        lambda: named.ok(*slices),
        lambda names: "kube-dns-" not in names or names.count("\n") == 1,
        within=10,
        what="ours is gone",
    )
    named.ok("delete", *kube_dns)
    eventually(lambda: named.kubectl("get", *kube_dns).code, lambda code: code == 0, within=10, what="ours is back")
    eventually(lambda: looked_up(named, "web"), bool, within=10, what="names are answered")


def test_nobody_beyond_pods_and_this_machine_is_answered(named: Up) -> None:
    """Another machine is a namespace of its own here, whose way to the name server leads over this machine."""
    gateway = address(named, "asks").rpartition(".")[0] + ".1"
    name, device = f"podfit-test-{os.getpid() % 10000}", f"pd{os.getpid() % 10000}"
    commands = (
        f"ip netns add {name}",
        f"ip link add {device} type veth peer name eth0 netns {name}",
        f"ip addr add 198.51.100.9/30 dev {device}",
        f"ip link set {device} up",
        f"ip -n {name} addr add 198.51.100.10/30 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip -n {name} route add default via 198.51.100.9",
    )
    lookup = ("busybox", "timeout", "3", "busybox", "nslookup", "-type=a", f"web.{SVC}")
    assert cluster_ip(named, "web") in run(*lookup, gateway).out
    try:
        for command in commands:
            assert run(*command.split()).code == 0, command
        inside = ("ip", "netns", "exec", name)
        assert run(*inside, "busybox", "ping", "-c", "1", "-W", "2", "198.51.100.9").code == 0
        for place in (gateway, KUBE_DNS):
            answer = run(*inside, *lookup, place)
            assert answer.code != 0
            assert cluster_ip(named, "web") not in answer.out
    finally:
        run("ip", "link", "del", device)
        run("ip", "netns", "del", name)


def test_names_are_answered_again_after_everything_was_killed(named: Up, outside: Path) -> None:
    assert looked_up(named, "web") == {cluster_ip(named, "web")}
    os.kill(named.state()["pid"], signal.SIGKILL)
    named.start("--pod-network", "pod", "--dns-resolv-conf", str(outside))
    assert looked_up(named, "web") == {cluster_ip(named, "web")}
    assert looked_up(named, "foo.example.com") == {"192.0.2.53"}
