"""The operator against a cluster that lives in the test: real API and kubelet, and time that only the test moves."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import kr8s
import pytest
from kr8s.objects import Pod
from startup_boost import BEFORE, DONE, next_step, reconcile, resized, times

from podfit.testing.cluster import Clock, Cluster

WARM = "example.com/warm"


def web(factor: str = "3", cpu: str = "500m") -> dict:
    """Ready when its application says that it is warm."""
    amounts = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "app", "image": "web:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "annotations": {"boost.example.com/factor": factor}},
        "spec": {"readinessGates": [{"conditionType": WARM}], "containers": [container]},
    }


@pytest.fixture
def api(cluster: Cluster) -> kr8s.Api:
    return kr8s.api(kubeconfig=str(cluster.kubeconfig))


def operate(cluster: Cluster, api: kr8s.Api) -> Pod:
    """What the operator does on an event, and what the cluster then makes of it."""
    pod = Pod.get("web", namespace="default", api=api)
    reconcile(pod)
    cluster.settle()
    return pod


def becomes_warm(cluster: Cluster, api: kr8s.Api) -> None:
    patch = {"status": {"conditions": [{"type": WARM, "status": "True"}]}}
    Pod.get("web", namespace="default", api=api).patch(patch, subresource="status")
    cluster.settle()
    assert cluster.pod("web").conditions["Ready"] == "True"


def test_more_cpu_until_ready_and_no_restart(cluster: Cluster, api: kr8s.Api) -> None:
    cluster.apply(web())
    operate(cluster, api)
    pod = cluster.pod("web")
    assert (pod.phase, pod.conditions["Ready"]) == ("Running", "ReadinessGatesNotReady")
    assert (pod.actual.cpu, pod.actual.cpu_limit, pod.actual.memory) == (1.5, 1.5, 64 << 20)
    becomes_warm(cluster, api)
    operate(cluster, api)
    pod = cluster.pod("web")
    assert (pod.actual.cpu, pod.actual.cpu_limit, pod.restarts) == (0.5, 0.5, 0)
    assert pod.document["metadata"]["annotations"][DONE] == "taken back"


def test_a_full_node_defers_the_boost_and_the_pod_leaves_the_queue(
    cluster: Cluster, clock: Clock, api: kr8s.Api
) -> None:
    big = {"name": "app", "image": "big:1", "resources": {"requests": {"cpu": "2"}}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": {"containers": [big]}})
    cluster.apply(web(cpu="1"))
    operate(cluster, api)
    clock.advance(minutes=10)
    pod = cluster.pod("web")
    assert (pod.resizing, pod.desired.cpu, pod.allocated.cpu) == ("Deferred", 3, 1)
    becomes_warm(cluster, api)
    operate(cluster, api)
    assert (cluster.pod("web").resizing, cluster.pod("web").allocated.cpu) == ("", 1)


def test_what_the_api_refuses_is_left_as_it_is(
    cluster: Cluster, api: kr8s.Api, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.apply(web(factor="1000"))
    operate(cluster, api)
    assert cluster.pod("web").desired.cpu == 0.5
    assert "default/web: " in caplog.text


def test_it_goes_on_wherever_it_was_killed(cluster: Cluster, api: kr8s.Api) -> None:
    cluster.apply(web())
    taken = []
    for _ in range(8):
        if any(each == "boosted" for each in taken) and "Ready" not in taken:
            becomes_warm(cluster, api)
            taken.append("Ready")
        pod = Pod.get("web", namespace="default", api=api)  # a new operator: it knows nothing but the pod
        if step := next_step(pod.raw):
            pod.patch(step.patch, subresource=step.subresource)
            taken.append(step.what)
        cluster.settle()
    assert taken == ["remembered", "boosted", "Ready", "taken back", "done"]
    assert cluster.pod("web").actual.cpu == 0.5


def test_a_pod_that_was_ready_before_is_never_boosted(cluster: Cluster, api: kr8s.Api) -> None:
    cluster.apply(web())
    becomes_warm(cluster, api)
    pod = operate(cluster, api)
    assert pod.annotations[DONE] == "was Ready already"
    assert BEFORE not in pod.annotations
    assert cluster.pod("web").desired.cpu == 0.5


@pytest.mark.parametrize(
    ("cpu", "factor", "more"), [("500m", 3, "1500m"), ("500m", 2, "1"), ("2", 1.5, "3"), ("1", 1.25, "1250m")]
)
def test_amounts_are_written_as_the_api_writes_them(cpu: str, factor: float, more: str) -> None:
    assert times(cpu, factor) == more


def test_amounts_that_are_not_cpu_stay() -> None:
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}
    changed = resized(container, {"requests": {"cpu": "2"}})
    assert changed == {"name": "app", "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}}


@pytest.fixture
def told(cluster: Cluster) -> Iterator[IO[str]]:
    """The operator as a process of its own; its log."""
    script = str(Path(__file__).with_name("startup_boost.py"))
    command = [sys.executable, script, "--kubeconfig", str(cluster.kubeconfig)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        end = threading.Timer(60, process.kill)  # a test that waits for a line in vain then sees the end of the log
        end.start()
        yield process.stderr
        end.cancel()
        process.terminate()


def test_the_process_follows_the_cluster(cluster: Cluster, api: kr8s.Api, told: IO[str]) -> None:
    until(told, "watching pods")
    cluster.apply(web())
    until(told, "default/web boosted")
    becomes_warm(cluster, api)
    until(told, "default/web done")
    cluster.settle()
    assert (cluster.pod("web").actual.cpu, cluster.pod("web").restarts) == (0.5, 0)


def until(log: IO[str], line: str) -> None:
    seen = []
    for each in log:
        seen.append(each)
        if each.strip() == line:
            return
    raise AssertionError(f"the operator ended without saying {line!r}: {''.join(seen)}")
