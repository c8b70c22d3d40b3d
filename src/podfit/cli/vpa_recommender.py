"""`podfit vpa recommender`: it writes sizes into the status of VPAs, beside any cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from msgspec.structs import replace

from podfit.cli.control import run_process
from podfit.cli.flags import Log, LogFlags
from podfit.cli.vpa_common import (
    ElectedProcess,
    ElectionFlags,
    VpaProcess,
    VpaProcessFlags,
    amount,
    control_options,
    duration,
    flag_of,
)
from podfit.cli.vpa_history import VpaHistory, VpaHistoryFlags
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.flags import (
    EstimatorFlags,
    MemoryFlags,
    OomFlags,
    RecommenderFlags,
    RenderFlags,
    ResourceFlags,
)
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf
from podfit.process.control.controllers import Loop
from podfit.process.errors import UsageError
from podfit.process.vpa.recommender import recommender_loops
from podfit.vpa.progress import Passes
from podfit.vpa.recommender.external_usage import ExternalMetrics
from podfit.vpa.recommender.recommender import RecommenderSettings

LEASE = "vpa-recommender-lease"
SHARES = (
    "target_cpu_percentile",
    "recommendation_lower_bound_cpu_percentile",
    "recommendation_upper_bound_cpu_percentile",
    "target_memory_percentile",
    "recommendation_lower_bound_memory_percentile",
    "recommendation_upper_bound_memory_percentile",
)
AT_LEAST_ONE = (
    "update_worker_count",
    "memory_aggregation_interval_count",
    "oom_bump_up_ratio",
    "round_cpu_millicores",
    "round_memory_bytes",
)
NOT_BELOW_ZERO = (
    "recommendation_margin_fraction",
    "pod_recommendation_min_cpu_millicores",
    "pod_recommendation_min_memory_mb",
    "oom_min_bump_up_bytes",
)


@dataclass(frozen=True, kw_only=True)
class VpaRecommenderFlags:
    """Upstream's names and defaults."""

    recommender_name: Annotated[str, Parameter(help="VPAs that name it; `default` is for those that name none.")] = (
        "default"
    )
    recommender_interval: Annotated[str, Parameter(help="From one pass to the next.")] = "1m"
    checkpoints_timeout: Annotated[str, Parameter(help="How long checkpoints are written in a pass.")] = "1m"
    checkpoints_gc_interval: Annotated[str, Parameter(help="How often checkpoints without a VPA are deleted.")] = "10m"
    update_worker_count: Annotated[int, Parameter(help="Requests that write at a time.")] = 10
    memory_saver: Annotated[bool, Parameter(help="Remember only pods that a VPA selects.")] = False
    use_external_metrics: Annotated[
        bool, Parameter(help="Usage from external.metrics.k8s.io, by the two names below and --container-name-label.")
    ] = False
    external_metrics_cpu_metric: Annotated[str, Parameter(help="Cores that a container uses.")] = ""
    external_metrics_memory_metric: Annotated[str, Parameter(help="Bytes that it uses.")] = ""
    fine_buckets: Annotated[
        bool, Parameter(help="Histograms begin at 1m and 1M, for small workloads; upstream refuses their checkpoints.")
    ] = False
    upstream_compatible: Annotated[
        bool, Parameter(help="Neither nodes, HPAs and sidecars nor percentiles and small minima of a policy count.")
    ] = False
    recommendation_margin_fraction: Annotated[float, Parameter(help="What is put on top, as a share.")] = 0.15
    pod_recommendation_min_cpu_millicores: Annotated[float, Parameter(help="The least CPU of a pod.")] = 25.0
    pod_recommendation_min_memory_mb: Annotated[float, Parameter(help="The least memory of a pod, in MiB.")] = 250.0
    target_cpu_percentile: float = 0.9
    recommendation_lower_bound_cpu_percentile: float = 0.5
    recommendation_upper_bound_cpu_percentile: float = 0.95
    target_memory_percentile: float = 0.9
    recommendation_lower_bound_memory_percentile: float = 0.5
    recommendation_upper_bound_memory_percentile: float = 0.95
    confidence_interval_cpu: str = "24h"
    confidence_interval_memory: str = "24h"
    cpu_histogram_decay_half_life: str = "24h"
    memory_histogram_decay_half_life: str = "24h"
    memory_aggregation_interval: Annotated[str, Parameter(help="Of which the peak counts.")] = "24h"
    memory_aggregation_interval_count: Annotated[int, Parameter(help="After so many, what is known expires.")] = 8
    oom_bump_up_ratio: Annotated[float, Parameter(help="By what memory is raised after an OOM.")] = 1.2
    oom_min_bump_up_bytes: Annotated[int, Parameter(help="By how much it is raised at least.")] = 100 * 1024 * 1024
    round_cpu_millicores: Annotated[int, Parameter(help="CPU is rounded up to a multiple of it.")] = 1
    round_memory_bytes: Annotated[int, Parameter(help="Memory is rounded up to a multiple of it.")] = 1
    humanize_memory: Annotated[bool, Parameter(help="Memory with two decimals of a unit (deprecated).")] = False
    cpu_integer_post_processor_enabled: Annotated[
        bool, Parameter(help="Whole cores where a VPA's annotation asks.")
    ] = False
    container_recommendation_max_allowed_cpu: Annotated[str, Parameter(help="Where the policy has no maximum.")] = ""
    container_recommendation_max_allowed_memory: Annotated[str, Parameter(help="Where the policy has no maximum.")] = ""

    def settings(self, process: VpaProcessFlags, container_label: str = "name") -> RecommenderSettings:
        """Raises UsageError."""
        self._check()
        if self.fine_buckets and self.upstream_compatible:
            raise UsageError("--fine-buckets and --upstream-compatible: give one of them")
        return RecommenderSettings(
            name=self.recommender_name,
            interval=self._seconds("recommender_interval"),
            checkpoints_timeout=self._seconds("checkpoints_timeout"),
            checkpoints_gc_interval=self._seconds("checkpoints_gc_interval"),
            workers=self.update_worker_count,
            namespace=process.vpa_object_namespace,
            ignored=process.ignored,
            flags=self._flags(),
            memory_saver=self.memory_saver,
            upstream_compatible=self.upstream_compatible,
            gates=process.gates,
            external=self._external(container_label),
        )

    def _external(self, container_label: str) -> ExternalMetrics | None:
        cpu, memory = self.external_metrics_cpu_metric, self.external_metrics_memory_metric
        if not self.use_external_metrics:
            return None
        if not cpu and not memory:
            raise UsageError("--use-external-metrics: name one with --external-metrics-cpu-metric or -memory-metric")
        return ExternalMetrics(cpu=cpu, memory=memory, container_label=container_label)

    def _check(self) -> None:
        rules: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
            (SHARES, lambda value: 0 < value <= 1, "more than 0 and at most 1"),
            (AT_LEAST_ONE, lambda value: value >= 1, "at least 1"),
            (NOT_BELOW_ZERO, lambda value: value >= 0, "at least 0"),
        )
        for names, holds, said in rules:
            for name in names:
                if not holds(getattr(self, name)):
                    raise UsageError(f"{flag_of(name)} {getattr(self, name):g}: it has to be {said}")

    def _flags(self) -> RecommenderFlags:
        return RecommenderFlags(
            estimator=EstimatorFlags(
                cpu=self._resource("cpu"),
                memory=self._resource("memory"),
                margin=self.recommendation_margin_fraction,
                min_cpu_millicores=self.pod_recommendation_min_cpu_millicores,
                min_memory_mb=self.pod_recommendation_min_memory_mb,
            ),
            render=RenderFlags(
                round_cpu_millicores=self.round_cpu_millicores,
                round_memory_bytes=self.round_memory_bytes,
                humanize_memory=self.humanize_memory,
                integer_cpu=self.cpu_integer_post_processor_enabled,
                max_allowed_cpu=self._quantity("container_recommendation_max_allowed_cpu"),
                max_allowed_memory=self._quantity("container_recommendation_max_allowed_memory"),
            ),
            oom=OomFlags(bump_up_ratio=self.oom_bump_up_ratio, min_bump_up_bytes=self.oom_min_bump_up_bytes),
            memory=MemoryFlags(
                interval=self._seconds("memory_aggregation_interval"), count=self.memory_aggregation_interval_count
            ),
            cpu_half_life=self._seconds("cpu_histogram_decay_half_life"),
            memory_half_life=self._seconds("memory_histogram_decay_half_life"),
            fine_buckets=self.fine_buckets,
        )

    def _resource(self, name: str) -> ResourceFlags:
        return ResourceFlags(
            target=getattr(self, f"target_{name}_percentile"),
            lower=getattr(self, f"recommendation_lower_bound_{name}_percentile"),
            upper=getattr(self, f"recommendation_upper_bound_{name}_percentile"),
            confidence_interval=self._seconds(f"confidence_interval_{name}"),
        )

    def _seconds(self, name: str) -> float:
        return duration(getattr(self, name), flag_of(name))

    def _quantity(self, name: str) -> Quantity | None:
        return amount(getattr(self, name), flag_of(name))


VpaRecommender: TypeAlias = Annotated[VpaRecommenderFlags | None, Parameter(name="*")]


def recommender(
    *,
    process: VpaProcess = None,
    flags: VpaRecommender = None,
    history: VpaHistory = None,
    election: ElectedProcess = None,
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 8942,
    log: Log = None,
) -> int:
    """Run the recommender of the Vertical Pod Autoscaler: it writes sizes into the status of VPAs (any cluster)."""

    process = process or VpaProcessFlags()
    history = history or VpaHistoryFlags()
    history.check()
    flags, clock = flags or VpaRecommenderFlags(), SystemClock()
    settings = flags.settings(process, container_label=history.container_name_label)
    past = (history.server(clock), history.settings(process.vpa_object_namespace)) if history.wanted else None
    if past is not None:
        settings = replace(settings, history_resolution=past[1].resolution)
    passes = Passes(clock, settings.interval)
    options = control_options(
        "vpa recommender",
        process,
        election or ElectionFlags(),
        lease=LEASE if settings.name == "default" else f"{LEASE}-{settings.name}",
        port=secure_port,
        healthy=lambda: passes.healthy,
    )

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return recommender_loops(client_of, settings, clock, metrics, passes, past)

    return run_process(options, loops, log or LogFlags())
