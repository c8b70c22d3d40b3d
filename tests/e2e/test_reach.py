"""Who reaches the API server: a real pod by its environment, a client on another network by the gateway's address."""

import json
import os
import ssl
import subprocess
import sysconfig
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from podfit.net.addresses import outward
from support.eventually import PATIENCE
from support.up import IMAGE, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]

PYTHON = Path(sysconfig.get_config_var("prefix"))  # the host's own, which a pod is lent with everything it stands on
PACKAGES = Path(sysconfig.get_path("purelib"))
LENT = ("/usr", "/lib", "/lib64", "/etc/ssl", str(PYTHON), str(PACKAGES))
IN_CLUSTER = """
import os, kubernetes
kubernetes.config.load_incluster_config()
core = kubernetes.client.CoreV1Api()
pod = core.read_namespaced_pod(os.environ["HOSTNAME_OF_POD"], "default")
print(pod.metadata.name, pod.status.phase, kubernetes.client.Configuration.get_default_copy().host)
try:
    core.read_namespaced_secret("other", "default")
except kubernetes.client.ApiException as refused:
    print(refused.status)
"""


def test_a_program_in_a_pod_reaches_the_api_server_as_in_any_cluster(cluster: Up) -> None:
    """The official client with its in-cluster configuration: address from the environment, the account's token, the
    cluster's authority."""
    cluster.ok("create", "serviceaccount", "program")
    cluster.ok("create", "role", "look", "--verb=get", "--resource=pods")
    cluster.ok("create", "rolebinding", "look", "--role=look", "--serviceaccount=default:program")
    paths = [path for path in dict.fromkeys(LENT) if Path(path).exists()]
    mounts = [{"name": f"v{index}", "mountPath": path, "readOnly": True} for index, path in enumerate(paths)]
    volumes = [{"name": f"v{index}", "hostPath": {"path": os.path.realpath(path)}} for index, path in enumerate(paths)]
    named = {"fieldRef": {"fieldPath": "metadata.name"}}
    container = {
        "name": "c",
        "image": IMAGE,
        "command": [f"{PYTHON}/bin/python3", "-c", IN_CLUSTER],
        "volumeMounts": mounts,
        "env": [{"name": "PYTHONPATH", "value": str(PACKAGES)}, {"name": "HOSTNAME_OF_POD", "valueFrom": named}],
    }
    spec = {"serviceAccountName": "program", "restartPolicy": "Never", "volumes": volumes, "containers": [container]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "program"}, "spec": spec})
    cluster.kubectl("wait", "pod/program", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s")
    name, phase, where, refused = cluster.ok("logs", "program").split()
    assert (name, refused) == ("program", "403")
    assert phase in ("Pending", "Running")  # what the server knows so early
    assert where == f"https://{cluster.get('service', 'kubernetes')['spec']['clusterIP']}:443"
    cluster.ok("delete", "pod/program", "serviceaccount/program", "role/look", "rolebinding/look", "--now")


GATEWAY, GUEST = "10.213.7.1", "10.213.7.2"
BRIDGE, PORT = "pftest0", "pftest1"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def guest() -> Iterator[tuple[str, ...]]:
    """A bridge as the CNI plugin makes them, its gateway on the host, and one network namespace on it: the words that
    run a command there.
    """
    sleeper = subprocess.Popen(["unshare", "--net", "sleep", "300"])
    pid = str(sleeper.pid)
    inside = ("nsenter", "--target", pid, "--net")
    try:
        while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            assert sleeper.poll() is None
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        _ip("link", "add", PORT, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _ip("link", "set", PORT, "master", BRIDGE, "up")
        subprocess.run([*inside, "ip", "addr", "add", f"{GUEST}/24", "dev", "eth0"], check=True)
        subprocess.run([*inside, "ip", "link", "set", "eth0", "up"], check=True)
        yield inside
    finally:
        sleeper.kill()
        sleeper.wait()
        subprocess.run(["ip", "link", "delete", BRIDGE], check=False)


def test_a_client_on_a_bridge_reaches_the_gateway(guest: tuple[str, ...], cluster_dir: Up) -> None:
    said = cluster_dir.start("--bind-address", GATEWAY, "--tls-san", "api.example", node="simulated").out
    port = int(cluster_dir.state()["server"].rpartition(":")[2])
    assert f"for others https://{GATEWAY}:{port}, listening on 127.0.0.1, {GATEWAY}" in said
    authority = cluster_dir.root / "pki" / "ca.crt"
    curl = (
        *guest,
        "curl",
        "-sS",
        "--max-time",
        "10",
        "--cacert",
        str(authority),
        "--resolve",
        f"api.example:{port}:{GATEWAY}",
    )
    for name in (GATEWAY, "api.example"):
        asked = subprocess.run([*curl, f"https://{name}:{port}/version"], capture_output=True, text=True, check=False)
        assert json.loads(asked.stdout)["major"] == "1", asked.stderr
    told = cluster_dir.ok(
        "--server",
        f"https://{GATEWAY}:{port}",
        "get",
        "endpointslices,endpoints",
        "kubernetes",
        "-o",
        "jsonpath={.items[*].endpoints[*].addresses}{.items[*].subsets[*].addresses[*].ip}",
    )
    assert GATEWAY in told
    assert "127.0.0.1" not in told
    if own := outward(version=4):  # loopback and the gateway, and nowhere else
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(
                f"https://{own}:{port}/", timeout=5 * PATIENCE, context=ssl._create_unverified_context()
            )
