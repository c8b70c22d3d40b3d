"""Flags for the history of usage (`--storage=prometheus`, …) of a recommender."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from cyclopts import Parameter

from podfit.cli.vpa_common import duration
from podfit.core.clock import Clock
from podfit.process.errors import UsageError
from podfit.vpa.history.prometheus import HistorySettings
from podfit.vpa.history.promql import Login, PromQL

PROMETHEUS, CHECKPOINT = "prometheus", "checkpoint"
_DAYS = "d"


@dataclass(frozen=True, kw_only=True)
class VpaHistoryFlags:
    """Upstream's names and defaults. Any server that speaks PromQL will do."""

    storage: Annotated[str, Parameter(help="prometheus, or checkpoint.")] = CHECKPOINT
    prometheus_address: Annotated[str, Parameter(help="Where it is.")] = "http://prometheus.monitoring.svc"
    prometheus_insecure: Annotated[bool, Parameter(help="Do not check its certificate.")] = False
    prometheus_cadvisor_job_name: Annotated[str, Parameter(help="The job that scrapes kubelets.")] = (
        "kubernetes-cadvisor"
    )
    prometheus_query_timeout: Annotated[str, Parameter(help="For a query.")] = "5m"
    prometheus_bearer_token: Annotated[str, Parameter(help="Goes before user and password.")] = ""
    prometheus_bearer_token_file: Annotated[Path | None, Parameter(help="Read before each query.")] = None
    username: Annotated[str, Parameter(help="[default: PROMETHEUS_USERNAME]")] = ""
    password: Annotated[str, Parameter(help="[default: PROMETHEUS_PASSWORD]")] = ""
    history_length: Annotated[str, Parameter(help="How far back.")] = "8d"
    history_resolution: Annotated[str, Parameter(help="From one sample to the next.")] = "1h"
    history_cpu_metric: str = "container_cpu_usage_seconds_total"
    history_memory_metric: str = "container_memory_working_set_bytes"
    metric_for_pod_labels: Annotated[str, Parameter(help="Bears the labels of pods that are gone.")] = (
        'up{job="kubernetes-pods"}'
    )
    pod_label_prefix: str = "pod_label_"
    pod_namespace_label: str = "kubernetes_namespace"
    pod_name_label: str = "kubernetes_pod_name"
    container_namespace_label: str = "namespace"
    container_pod_name_label: str = "pod_name"
    container_name_label: str = "name"

    def check(self) -> None:
        """Raises UsageError."""
        if self.storage not in ("", PROMETHEUS, CHECKPOINT):
            raise UsageError(f"--storage {self.storage}: it has to be {PROMETHEUS} or {CHECKPOINT}")
        parts = urlsplit(self.prometheus_address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--prometheus-address {self.prometheus_address}: write http://HOST:PORT")
        if self.prometheus_bearer_token and self.prometheus_bearer_token_file:
            raise UsageError("--prometheus-bearer-token and --prometheus-bearer-token-file: give one of them")

    @property
    def wanted(self) -> bool:
        return self.storage == PROMETHEUS

    def settings(self, namespace: str) -> HistorySettings:
        """Raises UsageError."""
        return HistorySettings(
            length=_seconds(self.history_length, "--history-length"),
            resolution=_seconds(self.history_resolution, "--history-resolution"),
            resolution_text=self.history_resolution,
            cpu_metric=self.history_cpu_metric,
            memory_metric=self.history_memory_metric,
            job=self.prometheus_cadvisor_job_name,
            namespace=namespace,
            pod_label=self.container_pod_name_label,
            container_label=self.container_name_label,
            namespace_label=self.container_namespace_label,
            metric_for_pod_labels=self.metric_for_pod_labels,
            pod_label_prefix=self.pod_label_prefix,
            labels_namespace=self.pod_namespace_label,
            labels_pod=self.pod_name_label,
        )

    def server(self, clock: Clock) -> PromQL:
        """Raises UsageError."""
        return PromQL(
            self.prometheus_address,
            clock,
            login=self._login(),
            insecure=self.prometheus_insecure,
            timeout=_seconds(self.prometheus_query_timeout, "--prometheus-query-timeout"),
        )

    def _login(self) -> Login:
        token, file = self.prometheus_bearer_token, self.prometheus_bearer_token_file
        if file is not None:
            return Login(token=lambda: file.read_text().strip())
        if token:
            return Login(token=lambda: token)
        return Login(
            user=self.username or os.environ.get("PROMETHEUS_USERNAME", ""),
            password=self.password or os.environ.get("PROMETHEUS_PASSWORD", ""),
        )


VpaHistory: TypeAlias = Annotated[VpaHistoryFlags | None, Parameter(name="*")]


def _seconds(text: str, flag: str) -> float:
    """As Prometheus writes durations, which have days."""
    days = text.removesuffix(_DAYS)
    return duration(f"{int(days) * 24}h" if text.endswith(_DAYS) and days.isdigit() else text, flag)
