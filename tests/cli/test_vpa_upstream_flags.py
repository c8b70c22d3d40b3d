"""Flags of upstream's three processes, with upstream's defaults (13.1); where podfit's differ, it says so.

Not there: `address` (--bind-address, --secure-port), `profiling`, `min-checkpoints` (ignored upstream), klog's.
"""

from dataclasses import fields
from typing import Any

import pytest

from podfit.cli.vpa_admission import VpaAdmissionFlags
from podfit.cli.vpa_common import ElectionFlags, VpaProcessFlags
from podfit.cli.vpa_history import VpaHistoryFlags
from podfit.cli.vpa_recommender import VpaRecommenderFlags
from podfit.cli.vpa_updater import VpaUpdaterFlags

PROCESS: dict[str, object] = {
    "kube-api-qps": 50,
    "kube-api-burst": 100,
    "vpa-object-namespace": "",
    "ignored-vpa-object-namespaces": "",
    "feature-gates": "",
}
ELECTION: dict[str, object] = {
    "leader-elect-lease-duration": "15s",
    "leader-elect-renew-deadline": "10s",
    "leader-elect-retry-period": "2s",
    "leader-elect-resource-namespace": "kube-system",
}
RECOMMENDER: dict[str, object] = {
    "recommender-name": "default",
    "recommender-interval": "1m",
    "checkpoints-gc-interval": "10m",
    "checkpoints-timeout": "1m",
    "memory-saver": False,
    "update-worker-count": 10,
    "recommendation-margin-fraction": 0.15,
    "pod-recommendation-min-cpu-millicores": 25,
    "pod-recommendation-min-memory-mb": 250,
    "target-cpu-percentile": 0.9,
    "recommendation-lower-bound-cpu-percentile": 0.5,
    "recommendation-upper-bound-cpu-percentile": 0.95,
    "confidence-interval-cpu": "24h",
    "target-memory-percentile": 0.9,
    "recommendation-lower-bound-memory-percentile": 0.5,
    "recommendation-upper-bound-memory-percentile": 0.95,
    "confidence-interval-memory": "24h",
    "humanize-memory": False,
    "round-cpu-millicores": 1,
    "round-memory-bytes": 1,
    "memory-aggregation-interval": "24h",
    "memory-aggregation-interval-count": 8,
    "memory-histogram-decay-half-life": "24h",
    "cpu-histogram-decay-half-life": "24h",
    "oom-bump-up-ratio": 1.2,
    "oom-min-bump-up-bytes": 104857600,
    "cpu-integer-post-processor-enabled": False,
    "container-recommendation-max-allowed-cpu": "",
    "container-recommendation-max-allowed-memory": "",
    "use-external-metrics": False,
    "external-metrics-cpu-metric": "",
    "external-metrics-memory-metric": "",
}
HISTORY: dict[str, object] = {
    "prometheus-address": "http://prometheus.monitoring.svc",
    "prometheus-insecure": False,
    "prometheus-cadvisor-job-name": "kubernetes-cadvisor",
    "history-length": "8d",
    "history-resolution": "1h",
    "history-cpu-metric": "container_cpu_usage_seconds_total",
    "history-memory-metric": "container_memory_working_set_bytes",
    "prometheus-query-timeout": "5m",
    "pod-label-prefix": "pod_label_",
    "metric-for-pod-labels": 'up{job="kubernetes-pods"}',
    "pod-namespace-label": "kubernetes_namespace",
    "pod-name-label": "kubernetes_pod_name",
    "container-namespace-label": "namespace",
    "container-pod-name-label": "pod_name",
    "container-name-label": "name",
    "username": "",
    "password": "",
    "prometheus-bearer-token": "",
    "prometheus-bearer-token-file": None,
    "storage": "checkpoint",
}
UPDATER: dict[str, object] = {
    "updater-interval": "1m",
    "min-replicas": 2,
    "eviction-tolerance": 0.5,
    "eviction-rate-limit": -1,
    "eviction-rate-burst": 1,
    "use-admission-controller-status": True,
    "in-place-skip-disruption-budget": False,
    "admission-controller-status-lease-name": "vpa-admission-controller",
    "admission-controller-status-lease-namespace": "",
    "admission-controller-status-lease-timeout": "1m",
    "pod-update-threshold": 0.1,
    "in-recommendation-bounds-eviction-lifetime-threshold": "12h",
    "evict-after-oom-threshold": "10m",
}
ADMISSION: dict[str, object] = {
    "reload-cert": False,
    "tls-ciphers": "",
    "min-tls-version": "tls1_2",
    "port": 8000,
    "webhook-service": "vpa-webhook",
    "webhook-address": "",
    "webhook-port": "",
    "webhook-timeout-seconds": 30,
    "webhook-failure-policy-fail": False,
    "register-webhook": True,
    "webhook-labels": "",
    "register-by-url": False,
    "status-lease-name": "vpa-admission-controller",
    "status-lease-namespace": "",
    "status-lease-update-interval": "10s",
    "max-allowed-cpu-boost": "",
}
OURS: dict[type, dict[str, object]] = {
    VpaProcessFlags: {"kubeconfig": None, "bind-address": "127.0.0.1"},
    ElectionFlags: {"leader-elect": True, "leader-elect-resource-name": ""},
    VpaRecommenderFlags: {"upstream-compatible": False, "fine-buckets": False},
    VpaUpdaterFlags: {"upstream-compatible": False},
    VpaAdmissionFlags: {
        "client-ca-file": None,
        "tls-cert-file": None,
        "tls-private-key": None,
        "webhook-bind-address": "0.0.0.0",
    },
}
"""Flags that upstream has not, or whose defaults are others: a certificate is made where none is given."""


@pytest.mark.row("V-120")
@pytest.mark.parametrize(
    ("flags", "upstream"),
    [
        (VpaProcessFlags, PROCESS),
        (ElectionFlags, ELECTION),
        (VpaRecommenderFlags, RECOMMENDER),
        (VpaHistoryFlags, HISTORY),
        (VpaUpdaterFlags, UPDATER),
        (VpaAdmissionFlags, ADMISSION),
    ],
)
def test_vpa_flags_are_upstreams(flags: Any, upstream: dict[str, object]) -> None:
    found = {field.name.replace("_", "-"): field.default for field in fields(flags)}
    assert found == upstream | OURS.get(flags, {})
