"""History from a real Prometheus that scrapes a real kubelet, against living samples of the same containers."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from support.eventually import eventually
from support.kubelet import KubeletProcess
from support.prometheus import JOB, ask, prometheus
from support.up import PODFIT, Up, run
from support.vpa_processes import DEFINITIONS, RECOMMENDER, deployment, logs, vpa, vpa_process

pytestmark = [
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.prometheus,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(120),
]
BUSY = r"v=$(head -c 30000000 /dev/zero | tr '\0' a); trap 'exit 0' TERM; while :; do :; done"
HISTORY = (
    *("--storage=prometheus", "--history-length=10m", "--history-resolution=15s"),
    *("--container-pod-name-label=pod", "--container-name-label=container"),
)
OTHER = ("--recommender-name=history", "--no-leader-elect")
MARGIN, GROWTH = 1.15, 0.05
FIRST = {"cpu": 0.01, "memory": 1e7}
"""A bucket of the histograms is so wide, in cores and bytes, and 5 % of where it begins."""


@pytest.fixture
def up(cluster_dir: Up, tmp_path: Path) -> Iterator[Up]:
    """A cluster with one real node, which is a process of its own and listens at its address."""
    cluster_dir.start("--no-vpa", node="none")
    kubelet = KubeletProcess(tmp_path / "node", cluster_dir.kubeconfig, "n1", ("--port", "0", "--eviction-hard", ""))
    try:
        kubelet.start()
        yield cluster_dir
    finally:
        kubelet.end()
        down = run(PODFIT, "down", "--data", str(kubelet.data), timeout=90)
    assert down.code == 0, down.err


def amount(text: str) -> float:
    """Cores or bytes."""
    return Quantity.parse(text).milli() / 1000


def target(up: Up, name: str, seconds: float) -> dict[str, float]:
    """The first recommendation of a VPA that has CPU and memory."""

    def look() -> list[dict[str, Any]]:
        recommended = up.get("vpa", name).get("status", {}).get("recommendation", {})
        return [container["target"] for container in recommended.get("containerRecommendations", [])]

    def complete(targets: list[dict[str, Any]]) -> bool:
        return bool(targets) and len(targets[0]) == 2

    (first, *_) = eventually(look, complete, within=seconds, what="CPU and memory", told=lambda: logs(up), every=0.2)
    return {name: amount(text) for name, text in first.items()}


def steady(url: str) -> None:
    """Wait until two points of the history lie behind the container's start, whose rate is less."""
    rate = f'rate(container_cpu_usage_seconds_total{{job="{JOB}",container="app"}}[15s])'
    steady = f"min_over_time({rate}[30s:15s]) > 0.09 and count_over_time({rate}[30s:15s]) >= 2"
    eventually(partial(ask, url, steady), within=60, what=steady, told=lambda: str(ask(url, rate)), every=0.2)


def test_vpa_recommends_from_history_what_it_recommends_from_living_samples(up: Up, tmp_path: Path) -> None:
    """Within one bucket of the histogram, for each resource."""
    up.ok("apply", "-f", str(DEFINITIONS))
    up.ok("wait", "--for=condition=Established", "crd/verticalpodautoscalers.autoscaling.k8s.io", "--timeout=30s")
    resources = {"requests": {"cpu": "100m", "memory": "10Mi"}, "limits": {"cpu": "100m", "memory": "256Mi"}}
    with prometheus(up, tmp_path / "prometheus") as url:
        up.apply(deployment("busy", BUSY, resources), vpa("busy"))
        other = vpa("busy", recommenders=[{"name": "history"}])
        up.apply({**other, "metadata": {"name": "past"}})
        steady(url)
        with vpa_process(up, "recommender", RECOMMENDER):
            living = target(up, "busy", 45)
        past = (*HISTORY, "--prometheus-address", url)
        scraped = ask(url, f'container_cpu_usage_seconds_total{{job="{JOB}",container="app"}}')
        assert len(scraped) == 1, ask(url, "up")
        with vpa_process(up, "recommender", (*RECOMMENDER, *OTHER, *past)):
            told = target(up, "past", 20)
            assert "history read samples=" in logs(up)
        up.ok("delete", "vpa", "busy", "past")
        asked = run(PODFIT, "recommend", "deployment/busy", "-o", "json", "--kubeconfig", str(up.kubeconfig), *past)
        assert asked.code == 0, asked.err
        sizes = {size["resource"]: size for size in json.loads(asked.out)["workloads"][0]["sizes"]}
    for name, width in FIRST.items():
        bucket = MARGIN * (width + GROWTH * living[name])
        assert abs(told[name] - living[name]) <= bucket, name
        assert abs(amount(sizes[name]["recommended"]) - living[name]) <= bucket, name
        assert sizes[name]["source"] == "Prometheus"
    assert 0.1 < told["cpu"] < 0.2, "its limit is 100m"
    assert 30e6 < told["memory"] < 70e6
