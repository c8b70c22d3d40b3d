"""Manifests as users write them, on the real node: a web tier, its cache and its database behind Services that it
reaches by name; the guestbook; a set whose pods share a port.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from support import guestbook, netexec
from support.eventually import eventually
from support.services import free_port, load
from support.up import IMAGE, Up, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(240)]
POSTGRESQL, MEMCACHED = "localhost/postgresql:distribution", "localhost/memcached:distribution"
INIT = (
    "initdb --pgdata=/data/pg --username=postgres --auth=trust && echo 'host all all all trust' >> /data/pg/pg_hba.conf"
)
SERVER = ["postgres", "-D", "/data/pg", "-k", "/tmp", "-c", "listen_addresses=*"]
READY = {"exec": {"command": ["pg_isready", "--quiet", "-h", "127.0.0.1"]}, "periodSeconds": 1}
COUNT = r"""#!/bin/sh
# How many visits there were: by the cache, else by the database, which the cache is then told.
printf 'Content-Type: text/plain\r\n\r\n'
known=$(printf 'get visits\r\nquit\r\n' | nc cache 11211 | tr -d '\r' | sed -n 2p)
if [ -n "$known" ]; then echo "$(hostname) cache $known"; exit; fi
ask() { psql -h database -U postgres -tAc "$1"; }
ask 'CREATE TABLE IF NOT EXISTS visits (number int)' >/dev/null 2>&1
ask 'INSERT INTO visits VALUES (1)' >/dev/null
known=$(ask 'SELECT count(*) FROM visits')
printf 'set visits 0 0 %d\r\n%s\r\nquit\r\n' "${#known}" "$known" | nc cache 11211 >/dev/null
echo "$(hostname) database $known"
"""
WEB = f"""mkdir -p /tmp/www/cgi-bin; cat > /tmp/www/cgi-bin/count <<'EOF'
{COUNT}EOF
chmod 755 /tmp/www/cgi-bin/count; exec busybox httpd -f -p 8080 -h /tmp/www"""
SERVE = "mkdir -p /www; hostname > /www/index.html; exec httpd -f -p 80 -h /www"
NS = "/api/v1/namespaces/default"


def database() -> list[dict[str, Any]]:
    mount = {"name": "data", "mountPath": "/data"}
    user = {"name": "PGUSER", "value": "postgres"}
    own = {"image": POSTGRESQL, "imagePullPolicy": "Never", "volumeMounts": [mount], "env": [user]}
    pod = {
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [{"name": "init", "command": ["sh", "-c", INIT], **own}],
        "containers": [{"name": "server", "command": SERVER, "readinessProbe": READY, **own}],
    }
    return tier("database", pod, port=5432)


def cache() -> list[dict[str, Any]]:
    probe = {"tcpSocket": {"port": 11211}, "periodSeconds": 1}
    container = {"name": "server", "image": MEMCACHED, "imagePullPolicy": "Never", "readinessProbe": probe}
    return tier("cache", {"containers": [container | {"command": ["memcached", "-m", "16"]}]}, port=11211)


def web() -> list[dict[str, Any]]:
    """Two replicas on one port, and the program that each of them runs for a request."""
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "server", "image": POSTGRESQL, "imagePullPolicy": "Never", "readinessProbe": probe}
    container["command"] = ["sh", "-c", WEB]
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return tier("web", pod, port=8080, replicas=2)


@pytest.mark.images
def test_a_web_tier_reaches_its_cache_and_its_database_by_their_names(cluster: Up) -> None:
    """Users reach it by a forwarded port of its Service, which leads to one replica, and by its address, to both."""
    names = ("database", "cache", "web")
    for image in ("postgresql", "memcached"):
        load(cluster, image)
    cluster.apply(*database(), *cache(), *web())
    for name in names:
        cluster.ok("rollout", "status", f"deployment/{name}", "--timeout=90s", timeout=100)
    port = free_port()
    with subprocess.Popen(cluster.kubectl_command("port-forward", "service/web", f"{port}:8080")) as forwarding:
        try:
            asks = partial(netexec.ask, "tcp", "127.0.0.1", port, "/cgi-bin/count")
            first = eventually(asks, bool, within=30, what="an answer through the forwarded port").split()
        finally:
            forwarding.terminate()
    assert first[1:] == ["database", "1"]
    host = cluster.get("service", "web")["spec"]["clusterIP"]
    others = [netexec.ask("tcp", host, 8080, "/cgi-bin/count").split() for _ in range(12)]
    assert {tuple(told[1:]) for told in others} == {("cache", "1")}, "what the one has put there the others read"
    assert len({told[0] for told in others}) == 2
    cluster.ok("delete", *(f"{kind}/{name}" for kind in ("deployment", "service") for name in names), "--now")


def tier(name: str, pod: dict[str, Any], *, port: int, replicas: int = 1) -> list[dict[str, Any]]:
    """A Deployment and the Service of its name."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    service = {"selector": labels, "ports": [{"port": port}]}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": service},
    ]


# ---------------------------------------------------------------- Kubectl client Guestbook application


def book(name: str, replicas: int, port: int, *words: str) -> list[dict[str, Any]]:
    app, volumes = netexec.container()
    app["command"] = [netexec.PROGRAM[0], "-S", guestbook.PROGRAM, *words]
    app["readinessProbe"] = {"httpGet": {"port": port, "path": "/get"}, "periodSeconds": 1}
    pod = {"terminationGracePeriodSeconds": 1, "volumes": volumes, "containers": [{"image": IMAGE, **app}]}
    return tier(name, pod, port=port, replicas=replicas)


def test_guestbook_should_create_and_stop_a_working_application(cluster: Up) -> None:
    """Three frontends, a store and two copies of it, which know each other by the names of their Services."""
    primary, copy, back = "agnhost-primary", "agnhost-replica", "6379"
    cluster.apply(
        *book("frontend", 3, 80, "frontend", "80", back, primary, copy),
        *book(primary, 1, 6379, "primary", back),
        *book(copy, 2, 6379, "replica", back, primary),
    )
    for name in ("frontend", primary, copy):
        cluster.ok("rollout", "status", f"deployment/{name}", "--timeout=90s", timeout=100)

    def says(cmd: str, value: str = "") -> Any:
        path = f"{NS}/services/frontend/proxy/guestbook?cmd={cmd}&key=messages&value={quote(value)}"
        answer = cluster.kubectl("get", "--raw", path)
        return json.loads(answer.out) if answer.code == 0 else answer.err

    eventually(partial(says, "get"), lambda said: said == {"data": ""}, within=30, what="an empty book")
    assert says("set", "TestEntry") == {"message": "Updated"}
    assert [says("get") for _ in range(6)] == [{"data": "TestEntry"}] * 6
    names = [f"{kind}/{name}" for kind in ("deployment", "service") for name in ("frontend", primary, copy)]
    cluster.ok("delete", *names, "--now")
    selector = f"app in (frontend,{primary},{copy})"
    eventually(
        lambda: cluster.ok("get", "pods", "-l", selector, "-o", "name"),
        lambda there: there == "",
        within=30,
        what="its pods are gone",
    )


# ---------------------------------------------------------------- StatefulSet Basic StatefulSet functionality


@pytest.fixture
def stateful(cluster: Up) -> Iterator[Up]:
    """`ss`, whose pods all listen on port 80 and are ready when they answer there."""
    probe = {"httpGet": {"port": 80, "path": "/index.html"}, "periodSeconds": 1, "failureThreshold": 1}
    container = {"name": "c", "image": IMAGE, "command": ["sh", "-c", SERVE], "readinessProbe": probe}
    labels = {"app": "ss"}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    spec = {
        "serviceName": "ss",
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    cluster.apply(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ss", "labels": labels}, "spec": spec}
    )
    yield cluster
    cluster.ok("delete", "statefulset", "-l", "app=ss", "--cascade=foreground", timeout=100)


def ready(up: Up) -> dict[str, bool]:
    """By name, of pods that are not ending."""
    items = json.loads(up.ok("get", "pods", "-l", "app=ss", "-o", "json"))["items"]
    return {item["metadata"]["name"]: running(item) for item in items if "deletionTimestamp" not in item["metadata"]}


def becomes(up: Up, **wanted: bool) -> None:
    named = {name.replace("_", "-"): one for name, one in wanted.items()}
    eventually(lambda: ready(up), lambda seen: seen == named, within=60, what=f"pods are {named}", told=up.log)


def breaks(up: Up, pod: str) -> None:
    up.ok("exec", pod, "--", "mv", "/www/index.html", "/www/gone.html")


def heals(up: Up, pod: str) -> None:
    up.ok("exec", pod, "--", "mv", "/www/gone.html", "/www/index.html")


@pytest.mark.campaign
def test_scaling_should_happen_in_predictable_order_and_halt_if_any_stateful_pod_is_unhealthy(stateful: Up) -> None:
    """Of three pods that all listen on port 80: none is made, and none goes, while the one before it is not ready."""
    becomes(stateful, ss_0=True)
    breaks(stateful, "ss-0")
    becomes(stateful, ss_0=False)
    stateful.ok("scale", "statefulset/ss", "--replicas=3")
    generation = stateful.get("statefulset", "ss")["metadata"]["generation"]
    eventually(
        partial(stateful.get, "statefulset", "ss"),
        lambda seen: seen["status"]["observedGeneration"] == generation,
        within=20,
        what="the controller has seen it",
    )
    assert ready(stateful) == {"ss-0": False}
    heals(stateful, "ss-0")
    becomes(stateful, ss_0=True, ss_1=True, ss_2=True)
    made = [stateful.get("pod", f"ss-{number}")["metadata"]["creationTimestamp"] for number in range(3)]
    assert made == sorted(made)
    breaks(stateful, "ss-0")
    becomes(stateful, ss_0=False, ss_1=True, ss_2=True)
    stateful.ok("scale", "statefulset/ss", "--replicas=0")
    heals(stateful, "ss-0")
    becomes(stateful)


@pytest.mark.campaign
def test_should_perform_rolling_updates_and_roll_backs_of_template_modifications(stateful: Up) -> None:
    """An update waits for a pod that is not ready, goes on when it is, and goes back to the revision before."""
    stateful.ok("scale", "statefulset/ss", "--replicas=3")
    becomes(stateful, ss_0=True, ss_1=True, ss_2=True)
    first = revisions(stateful)
    assert len(set(first)) == 1
    breaks(stateful, "ss-1")
    becomes(stateful, ss_0=True, ss_1=False, ss_2=True)
    stateful.ok("set", "env", "statefulset/ss", "ROUND=2")
    assert revisions(stateful) == first, "it waits for the one that is not ready"
    heals(stateful, "ss-1")
    stateful.ok("rollout", "status", "statefulset/ss", "--timeout=90s", timeout=100)
    second = revisions(stateful)
    assert len(set(second)) == 1
    assert second != first
    stateful.ok("rollout", "undo", "statefulset/ss")
    stateful.ok("rollout", "status", "statefulset/ss", "--timeout=90s", timeout=100)
    assert revisions(stateful) == first


def revisions(up: Up) -> list[str]:
    items = json.loads(up.ok("get", "pods", "-l", "app=ss", "-o", "json"))["items"]
    return [item["metadata"]["labels"]["controller-revision-hash"] for item in items]


def test_should_list_patch_and_delete_a_collection_of_stateful_sets(stateful: Up) -> None:
    becomes(stateful, ss_0=True)
    listed = json.loads(stateful.ok("get", "statefulsets", "-A", "-l", "app=ss", "-o", "json"))["items"]
    assert [item["metadata"]["name"] for item in listed] == ["ss"]
    patch = {"metadata": {"labels": {"round": "2"}}, "spec": {"replicas": 2}}
    stateful.ok("patch", "statefulset/ss", "--patch", json.dumps(patch))
    becomes(stateful, ss_0=True, ss_1=True)
    stateful.ok("delete", "statefulset", "-l", "round=2", "--wait=false")
    becomes(stateful)
    assert stateful.ok("get", "statefulsets", "-A", "-l", "app=ss", "-o", "name") == ""
