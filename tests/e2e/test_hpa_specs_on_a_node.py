"""Five of upstream's HPA specs on a node with containerd: what containers use is real, and shared by the pods that are
ready, as by upstream's ResourceConsumer. `tests/controllers/test_hpa_upstream_specs.py` goes the steps of all 34.

CPU is a loop that is held by the quota of the container's cgroup, which the test writes; memory is a file in memory.
Usage is measured every 15 s, so these HPAs keep upstream's rules for new pods (a pod counts with what was measured
after it was ready), and their windows are longer than two measurements: else the usage that a pod had before others
came, or shared it before others went, would count beside theirs.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.demand import average, hpa, utilization, workload
from support.eventually import eventually
from support.up import IMAGE, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
WINDOW = 50
"""Seconds of a window, which has three measurements in it."""
FLAGS = (
    "--no-vpa",
    "--horizontal-pod-autoscaler-sync-period=2s",
    f"--horizontal-pod-autoscaler-downscale-stabilization={WINDOW}s",
)
BURN = "trap 'exit 0' TERM; while [ ! -e /load/$HOSTNAME ]; do sleep 1; done; while :; do :; done"
"""From the moment on at which it is held."""
FILL = (
    "trap 'exit 0' TERM; had=; while :; do want=; [ ! -e /load/$HOSTNAME ] || read -r want < /load/$HOSTNAME; "
    'if [ "$want" != "$had" ]; then had=$want; dd if=/dev/zero of=/mem/file bs=1M count="$want" 2>/dev/null; fi; '
    "sleep 1; done"
)
PERIOD, LEAST = 1_000_000, 1_000
"""Microseconds; the kernel takes no quota below the second."""
SHRINKS = 3.0
"""Seconds until a file in memory has its new size."""
WITHIN = 200.0
Document = dict[str, Any]
TITLE_UP = "Should scale from 1 pod to 3 pods and then from 3 pods to 5 pods"
TITLE_DOWN = "Should scale from 5 pods to 3 pods and then from 3 pods to 1 pod"


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """`first` pods that request 100 millicores and MiB each; usage of all of `begin`, until there are `then`; usage of
    `burst`, until there are `last`."""

    kind: str = "Deployment"
    metric: Document
    first: int = 1
    begin: int = 50
    then: int = 3
    burst: int = 140
    last: int = 5


SPECS = {
    f"CPU Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": Steps(
        metric=utilization(20)
    ),
    f"CPU Deployment (Container Resource) {TITLE_UP} using Average Value for aggregation": Steps(
        metric=average("20m", container="app")
    ),
    f"CPU ReplicaSet {TITLE_DOWN}": Steps(
        kind="ReplicaSet", metric=utilization(30), first=5, begin=75, burst=3, last=1
    ),
    f"Memory Deployment (Pod Resource) {TITLE_UP} using Average Utilization for aggregation": Steps(
        metric=utilization(20, "memory")
    ),
}


class Consumer:
    """Pods of a workload `web` that use so much in all."""

    def __init__(self, up: Up, load: Path, *, memory: bool = False) -> None:
        self._up, self._load, self._memory = up, load, memory
        self._shares: dict[str, int] = {}
        self._shrank = 0.0
        self._places: dict[str, tuple[Path, ...]] = {}
        load.mkdir()
        mounts = [{"name": "mem", "mountPath": "/mem"}, {"name": "load", "mountPath": "/load"}]
        self.container: Document = {
            "name": "app",
            "image": IMAGE,
            "command": ["sh", "-c", FILL if memory else BURN],
            "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
            "volumeMounts": mounts,
        }
        volumes = [{"name": "mem", "emptyDir": {"medium": "Memory"}}, {"name": "load", "hostPath": {"path": str(load)}}]
        self.pod: Document = {"volumes": volumes}

    def running(self) -> dict[str, str]:
        """Ids of the containers `app` of ready pods, by the pods' names."""
        pods = json.loads(self._up.ok("get", "pods", "-l", "app=web", "-o", "json"))["items"]
        return {
            pod["metadata"]["name"]: status["containerID"].rpartition("/")[2]
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            for status in pod["status"].get("containerStatuses", [])
            if status["ready"] and status["name"] == "app"
        }

    def use(self, amount: int) -> int:
        """Shares the amount anew, so that all never use more of it; how many pods there are."""
        running = self.running()
        share = amount // max(len(running), 1)
        fewer = [name for name in running if self._shares.get(name, 0) > share]
        for name in fewer:
            self._give(name, running[name], share)
        self._shrank = time.monotonic() if fewer else self._shrank
        if time.monotonic() - self._shrank >= SHRINKS or not self._memory:
            for name, container in running.items():
                if self._shares.get(name, -1) < share:
                    self._give(name, container, share)
        return len(running)

    def _give(self, name: str, container: str, share: int) -> None:
        self._shares[name] = share
        if not self._memory:
            self._hold(container, max(share * PERIOD // 1000, LEAST))
        (self._load / f".{name}").write_text(f"{share}\n")
        (self._load / f".{name}").rename(self._load / name)

    def _hold(self, container: str, quota: int) -> None:
        """What a period of its CPU is, in microseconds; one that has ended is gone."""
        if container not in self._places:
            self._places[container] = tuple(Path("/sys/fs/cgroup").glob(f"**/{container}"))
        for place in self._places[container]:
            with suppress(FileNotFoundError):
                if (place / "cpu.max").exists():
                    (place / "cpu.max").write_text(f"{quota} {PERIOD}")
                elif (place / "cpu.cfs_quota_us").exists():
                    (place / "cpu.cfs_period_us").write_text(f"{PERIOD}")
                    (place / "cpu.cfs_quota_us").write_text(f"{quota}")

    def comes_to(self, replicas: int, amount: int) -> None:
        """While all use so much."""
        told = partial(self._up.ok, "describe", "hpa,pods")
        what = f"{replicas} pods are ready"
        eventually(partial(self.use, amount), replicas.__eq__, within=WITHIN, what=what, told=told, every=1)


@pytest.fixture
def up(cluster_dir: Up) -> Up:
    cluster_dir.start(*FLAGS)
    return cluster_dir


@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("steps", SPECS.values(), ids=SPECS)
def test_upstreams_hpa_specs_with_real_usage(
    up: Up, tmp_path: Path, figure: Callable[[str, object], None], steps: Steps
) -> None:
    """One of upstream's HPA specs on a node with containerd, with usage that the kernel counts (sync every 2 s, a
    window of 50 s): usage of all pods, as many replicas as it needs, then another usage."""
    consumer = Consumer(up, tmp_path / "load", memory="memory" in json.dumps(steps.metric))
    up.apply(workload(steps.kind, "web", steps.first, consumer.container, **consumer.pod))
    consumer.comes_to(steps.first, steps.begin)
    up.apply(hpa(steps.metric, kind=steps.kind))
    for amount, wanted in ((steps.begin, steps.then), (steps.burst, steps.last)):
        began = time.monotonic()
        consumer.comes_to(wanted, amount)
        figure(f"seconds until {wanted} pods are ready", round(time.monotonic() - began))


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_upstreams_hpa_spec_of_a_busy_sidecar_with_real_usage(
    up: Up, tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """`ReplicaSet with idle sidecar (ContainerResource use case) Should not scale up on a busy sidecar with an idle
    application`, on a node with containerd: for 60 s after the first measurement the sidecar uses five times what the
    application may."""
    consumer = Consumer(up, tmp_path / "load")
    idle = {**consumer.container, "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]}
    busy = {
        **consumer.container,
        "name": "sidecar",
        "command": ["sh", "-c", "while :; do :; done"],
        "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}},
    }
    up.apply(workload("ReplicaSet", "web", 1, idle, busy, **consumer.pod))
    up.apply(hpa(utilization(20, container="app"), kind="ReplicaSet"))

    def measured() -> int | None:
        """Millicores of the sidecar, once the HPA knows those of the application."""
        told = json.loads(up.ok("get", "hpa", "web", "-o", "json"))["status"].get("currentMetrics") or [None]
        if told[0] is None:
            return None
        usage = json.loads(up.ok("get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"))["items"]
        nano = [one["usage"]["cpu"] for pod in usage for one in pod["containers"] if one["name"] == "sidecar"]
        return int(nano[0].removesuffix("n")) // 10**6 if nano else None

    used = eventually(measured, lambda milli: milli > 80, within=WITHIN, what="the sidecar is busy", every=1)
    end = time.monotonic() + 60

    def alone() -> float:
        assert len(consumer.running()) == 1
        return time.monotonic()

    eventually(alone, lambda now: now >= end, within=120, what="60 s have passed", every=1)
    figure("millicores of the sidecar", used)
