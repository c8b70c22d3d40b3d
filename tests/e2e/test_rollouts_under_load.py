"""A web tier is rolled out and resized in place while it is asked through its Service without a pause."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support import netexec
from support.up import IMAGE, Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(600)]
LABELS = {"app": "tier"}
THREADS, FEW = 4, 1_000


def tier(*, pre_stop: bool) -> list[dict[str, Any]]:
    """Two replicas that close their listener on TERM, and their Service. With `pre_stop` they are told of it 2 s before
    that, so that the Service leads nobody to them any more.
    """
    hook: dict[str, Any] = {"lifecycle": {"preStop": {"sleep": {"seconds": 2}}}} if pre_stop else {}
    app, volumes = netexec.container("tcp/8080", resources={"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}, **hook)
    app["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    pod = {"terminationGracePeriodSeconds": 10, "volumes": volumes, "containers": [{"image": IMAGE, **app}]}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    ports = [{"port": 80, "targetPort": 8080}]
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "tier"}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "tier"},
            "spec": {"selector": LABELS, "ports": ports},
        },
    ]


@contextmanager
def client(up: Up, *, pre_stop: bool) -> Iterator[tuple[str, ...]]:
    """The words that ask the tier from a pod, but for how long and how often."""
    up.apply(*tier(pre_stop=pre_stop))
    app, volumes = netexec.container("tcp/8080")
    up.apply(manifest("asks", app, hostNetwork=False, volumes=volumes))
    up.ok("rollout", "status", "deployment/tier", "--timeout=60s", timeout=70)
    up.pod_when("asks", running, "runs")
    host = up.get("service", "tier")["spec"]["clusterIP"]
    try:
        yield up.kubectl_command("exec", "-i", "asks", "--", *netexec.PROGRAM, "load", host, "80")
    finally:
        up.ok("delete", "deployment/tier", "service/tier", "pod/asks", "--now")


def rolled_out(up: Up, asking: tuple[str, ...], least: int) -> dict[str, Any]:
    """What came of at least so many requests, and how many rollouts and resizes of pods there were meanwhile."""
    rollouts = resizes = 0
    words = (*asking, str(THREADS), str(least))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        while not rollouts or (least > FEW and load.poll() is None):
            up.ok("rollout", "restart", "deployment/tier")
            up.ok("rollout", "status", "deployment/tier", "--timeout=90s", timeout=100)
            rollouts += 1
            for name in up.ok("get", "pods", "-l", "app=tier", "-o", "name").split():
                cpu = {"name": "app", "resources": {"requests": {"cpu": f"{10 + rollouts}m"}}}
                patch = json.dumps({"spec": {"containers": [cpu]}})
                resizes += up.kubectl("patch", name, "--subresource=resize", "--patch", patch).code == 0
            if rollouts == 1 and load.stdin is not None:
                load.stdin.close()
        assert load.stdout is not None
        told: dict[str, Any] = json.loads(load.stdout.read())
    return {**told, "rollouts": rollouts, "resizes": resizes}


def test_no_request_fails_while_a_web_tier_is_rolled_out_and_resized(cluster: Up) -> None:
    with client(cluster, pre_stop=True) as asking:
        told = rolled_out(cluster, asking, FEW)
    assert told["made"] >= FEW
    assert told["resizes"] >= 2
    assert (told["failed"], told["first"]) == (0, [])


@pytest.mark.campaign
def test_no_request_of_twenty_thousand_fails(cluster: Up, figure: Callable[[str, object], None]) -> None:
    """20,000 requests of a pod through a ClusterIP to two replicas that are rolled out and resized in place all the
    while; they close their listener on TERM, 2 s after they were told (preStop). None fails. The same without the
    preStop hook: how many fail then.
    """
    with client(cluster, pre_stop=True) as asking:
        told = rolled_out(cluster, asking, 20_000)
    with client(cluster, pre_stop=False) as asking:
        without = rolled_out(cluster, asking, 20_000)
    for name in ("made", "rollouts", "resizes", "failed"):
        figure(name, told[name])
    figure("failed without preStop", f"{without['failed']} of {without['made']} in {without['rollouts']} rollouts")
    assert told["made"] >= 20_000
    assert (told["failed"], told["first"]) == (0, [])
