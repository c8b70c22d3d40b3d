"""Bursts as a user turns them on: kubectl annotates a VPA, and seconds later its busy pod has more."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from e2e.test_vpa_on_a_node import manifest, pods
from podfit.api.core.v1.pods.burst import CEILING
from podfit.decide.pod.resize_state import BURST
from podfit.kubelet.cgroup.detect import detect
from podfit.process.data.data_dir import DataDir
from podfit.process.node.runtime import cgroup_layout
from support.eventually import eventually
from support.up import PODFIT, Up, run, settled
from support.vpa_processes import DEFINITIONS, deployment, logs, vpa, vpa_process

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(420),
]


def limits(up: Up) -> tuple[dict[str, str], dict[str, str]]:
    """As the spec says, and as the node does."""
    (pod,) = pods(up)
    statuses = pod["status"].get("containerStatuses") or [{}]
    return (pod["spec"]["containers"][0]["resources"]["limits"], statuses[0].get("resources", {}).get("limits", {}))


def test_a_busy_pod_bursts_and_its_spec_follows(cluster_dir: Up) -> None:
    """README's busy Deployment with its VPA annotated: the limit of 100m becomes the ceiling of 200m, in the kernel and
    then in the spec, without a restart; `podfit plan --burst` says that the ceiling is held.
    """
    up = cluster_dir
    up.start()
    applied = up.kubectl("apply", "-f", "-", stdin=manifest())
    assert applied.code == 0, applied.err
    eventually(
        lambda: pods(up),
        lambda there: len(there) == 1 and there[0]["status"]["phase"] == "Running",
        within=60,
        what="the pod runs",
        told=up.log,
        every=0.5,
    )
    up.ok("annotate", "vpa/busy", "podfit.dev/burst=enabled")
    eventually(
        lambda: limits(up),
        lambda both: both[0].get("cpu") == both[1].get("cpu") == "200m",
        within=60,
        what="kernel and spec are at the ceiling",
        told=up.log,
        every=0.2,
    )
    (pod,) = pods(up)
    ranges: dict[str, Any] = json.loads(pod["metadata"]["annotations"][CEILING])
    assert [between["floor"]["cpu"] for between in ranges.values()] == ["100m"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    planned = run(PODFIT, "plan", "deployment/busy", "--burst", "--kubeconfig", str(up.kubeconfig))
    assert planned.code == 0, planned.out
    assert "held" in planned.out
    events = json.loads(up.ok("get", "events", "-o", "json"))["items"]
    assert "LimitsMoved" in {event["reason"] for event in events}
    eventually(
        lambda: [said["type"] for pod in pods(up) for said in pod["status"]["conditions"]],
        lambda types: BURST not in types,
        within=30,
        what="spec and node agree, so nothing is said any more",
        told=up.log,
        every=0.5,
    )


BUSY = "while :; do :; done"


def wants_a_core(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Deployment of one pod that is throttled from its start, and its VPA, which grants a ceiling of 800m."""
    sizes = {"requests": {"cpu": "20m", "memory": "8Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}}
    policy = {"containerName": "app", "controlledResources": ["cpu"], "maxAllowed": {"cpu": "800m"}}
    autoscaler = vpa(name, resourcePolicy={"containerPolicies": [policy | {"controlledValues": "RequestsOnly"}]})
    autoscaler["metadata"]["annotations"] = {"podfit.dev/burst": "enabled"}
    return deployment(name, BUSY, sizes), autoscaler


def quota(up: Up, pod: dict[str, Any]) -> int | None:
    """Microseconds of CPU in a period of 100 ms, as the kernel has it."""
    layout = cgroup_layout(DataDir(up.root))
    identity = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    path = layout.container(pod["metadata"]["uid"], pod["status"]["qosClass"], identity)
    return detect(layout).cgroups.read_container(path).cpu.quota


def told(up: Up) -> tuple[str, str, int | None, bool]:
    """The only pod's CPU limit by spec, by status and by the kernel, and whether nothing is under way."""
    (pod,) = pods(up)
    spec, status = limits(up)
    at_rest = settled(pod) and BURST not in {said["type"] for said in pod["status"]["conditions"]}
    return spec["cpu"], status.get("cpu", ""), quota(up, pod), at_rest


def test_limits_converge_after_sigkill_in_the_midst_of_bursts(
    cluster_dir: Up, figure: Callable[[str, object], None]
) -> None:
    """20 times: a pod that wants a core and has a tenth of one; as soon as it has a ceiling `podfit up`, which is
    kubelet, API server and updater, is killed (SIGKILL) within a second, while limits move, and started again. Spec,
    status and kernel come to the ceiling, nothing is left open, and the container was not restarted.
    """
    up, chance, midst = cluster_dir, Random(31), 0
    up.start()
    for number in range(20):
        name = f"burst-{number}"
        up.apply(*wants_a_core(name))
        pod = eventually(
            lambda: pods(up),
            lambda there: len(there) == 1 and CEILING in there[0]["metadata"].get("annotations", {}),
            within=60,
            what="it has a ceiling",
            told=up.log,
            every=0.02,
        )[0]
        before = pod["status"]["containerStatuses"][0]
        time.sleep(chance.uniform(0, 1))
        pid = up.state()["pid"]
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: Path(f"/proc/{pid}/exe").exists(), lambda there: not there, within=10, what="killed")  # noqa: B023
        midst += quota(up, pod) != 80_000
        up.start()
        eventually(
            lambda: told(up),
            lambda all_: all_ == ("800m", "800m", 80_000, True),
            within=60,
            what="spec, status and kernel are at the ceiling",
            told=up.log,
            every=0.2,
        )
        (pod,) = pods(up)
        after = pod["status"]["containerStatuses"][0]
        assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)
        assert json.loads(pod["metadata"]["annotations"][CEILING])["app"]["ceiling"] == {"cpu": "800m"}
        up.ok("delete", f"deployment/{name}", f"vpa/{name}", "--wait")
        up.ok("wait", "--for=delete", "pod", "-l", f"app={name}", "--timeout=60s", timeout=70)
    figure("kills", 20)
    figure("before the ceiling was reached", midst)


def test_limits_move_on_a_node_that_knows_no_bursts(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """The kubelet's own rule is off (`--no-bursts`), as on nodes of others: `podfit vpa updater --poll-bursts 1s` reads
    its /stats/summary and moves the limit of a busy container to its ceiling, in place.
    """
    up = cluster_dir
    up.start("--no-vpa", "--no-bursts")
    up.ok("apply", "-f", str(DEFINITIONS))
    up.ok("wait", "--for=condition=Established", "crd/verticalpodautoscalers.autoscaling.k8s.io", "--timeout=30s")
    up.apply(*wants_a_core("polled"))
    up.ok("rollout", "status", "deployment/polled", "--timeout=60s", timeout=70)
    (before,) = pods(up)
    with vpa_process(up, "updater", ("--poll-bursts", "1s")):
        began = time.monotonic()
        eventually(
            lambda: told(up),
            lambda all_: all_ == ("800m", "800m", 80_000, True),
            within=120,
            what="the limit is at the ceiling",
            told=lambda: logs(up),
            every=0.2,
        )
        figure("seconds to the ceiling, two raises", round(time.monotonic() - began, 1))
    (after,) = pods(up)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    assert "LimitsMoved" not in up.ok("get", "events", "-o", "json"), "the kubelet moved nothing by itself"
