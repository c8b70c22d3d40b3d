"""`podfit cluster-autoscaler`: what it is told, and what it refuses."""

from pathlib import Path

import pytest

from podfit.cli import exits
from podfit.cli.app import run
from podfit.core.options import declared
from podfit.process.autoscaler.options import AutoscalerOptions

UPSTREAM = {
    "scan-interval": "10s",
    "max-nodes-total": "0",
    "cores-total": "0:320000",
    "memory-total": "0:6400000",
    "expander": "least-waste",
    "max-nodes-per-scaleup": "1000",
    "new-pod-scale-up-delay": "0s",
    "max-node-provision-time": "15m",
    "max-node-startup-time": "15m",
    "initial-node-group-backoff-duration": "5m",
    "max-node-group-backoff-duration": "30m",
    "node-group-backoff-reset-timeout": "3h",
    "scale-down-delay-after-add": "10m",
    "scale-down-delay-after-delete": "0s",
    "scale-down-delay-after-failure": "3m",
    "scale-down-unneeded-time": "10m",
    "scale-down-unready-time": "20m",
    "scale-down-utilization-threshold": "0.5",
    "min-replica-count": "0",
    "blocking-system-pod-distruption-timeout": "1h",
    "max-graceful-termination-sec": "600",
    "max-pod-eviction-time": "2m",
    "max-scale-down-parallelism": "10",
    "max-drain-parallelism": "1",
    "node-delete-delay-after-taint": "5s",
    "unremovable-node-recheck-timeout": "5m",
    "expendable-pods-priority-cutoff": "-10",
    "max-total-unready-percentage": "45",
    "ok-total-unready-count": "3",
    "status-config-map-name": "cluster-autoscaler-status",
    "max-bulk-soft-taint-count": "10",
}
SWITCHES = {
    "balance-similar-node-groups": False,
    "scale-up-from-zero": True,
    "scale-down-enabled": True,
    "scale-down-unready-enabled": True,
    "ignore-daemonsets-utilization": False,
    "ignore-mirror-pods-utilization": False,
    "skip-nodes-with-system-pods": True,
    "skip-nodes-with-local-storage": True,
    "skip-nodes-with-custom-controller-pods": True,
    "enforce-node-group-min-size": False,
    "write-status-configmap": True,
    "cordon-node-before-terminating": True,
    "daemonset-eviction-for-empty-nodes": False,
    "daemonset-eviction-for-occupied-nodes": True,
}


def test_flags_and_defaults_are_upstreams() -> None:
    """C-085."""
    options = {option.flag: option for option in declared(AutoscalerOptions)}
    assert {name: options[name].unit.text(options[name].default) for name in UPSTREAM} == UPSTREAM
    assert {name: options[name].default for name in SWITCHES} == SWITCHES


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "--node-groups"),
        (("--cloud-provider", "externalgrpc"), "--cloud-config"),
        (("--node-groups", "none.yaml"), "none.yaml"),
        (("--expander", "random,least-waste"), "--expander"),
        (("--cores-total", "5:1"), "--cores-total"),
        (("--scale-down-utilization-threshold", "2"), "--scale-down-utilization-threshold"),
        (("--max-drain-parallelism", "0"), "--max-drain-parallelism"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: tuple[str, ...],
    text: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["cluster-autoscaler", *words]) == exits.USAGE
    assert text in capsys.readouterr().err
