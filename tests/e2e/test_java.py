"""A Java service of the distribution that gets more CPU while it starts: examples/services/java.yaml."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from support.eventually import eventually
from support.services import example, free_port, load
from support.up import Up, running, settled

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.images,
    pytest.mark.campaign,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(300),
]
QUOTA = "cut -d' ' -f1 /sys/fs/cgroup/cpu.max 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us"


def pods(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(up.ok("get", "pods", "-l", "app=java", "-o", "json"))["items"]
    return found


def quota(up: Up, name: str) -> int:
    """Microseconds of CPU in each tenth of a second, by the kernel."""
    return int(up.ok("exec", name, "--", "sh", "-c", QUOTA))


def heeded(up: Up) -> None:
    """Return when pods are shown to the VPA, whose parts `podfit up` begins with the first VPA."""
    eventually(
        lambda: up.ok("get", "mutatingwebhookconfigurations", "-o", "json"),
        lambda webhooks: '"pods"' in webhooks,
        within=30,
        what="a webhook is shown pods",
        told=up.log,
    )
    up.ok("wait", "--for=create", "lease/vpa-admission-controller", "-n", "kube-system", "--timeout=30s")


def started(up: Up, what: str) -> tuple[str, float]:
    """The pod's name, and seconds until it was ready."""
    began = time.monotonic()
    first = eventually(lambda: next(iter(pods(up)), None), running, within=150, what=f"ready {what}", told=up.log)
    return first["metadata"]["name"], time.monotonic() - began


def test_a_java_service_starts_with_ten_times_its_cpu(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """A Java service whose VPA boosts its start: ten times the CPU until it is ready, then its own again, in place."""
    up = cluster_dir
    up.start()
    load(up, "java")
    vpa, deployment = example("java", 1099, free_port())
    up.apply(vpa)
    heeded(up)
    up.apply(deployment)
    name, seconds = started(up, "with a boost")
    assert quota(up, name) == 100_000
    pod = up.pod_when(name, lambda pod: settled(pod) and cpu(pod) == "100m", "went back to 100m", seconds=120)
    assert quota(up, name) == 10_000
    (status,) = pod["status"]["containerStatuses"]
    assert (status["restartCount"], status["ready"]) == (0, True)
    up.ok("delete", "vpa", "java")
    up.ok("delete", "pod", name)
    _, slowly = started(up, "without a boost")
    assert seconds < slowly
    figure("ready with the boost after", f"{seconds:.1f} s")
    figure("without after", f"{slowly:.1f} s")


def cpu(pod: dict[str, Any]) -> str:
    limit: str = pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"]
    return limit
