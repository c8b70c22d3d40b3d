"""`kubectl set resources` on a real node, on workloads with `podfit.dev/rollout: in-place` (docs/rollouts.md)."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from support.eventually import PATIENCE, eventually
from support.up import IMAGE, STAY, Up, resources
from support.vpa_processes import vpa

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
KINDS = {"Deployment": 10, "StatefulSet": 10, "DaemonSet": 1}


def workload(kind: str, size: int) -> dict[str, Any]:
    name = kind.lower()
    container = {
        "name": "app",
        "image": IMAGE,
        "command": STAY,
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    pod = {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [container]}
    labels = {"app": name}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    more: dict[str, Any] = {} if kind == "DaemonSet" else {"replicas": size}
    more |= {"serviceName": "s", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    meta = {"name": name, "annotations": {"podfit.dev/rollout": "in-place"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec | more}


def facts(up: Up, name: str) -> dict[str, tuple[str, int, str]]:
    """By UID of each pod its container, how often that was started again, and what its node gives it."""
    pods = json.loads(up.ok("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
    told = [(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]) for pod in pods]
    return {uid: (one["containerID"], one["restartCount"], one["resources"]["requests"]["cpu"]) for uid, one in told}


@pytest.fixture(params=KINDS)
def kind(cluster: Up, request: pytest.FixtureRequest) -> Iterator[str]:
    cluster.apply(workload(request.param, KINDS[request.param]))
    cluster.ok("rollout", "status", f"{request.param.lower()}/{request.param.lower()}", "--timeout=120s", timeout=130)
    yield request.param
    cluster.ok("delete", request.param.lower(), request.param.lower(), "--cascade=foreground", timeout=120)


@pytest.mark.timeout(300)
def test_a_new_size_in_the_template_restarts_nothing(cluster: Up, kind: str) -> None:
    name, target = kind.lower(), f"{kind.lower()}/{kind.lower()}"
    before = facts(cluster, name)
    assert len(before) == KINDS[kind]

    def unchanged(cpu: str) -> None:
        cluster.ok("rollout", "status", target, "--timeout=120s", timeout=130)
        assert facts(cluster, name) == {uid: (container, 0, cpu) for uid, (container, _, _) in before.items()}

    cluster.ok("set", "resources", target, "--requests=cpu=20m,memory=16Mi")
    unchanged("20m")
    assert len(cluster.ok("rollout", "history", target).split("REVISION")[1].strip().splitlines()) == 3
    cluster.ok("rollout", "undo", target)
    unchanged("10m")
    versions = cluster.ok("get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    for _ in range(3):
        cluster.apply(workload(kind, KINDS[kind]))
    unchanged("10m")
    after = cluster.ok("get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    assert after == versions, "what was applied again and again is the same"


SIMULATED = tuple(f"played-{number}" for number in range(10))


def played(name: str) -> dict[str, Any]:
    """A Node that `podfit up --play-kwok-nodes` simulates."""
    sizes = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    meta = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": sizes, "allocatable": sizes}}


def by_node(up: Up, name: str) -> dict[str, str]:
    """UIDs of the pods that are there."""
    pods = json.loads(up.ok("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
    return {
        pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    }


@pytest.mark.campaign
@pytest.mark.timeout(400)
def test_a_daemon_set_on_ten_simulated_nodes_and_the_real_one(
    cluster_dir: Up, figure: Callable[[str, object], None]
) -> None:
    """A DaemonSet of eleven pods, one of them with a container that runs: a new size and its undo restart and replace
    nothing. Then one of Guaranteed pods: on the real node, whose CPU manager is static, the resize is Infeasible, and
    that pod alone is replaced.
    """
    up, name, target = cluster_dir, "daemonset", "daemonset/daemonset"
    up.start("--play-kwok-nodes", "--cpu-manager-policy", "static", "--reserved-cpus", "0")
    up.apply(*(played(node) for node in SIMULATED))
    up.ok("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s", timeout=70)
    made = workload("DaemonSet", 1)
    up.apply(made)
    up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
    before = facts(up, name)
    assert len(before) == 11
    for cpu, *command in (
        ("20m", "set", "resources", target, "--requests=cpu=20m"),
        ("10m", "rollout", "undo", target),
    ):
        up.ok(*command)
        up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
        assert facts(up, name) == {uid: (container, 0, cpu) for uid, (container, *_) in before.items()}
    up.ok("delete", target, "--wait", timeout=120)

    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = resources("50m", "16Mi")
    up.apply(made)
    up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
    first = by_node(up, name)
    container["resources"] = resources("60m", "16Mi")
    up.apply(made)
    up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
    second = by_node(up, name)
    assert {node for node in first if first[node] != second[node]} == first.keys() - set(SIMULATED)
    events = json.loads(up.ok("get", "events", "--field-selector=reason=ReplacingPod", "-o", "json"))["items"]
    assert [event["message"] for event in events if "infeasible" in event["message"].lower()]
    figure("pods resized in place", 11)
    figure("replaced as Infeasible", 1)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_a_size_that_a_vpa_gave_stays(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """A StatefulSet of 10 on the real node whose VPA has given its pods their CPU: a new size in the template changes
    memory alone, in place, without a restart, and rolls out to its end.
    """
    up, name, target = cluster_dir, "statefulset", "statefulset/statefulset"
    up.start()
    up.apply(workload("StatefulSet", 10))
    up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
    policy = {"containerName": "app", "controlledResources": ["cpu"]}
    policies = [policy | {"minAllowed": {"cpu": "25m"}, "maxAllowed": {"cpu": "25m"}}]
    up.apply(vpa(name, "StatefulSet", resourcePolicy={"containerPolicies": policies}))
    given = eventually(
        lambda: facts(up, name),
        lambda pods: {cpu for *_, cpu in pods.values()} == {"25m"},
        within=300,
        what="the VPA's size",
        told=up.log,
        every=1,
    )
    up.ok("set", "resources", target, "--requests=cpu=15m,memory=24Mi")
    up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
    assert facts(up, name) == {uid: (container, 0, "25m") for uid, (container, *_) in given.items()}
    memory = up.ok("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].resources.requests.memory}")
    assert memory.split() == ["24Mi"] * 10
    figure("pods", len(given))


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_everything_is_killed_in_the_midst_of_it(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """30 times: a new size in the templates of a Deployment and a StatefulSet of 10 on the real node, SIGKILL of
    `podfit up`, which is controllers, kubelet and API server, after up to 1.5 s, and another one started. Every pod is
    there once and has the size; no container was restarted or made anew."""
    chance, up, names = Random(31), cluster_dir, ("deployment", "statefulset")
    up.start()
    up.apply(*(workload(kind, KINDS[kind]) for kind in ("Deployment", "StatefulSet")))
    for name in names:
        up.ok("rollout", "status", f"{name}/{name}", "--timeout=120s", timeout=130)
    before = {name: facts(up, name) for name in names}
    unfinished = 0
    for number in range(30):
        cpu = f"{11 + number}m"
        targets = [f"{name}/{name}" for name in names]
        command = up.kubectl_command("set", "resources", *targets, f"--requests=cpu={cpu},memory=16Mi")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as setting:
            assert setting.wait(60 * PATIENCE) == 0
        time.sleep(chance.uniform(0, 1.5))
        pid = up.state()["pid"]
        os.kill(pid, signal.SIGKILL)
        eventually(partial(os.path.exists, f"/proc/{pid}"), lambda there: not there, within=30, what="killed")
        up.start()
        wanted = {name: {uid: (one, 0, cpu) for uid, (one, *_) in before[name].items()} for name in names}
        unfinished += {name: facts(up, name) for name in names} != wanted
        for target in targets:
            up.ok("rollout", "status", target, "--timeout=120s", timeout=130)
        assert {name: facts(up, name) for name in names} == wanted
    figure("kills", 30)
    figure("before it was finished", unfinished)
