"""Pods with addresses of their own on a real node: who reaches whom, and that nothing of them stays."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podfit.kubelet.network.machine import SharedNetwork
from podfit.process.data.data_dir import DataDir
from podfit.process.node.leftovers import Traces
from podfit.process.node.pod_network import network_tag
from support.eventually import eventually
from support.machine import Snapshot
from support.services import free_port
from support.up import Up, manifest, run, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
PORT = 8080
SERVE = f"mkdir -p /www; hostname > /www/index.html; exec httpd -f -p {PORT} -h /www"
OTHERS = f"podfit-test-others-{os.getpid()}"
TABLE_OF_OTHERS = f"""table ip {OTHERS} {{
	chain forward {{
		type filter hook forward priority filter; policy accept;
		counter packets 0 bytes 0 accept
	}}
}}"""


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    before = Snapshot.take()
    off = Path("/proc/sys/net/ipv4/ip_forward").read_text().strip() == "0"
    up = Up(tmp_path_factory.mktemp("routed"))
    try:
        said = up.start("--pod-network", "pod").out
        assert "net.ipv4.ip_forward" in said or not off
        up.apply(server("a"), server("b"), manifest("on-the-host"))
        for name in ("a", "b", "on-the-host"):
            up.pod_when(name, running, "runs")
        yield up
    finally:
        answer = up.down()
    assert answer.code == 0, answer.err
    assert Snapshot.take().since(before) == {}


def server(name: str, **spec: Any) -> dict[str, Any]:
    """Each listens on the same port, and is ready when it answers there."""
    probe = {"httpGet": {"port": PORT}, "periodSeconds": 1}
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {"name": "app", "command": ["sh", "-c", SERVE], "readinessProbe": probe, "env": [address]}
    return manifest(name, container, **{"hostNetwork": False, **spec})


def address(up: Up, name: str) -> str:
    return str(up.get("pod", name)["status"]["podIP"])


def asks(up: Up, pod: str, host: str, port: int | str = PORT) -> str:
    """What a pod is answered; empty when it is not. (The static busybox cannot use wget here.)"""
    asking = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 5 nc -w 2 {host} {port}"
    return up.kubectl("exec", pod, "--", "sh", "-c", asking).out.rpartition("\n\n")[2].strip()


def connects(up: Up, pod: str, host: str, port: int) -> bool:
    return up.kubectl("exec", pod, "--", "sh", "-c", f"nc -w 2 {host} {port} </dev/null").code == 0


def test_two_pods_on_one_port_have_addresses_of_the_nodes_range_and_reach_each_other(routed: Up) -> None:
    [node] = json.loads(routed.ok("get", "nodes", "-o", "json"))["items"]
    assert node["spec"]["podCIDRs"] == [node["spec"]["podCIDR"]]
    first, second = address(routed, "a"), address(routed, "b")
    prefix = node["spec"]["podCIDR"].rpartition(".")[0]
    assert first != second
    assert {first.rpartition(".")[0], second.rpartition(".")[0]} == {prefix}
    assert (asks(routed, "a", second), asks(routed, "b", first), asks(routed, "a", first)) == ("b", "a", "a")
    assert routed.ok("exec", "a", "--", "sh", "-c", "echo $POD_IP").strip() == first


def test_a_pod_on_the_hosts_network_has_the_nodes_address_and_reaches_the_others(routed: Up) -> None:
    status = routed.get("pod", "on-the-host")["status"]
    assert status["podIP"] == status["hostIP"] != routed.get("pod", "a")["status"]["podIP"]
    assert asks(routed, "on-the-host", address(routed, "a")) == "a"


def test_what_the_pod_is_called_in_its_files_and_by_the_kernel(routed: Up) -> None:
    routed.apply(server("named", hostname="front", subdomain="shop"))
    routed.pod_when("named", running, "runs")
    files = routed.ok("exec", "named", "--", "sh", "-c", "cat /etc/hosts; hostname; cat /etc/hostname; echo $HOSTNAME")
    hosts, *names = files.rsplit("\n", 4)[:-1]
    assert hosts.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert hosts.endswith(f"{address(routed, 'named')}\tfront.shop.default.svc.cluster.local\tfront")
    assert names == ["front", "front", "front"]
    routed.ok("delete", "pod/named", "--now")


def test_port_forward_and_the_proxy_reach_the_pods_own_port(routed: Up) -> None:
    assert routed.ok("get", "--raw", f"/api/v1/namespaces/default/pods/b:{PORT}/proxy/").strip() == "b"
    port = free_port()
    with subprocess.Popen(routed.kubectl_command("port-forward", "pod/b", f"{port}:{PORT}")) as forwarding:
        try:
            got = eventually(lambda: fetched(port), bool, within=15, what="an answer through the forwarded port")
        finally:
            forwarding.terminate()
    assert got.strip().endswith("b")


def fetched(port: int) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    except OSError:
        return ""


def test_hooks_ask_the_pod_itself(routed: Up) -> None:
    hook = {"postStart": {"httpGet": {"port": PORT, "path": "/index.html"}}}
    pod = server("hooked")
    script = f"mkdir -p /www; hostname > /www/index.html; httpd -p {PORT} -h /www; exec sleep 3600"
    pod["spec"]["containers"][0] |= {"lifecycle": hook, "command": ["sh", "-c", script]}
    routed.apply(pod)
    routed.pod_when("hooked", running, "runs", seconds=60)
    routed.ok("delete", "pod/hooked", "--now")


def test_a_sysctl_of_the_pods_network_is_set_in_it_alone(routed: Up) -> None:
    sysctl = {"name": "net.ipv4.ip_unprivileged_port_start", "value": "7"}
    routed.apply(server("tuned", securityContext={"sysctls": [sysctl]}))
    routed.pod_when("tuned", running, "runs")
    file = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
    assert routed.ok("exec", "tuned", "--", "cat", file).strip() == "7"
    assert Path(file).read_text().strip() != "7"
    routed.ok("delete", "pod/tuned", "--now")


def test_an_operator_in_a_pod_reaches_the_api_server_by_its_environment(routed: Up) -> None:
    env = routed.ok("exec", "a", "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT")
    host, port = env.split()
    for pod in ("a", "on-the-host"):
        assert connects(routed, pod, host, int(port))
    certificate = run("openssl", "s_client", "-connect", f"{host}:{port}", "-verify_ip", host, stdin="").out
    assert "Verification error: unable to" in certificate or "verify" in certificate.lower()
    assert "IP address mismatch" not in certificate


# ---------------------------------------------------------------- attacks


def test_no_pod_reaches_the_loopback_of_the_host_or_of_another(routed: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        routed.apply(manifest("attacker", {"name": "app", "securityContext": {"privileged": True}}, hostNetwork=False))
        routed.pod_when("attacker", running, "runs")
        assert not connects(routed, "attacker", "127.0.0.1", port)
        # as CVE-2020-8558: the neighbour is asked to take packets for loopback
        gateway = address(routed, "a").rpartition(".")[0] + ".1"
        steps = (
            "sysctl -w net.ipv4.conf.all.route_localnet=1 net.ipv4.conf.eth0.route_localnet=1; "
            f"ip addr del 127.0.0.1/8 dev lo; ip route add 127.0.0.1 via {gateway} dev eth0; "
            f"nc -w 2 127.0.0.1 {port} </dev/null"
        )
        answer = routed.kubectl("exec", "attacker", "--", "sh", "-c", steps)
        assert answer.code != 0, answer.out
        listening.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listening.accept()
    routed.ok("delete", "pod/attacker", "--now")


def test_a_pod_that_takes_its_neighbours_address_is_not_heard(routed: Up) -> None:
    victim = address(routed, "a")
    routed.apply(manifest("spoofer", {"name": "app", "securityContext": {"privileged": True}}, hostNetwork=False))
    routed.pod_when("spoofer", running, "runs")
    own, other = address(routed, "spoofer"), address(routed, "b")
    way = ("ip", "route", "replace", other, "via", f"{own.rpartition('.')[0]}.1", "dev", "eth0", "src")
    for taken in (victim, "203.0.113.9"):
        routed.ok("exec", "spoofer", "--", "ip", "addr", "add", f"{taken}/32", "dev", "eth0")
        routed.ok("exec", "spoofer", "--", *way, taken)
        assert asks(routed, "spoofer", other) == ""
    routed.ok("exec", "spoofer", "--", *way, own)
    assert asks(routed, "spoofer", other) == "b"
    routed.ok("delete", "pod/spoofer", "--now")


def test_only_pods_and_this_machine_reach_the_api_server_at_the_gateway(routed: Up) -> None:
    """Another machine is a namespace of its own here, whose way to the gateway leads over this machine."""
    env = routed.ok("exec", "a", "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT")
    host, port = env.split()
    name = f"podfit-test-{os.getpid() % 10000}"
    device = f"pt{os.getpid() % 10000}"
    commands = (
        f"ip netns add {name}",
        f"ip link add {device} type veth peer name eth0 netns {name}",
        f"ip addr add 198.51.100.1/30 dev {device}",
        f"ip link set {device} up",
        f"ip -n {name} addr add 198.51.100.2/30 dev eth0",
        f"ip -n {name} link set eth0 up",
        f"ip -n {name} route add default via 198.51.100.1",
    )
    try:
        for command in commands:
            assert run(*command.split()).code == 0, command
        reach = ("ip", "netns", "exec", name, "busybox", "nc", "-w", "2")
        assert run("ip", "netns", "exec", name, "busybox", "ping", "-c", "1", "-W", "2", "198.51.100.1").code == 0
        assert run(*reach, host, port, stdin="").code != 0
        assert run(*reach, address(routed, "a"), str(PORT), stdin="").code != 0
    finally:
        run("ip", "link", "del", device)
        run("ip", "netns", "del", name)


# ---------------------------------------------------------------- lasting, and the end


def free(up: Up) -> set[str]:
    folder = next((up.root / "containerd/addresses").iterdir())
    return {path.name for path in folder.iterdir() if path.name[0].isdigit()}


def test_a_deleted_pods_address_is_free_and_its_interface_gone(routed: Up) -> None:
    routed.apply(server("short"))
    mine = routed.pod_when("short", running, "runs")["status"]["podIP"]
    assert mine in free(routed)
    assert mine in run("ip", "route").out
    routed.ok("delete", "pod/short", "--now")
    eventually(lambda: free(routed), lambda taken: mine not in taken, within=20, what="the address is free")
    assert mine not in run("ip", "route").out.split()


def killed(up: Up) -> None:
    """podfit and its containerd, at once; containers go on."""
    state = up.state()
    pids = [state["pid"], *(node["containerd_pid"] for node in state["nodes"])]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: [p for p in pids if Path(f"/proc/{p}/exe").exists()], lambda p: not p, within=10, what="killed")


def test_after_sigkill_of_everything_addresses_are_as_they_were_and_down_leaves_nothing(cluster_dir: Up) -> None:
    cluster_dir.start("--pod-network", "pod")
    cluster_dir.apply(server("stays"), server("goes"))
    before = {name: cluster_dir.pod_when(name, running, "runs")["status"]["podIP"] for name in ("stays", "goes")}
    killed(cluster_dir)
    cluster_dir.start("--pod-network", "pod")
    assert address(cluster_dir, "stays") == before["stays"]
    cluster_dir.ok("delete", "pod/goes", "--now")
    eventually(lambda: free(cluster_dir), lambda taken: taken == {before["stays"]}, within=20, what="one address taken")
    assert asks(cluster_dir, "stays", "127.0.0.1") == "stays"
    killed(cluster_dir)
    (answer,) = Path("/var/lib/cni/results").glob(f"{network_tag(DataDir(cluster_dir.root))}-*")
    answer.write_text("")  # as a runtime that was killed while it wrote it
    assert cluster_dir.down().code == 0


def rebooted(up: Up) -> None:
    """What a machine has lost that went down and came up: every process, mounts, interfaces, rules, what is in /run."""
    runtime = Path(up.state()["nodes"][0]["runtime_endpoint"]).parent
    killed(up)
    while left := [line.split()[0] for line in Traces(DataDir(up.root)).look().processes]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in reversed([one for one in mounts if one.startswith((str(runtime), f"{up.root}/"))]):
        run("umount", "-l", mount)
    shutil.rmtree(runtime)
    tag = network_tag(DataDir(up.root))
    for table in (tag, f"{tag}-services"):
        run("nft", "delete", "table", "ip", table)
    SharedNetwork(tag).release()


def test_after_a_reboot_a_pod_has_an_address_again_and_its_old_one_is_free(cluster_dir: Up) -> None:
    cluster_dir.start()
    cluster_dir.apply(server("stays"))
    before = cluster_dir.pod_when("stays", running, "runs")["status"]
    rebooted(cluster_dir)
    assert free(cluster_dir) == {before["podIP"]}
    cluster_dir.start()

    def anew(pod: dict[str, Any]) -> bool:
        [status] = pod["status"]["containerStatuses"]
        return running(pod) and status["containerID"] != before["containerStatuses"][0]["containerID"]

    now = cluster_dir.pod_when("stays", anew, "runs again", seconds=60)["status"]["podIP"]
    assert asks(cluster_dir, "stays", now) == "stays"
    eventually(lambda: free(cluster_dir), lambda taken: taken == {now}, within=30, what="one address is taken")
    assert cluster_dir.down().code == 0


@pytest.mark.campaign
@pytest.mark.timeout(2400)
def test_five_hundred_pods_with_kills_leave_nothing(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """500 pods with addresses of their own, made and deleted in rounds of 100; in each round SIGKILL of podfit and of
    its containerd, at once, while pods are made, and another while they are deleted. After that no address is taken,
    no interface, route, namespace or answer of a plugin is there, and no table but those that were there before.
    """
    chance, rounds, size, kills = Random(30), 5, 100, 0
    before = Snapshot.take()
    cluster_dir.start()
    table = set(run("nft", "list", "tables").out.splitlines()) - before.rules
    for number in range(rounds):
        names = [f"p{number}-{index}" for index in range(size)]
        for step in ("make", "delete"):
            words = ("apply", "-f", "-") if step == "make" else ("delete", "pod", *names, "--now", "--wait=false")
            text = "\n".join(json.dumps(manifest(name, hostNetwork=False)) for name in names)
            cluster_dir.ok(*words, stdin=text)
            left = chance.randrange(size)
            eventually(lambda: len(free(cluster_dir)), partial(reached, left, step), within=60, what=f"{left} {step}")
            killed(cluster_dir)
            kills += 1
            cluster_dir.start()
            if step == "make":
                cluster_dir.ok("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s", timeout=130)
                addresses = cluster_dir.ok("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split()
                assert len(set(addresses)) == size
        eventually(lambda: cluster_dir.ok("get", "pods", "-o", "name"), lambda pods: not pods, within=90, what="gone")
    eventually(lambda: traces_of_pods(cluster_dir), lambda seen: not seen, within=300, what="nothing of pods is left")
    assert set(run("nft", "list", "tables").out.splitlines()) - before.rules == table
    figure("pods", rounds * size)
    figure("kills of podfit and containerd", kills)
    assert cluster_dir.down().code == 0


def reached(left: int, step: str, taken: int) -> bool:
    return taken >= left if step == "make" else taken <= left


def traces_of_pods(up: Up) -> list[str]:
    """Addresses, plugins' answers, routes and with them interfaces, and namespaces that are there."""
    tag = next((up.root / "containerd/addresses").iterdir()).name
    answers = [path.name for path in Path("/var/lib/cni/results").glob(f"{tag}-*")]
    runtime = str(Path(up.state()["nodes"][0]["runtime_endpoint"]).parent)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    namespaces = [mount for mount in mounts if mount.startswith(runtime) and "/netns/" in mount]
    prefix = (up.root / "pod-range").read_text().partition(".0.0/")[0]
    routes = [line for line in run("ip", "route").out.splitlines() if line.startswith(f"{prefix}.")]
    return [*free(up), *answers, *namespaces, *routes]


def test_a_directory_of_pods_on_the_hosts_network_comes_up_with_them_working(cluster_dir: Up) -> None:
    """As one that an earlier podfit has left: its sandboxes stay where they are, new pods have addresses."""
    cluster_dir.start("--pod-network", "host")
    old = server("old")
    port = free_port()
    old["spec"]["containers"][0]["command"] = ["sh", "-c", SERVE.replace(str(PORT), str(port))]
    old["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = port
    cluster_dir.apply(old)
    status = cluster_dir.pod_when("old", running, "runs")["status"]
    assert status["podIP"] == status["hostIP"]
    killed(cluster_dir)
    said = cluster_dir.start("--pod-network", "pod").out
    assert "default/old" in said
    cluster_dir.apply(server("new"))
    new = cluster_dir.pod_when("new", running, "runs")["status"]
    assert new["podIP"] != new["hostIP"]
    again = cluster_dir.pod_when("old", running, "runs")["status"]
    assert again["podIP"] == status["podIP"]
    assert again["containerStatuses"][0]["restartCount"] == 0
    assert asks(cluster_dir, "new", again["podIP"], port)
    assert cluster_dir.down().code == 0


def test_tables_and_bridges_of_others_are_as_they_were(cluster_dir: Up) -> None:
    """Also where bridges are asked for rules of iptables and where they are not."""
    switch = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    before = switch.read_text() if switch.exists() else ""
    nft = shutil.which("nft")
    assert nft
    subprocess.run([nft, "-f", "-"], input=TABLE_OF_OTHERS, text=True, check=True)
    bridge = f"pb{os.getpid() % 10000}"
    run("ip", "link", "add", bridge, "type", "bridge")
    try:
        for value in ("1", "0") if before else ("",):
            if value:
                switch.write_text(value)
            cluster_dir.start("--pod-network", "pod")
            cluster_dir.apply(server("a"), server("b"))
            for name in ("a", "b"):
                cluster_dir.pod_when(name, running, "runs")
            assert asks(cluster_dir, "a", address(cluster_dir, "b")) == "b"
            assert cluster_dir.down().code == 0
        kept = run(nft, "list", "table", "ip", OTHERS).out
        assert "hook forward priority filter; policy accept;" in kept
        assert bridge in run("ip", "link").out
    finally:
        run("ip", "link", "del", bridge)
        run(nft, "delete", "table", "ip", OTHERS)
        if before:
            switch.write_text(before)
