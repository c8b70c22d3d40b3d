"""Five of upstream's HPA specs on a node with containerd: what containers use is real, and shared by the pods that are
ready, as by upstream's ResourceConsumer. `tests/controllers/test_hpa_upstream_specs.py` goes the steps of the others.

CPU is a loop that is held by the quota of the container's cgroup, which the test writes; memory is a file in memory.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.demand import average, hpa, utilization, workload
from support.eventually import eventually
from support.up import IMAGE, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
FLAGS = (
    "--no-vpa",
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=10s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
)
BURN = "trap 'exit 0' TERM; while [ ! -e /load/$HOSTNAME ]; do sleep 1; done; while :; do :; done"
"""From the moment on at which it is held."""
FILL = (
    'trap \'exit 0\' TERM; had=; while :; do read -r want < /load/mib; if [ "$want" != "$had" ]; then had=$want; '
    'dd if=/dev/zero of=/mem/file bs=1M count="$want" 2>/dev/null; fi; sleep 1; done'
)
PERIOD = 1_000_000
"""Microseconds; the kernel takes no quota below 1,000."""
WITHIN = 180.0
"""Seconds; usage is measured every 15."""
Document = dict[str, Any]
TITLE_UP = "Should scale from 1 pod to 3 pods and then from 3 pods to 5 pods"
SPECS: dict[str, tuple[str, int, Document, int, int, int, int]] = {
    f"CPU Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": (
        "Deployment",
        1,
        utilization(20),
        50,
        3,
        140,
        5,
    ),
    f"CPU Deployment (Container Resource) {TITLE_UP} using Average Value for aggregation": (
        "Deployment",
        1,
        average("20m", container="app"),
        50,
        3,
        140,
        5,
    ),
    f"CPU ReplicaSet {TITLE_UP}": ("ReplicaSet", 1, utilization(20), 50, 3, 140, 5),
    "CPU ReplicaSet Should scale from 5 pods to 3 pods and then from 3 pods to 1 pod": (
        "ReplicaSet",
        5,
        utilization(30),
        65,
        3,
        2,
        1,
    ),
    f"Memory Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": (
        "Deployment",
        1,
        utilization(20, "memory"),
        50,
        3,
        140,
        5,
    ),
}
"""Kind, pods at first, metric; millicores or MiB of all pods, and the pods that follow, twice. A pod requests 100."""


class Consumer:
    """Pods of a workload `web` that use so much in all."""

    def __init__(self, up: Up, load: Path, *, memory: bool) -> None:
        self._up, self._file, self._memory = up, load / "mib", memory
        load.mkdir()
        self._file.write_text("1\n")
        volumes = [{"name": "mem", "emptyDir": {"medium": "Memory"}}, {"name": "load", "hostPath": {"path": str(load)}}]
        mounts = [{"name": "mem", "mountPath": "/mem"}, {"name": "load", "mountPath": "/load"}]
        self.container: Document = {
            "name": "app",
            "image": IMAGE,
            "command": ["sh", "-c", FILL if memory else BURN],
            "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
            "volumeMounts": mounts,
        }
        self.pod: Document = {"volumes": volumes}

    def running(self) -> dict[str, str]:
        """Ids of the containers of ready pods, by the pods' names."""
        pods = json.loads(self._up.ok("get", "pods", "-l", "app=web", "-o", "json"))["items"]
        return {
            pod["metadata"]["name"]: status["containerID"].rpartition("/")[2]
            for pod in pods
            for status in pod["status"].get("containerStatuses", [])
            if status["ready"]
        }

    def use(self, amount: int) -> int:
        """Shares the amount anew; how many pods there are."""
        running = self.running()
        if self._memory:
            self._file.write_text(f"{amount // max(len(running), 1)}\n")
        for name, container in running.items() if not self._memory else ():
            _hold(container, amount * PERIOD // 1000 // len(running))
            (self._file.with_name(name)).touch()
        return len(running)


def _hold(container: str, quota: int) -> None:
    """What a period of its CPU is, in microseconds; one that has ended is gone."""
    for place in Path("/sys/fs/cgroup").glob(f"**/{container}"):
        with suppress(FileNotFoundError):
            if (place / "cpu.max").exists():
                (place / "cpu.max").write_text(f"{quota} {PERIOD}")
            elif (place / "cpu.cfs_quota_us").exists():
                (place / "cpu.cfs_period_us").write_text(f"{PERIOD}")
                (place / "cpu.cfs_quota_us").write_text(f"{quota}")


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "first", "metric", "begin", "then", "burst", "last"), SPECS.values(), ids=SPECS)
def test_upstreams_hpa_specs_with_real_usage(
    cluster_dir: Up,
    tmp_path: Path,
    figure: Callable[[str, object], None],
    kind: str,
    first: int,
    metric: Document,
    begin: int,
    then: int,
    burst: int,
    last: int,
) -> None:
    """Five of upstream's HPA specs on a node with containerd, with usage that the kernel counts (sync every 2 s, a
    window of 10 s): usage of all pods, as many replicas as it needs, then another usage."""
    cluster_dir.start(*FLAGS)
    consumer = Consumer(cluster_dir, tmp_path / "load", memory="memory" in json.dumps(metric))
    web = workload(kind, "web", first, consumer.container, **consumer.pod)
    cluster_dir.apply(web)
    eventually(lambda: consumer.use(begin), first.__eq__, within=60, what=f"{first} run")
    cluster_dir.apply(hpa(metric, kind=kind))
    for amount, wanted in ((begin, then), (burst, last)):
        told = partial(cluster_dir.ok, "describe", "hpa", "web")
        eventually(
            partial(consumer.use, amount), wanted.__eq__, within=WITHIN, what=f"{wanted} run", told=told, every=1
        )
    events = json.loads(cluster_dir.ok("get", "events", "-o", "json"))["items"]
    figure("rescales", sum(event["reason"] == "SuccessfulRescale" for event in events))
