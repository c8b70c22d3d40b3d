"""`podfit top` and a kubelet's configuration on a real node: figures from the kernel, not from anywhere else."""

import json
from functools import partial
from typing import Any

import pytest

from support.eventually import eventually
from support.up import PODFIT, Up, manifest, resources, run

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
BUSY = ["sh", "-c", "trap 'exit 0' TERM; while :; do :; done"]
SECONDS = 20


def top(cluster: Up) -> dict[str, Any]:
    answer = run(PODFIT, "top", "pod/busy", "-o", "json", "--kubeconfig", str(cluster.kubeconfig))
    assert answer.code == 0, answer.err
    rows: list[dict[str, Any]] = json.loads(answer.out)["rows"]
    return rows[0] if rows else {}


def at_its_limit(row: dict[str, Any]) -> bool:
    return bool(row) and (row["throttled"] or 0) > 0.3 and 0.5 < row["cpu"].get("ofLimit", 0) < 1.5


def test_a_busy_container_is_seen_at_its_limit(cluster: Up) -> None:
    cluster.apply(manifest("busy", {"name": "app", "command": BUSY, "resources": resources("100m", "32Mi")}))
    try:
        cluster.ok("wait", "--for=condition=Ready", "pod/busy", "--timeout=30s")
        row = eventually(partial(top, cluster), at_its_limit, within=SECONDS, what="a whole CPU wanted, a tenth had")
        assert 0 < row["memory"]["ofLimit"] < 1
        assert (row["cpu"]["limit"], row["cpu"]["desired"], row["cpu"]["allocated"]) == ("100m", "100m", "100m")
    finally:
        cluster.ok("delete", "pod", "busy", "--now", "--ignore-not-found")


def test_the_nodes_configuration_is_there_for_a_plan(cluster: Up) -> None:
    node = cluster.ok("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    config = json.loads(cluster.ok("get", "--raw", f"/api/v1/nodes/{node}/proxy/configz"))["kubeletconfig"]
    assert (config["cpuManagerPolicy"], config["memoryManagerPolicy"]) == ("none", "None")
    lines = cluster.ok("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource").splitlines()
    values = {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("node_")}
    assert values["node_cpu_usage_seconds_total"] > 0
    assert values["node_memory_working_set_bytes"] > 1 << 20
    assert "resource_scrape_error 0" in lines
