"""Flags of upstream's three processes, with upstream's defaults (13.1); where podfit's differ, it says so.

Not there: `address` (--bind-address, --secure-port), `profiling`, `min-checkpoints` (ignored upstream), klog's.
"""

import msgspec
import pytest

from podfit.core.options import Declared, declared
from podfit.decide.autoscaling.gates import Gates
from podfit.process.vpa.options import AdmissionOptions, UpdaterOptions
from podfit.process.vpa.recommender import RecommenderOptions

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
    "prometheus-bearer-token-file": "",
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
ALONE: dict[str, object] = {"kubeconfig": "", "bind-address": "127.0.0.1"}
LEASE: dict[str, object] = {"leader-elect": True, "leader-elect-resource-name": ""}
OURS: dict[type, dict[str, object]] = {
    RecommenderOptions: {
        **ALONE,
        **LEASE,
        "upstream-compatible": False,
        "fine-buckets": False,
        "secure-port": 8942,
        "api-port": -1,
        "api-bind-address": "127.0.0.1",
        "register-api-as": "",
        "history-dir": "",
        "history-size": 1024,
    },
    UpdaterOptions: {
        **ALONE,
        **LEASE,
        "upstream-compatible": False,
        "max-allowed-cpu-boost": "",
        "poll-bursts": "0s",
        "secure-port": 8943,
    },
    AdmissionOptions: {
        **ALONE,
        "ask-recommender": True,
        "client-ca-file": "",
        "tls-cert-file": "",
        "tls-private-key": "",
        "webhook-bind-address": "0.0.0.0",
        "secure-port": 8944,
    },
}
"""Flags that upstream has not, or whose defaults are others: a certificate is made where none is given."""
NAMESPACE = {"admission-controller-status-lease-namespace", "status-lease-namespace"}
"""Upstream's default is empty, and means kube-system."""


@pytest.mark.row("V-120")
@pytest.mark.parametrize(
    ("kind", "upstream"),
    [
        (RecommenderOptions, {**PROCESS, **ELECTION, **RECOMMENDER, **HISTORY}),
        (UpdaterOptions, {**PROCESS, **ELECTION, **UPDATER}),
        (AdmissionOptions, {**PROCESS, **ADMISSION}),
    ],
)
def test_vpa_flags_are_upstreams(kind: type[msgspec.Struct], upstream: dict[str, object]) -> None:
    found = {option.flag: default(option) for option in declared(kind)}
    assert found == upstream | OURS[kind]


def default(option: Declared) -> object:
    """As the command line has it."""
    if option.flag in NAMESPACE:
        return ""
    if option.default is None or option.default in ((), {}, frozenset(), Gates()):
        return ""
    return option.unit.text(option.default) if option.unit.flag is str else option.default
