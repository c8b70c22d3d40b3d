"""`podfit vpa updater`: it changes pods that run to what is recommended, beside any cluster."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from podfit.cli.control import run_process
from podfit.cli.flags import Log, LogFlags
from podfit.cli.vpa_common import ElectedProcess, ElectionFlags, VpaProcess, VpaProcessFlags, control_options, duration
from podfit.client.rate_limit import Rate
from podfit.decide.autoscaling import update
from podfit.decide.autoscaling.priority import Thresholds
from podfit.decide.autoscaling.published import LEASE, NAMESPACE, AdmissionLease
from podfit.net.metrics import Metrics
from podfit.net.system import SystemClock
from podfit.process.control.control_process import ClientOf
from podfit.process.control.controllers import Loop
from podfit.process.errors import UsageError
from podfit.process.vpa.loops import updater_loops
from podfit.vpa.progress import Passes
from podfit.vpa.updater.updater import UpdaterSettings


@dataclass(frozen=True, kw_only=True)
class VpaUpdaterFlags:
    """Upstream's names and defaults; `upstream_compatible` is podfit's."""

    updater_interval: Annotated[str, Parameter(help="From one pass to the next.")] = "1m"
    min_replicas: Annotated[int, Parameter(help="Pods of a workload before one is evicted.")] = 2
    eviction_tolerance: Annotated[float, Parameter(help="Share of a workload that is disturbed at once.")] = 0.5
    eviction_rate_limit: Annotated[
        float, Parameter(help="Evictions, and resizes, a second; 0 and below are without a limit.")
    ] = -1.0
    eviction_rate_burst: Annotated[int, Parameter(help="Of them at once.")] = 1
    pod_update_threshold: Annotated[float, Parameter(help="What a pod within its bounds differs by, as a share.")] = 0.1
    in_recommendation_bounds_eviction_lifetime_threshold: Annotated[
        str, Parameter(help="How old a pod within its bounds is.")
    ] = "12h"
    evict_after_oom_threshold: Annotated[str, Parameter(help="An OOM so soon after the start is acted on.")] = "10m"
    in_place_skip_disruption_budget: Annotated[
        bool, Parameter(help="Resizes that restart nothing count for no budget.")
    ] = False
    use_admission_controller_status: Annotated[
        bool, Parameter(help="Do nothing while no admission controller renews its Lease.")
    ] = True
    admission_controller_status_lease_name: str = "vpa-admission-controller"
    admission_controller_status_lease_namespace: Annotated[
        str, Parameter(help="[default: NAMESPACE, else kube-system]")
    ] = ""
    admission_controller_status_lease_timeout: Annotated[str, Parameter(help="How long it counts.")] = "1m"
    upstream_compatible: Annotated[
        bool, Parameter(help="Do as upstream: Recreate and Auto evict, few replicas stay as they are.")
    ] = False

    def settings(self, process: VpaProcessFlags) -> UpdaterSettings:
        """Raises UsageError."""
        self._check()
        lease = AdmissionLease(
            name=self.admission_controller_status_lease_name,
            namespace=self.admission_controller_status_lease_namespace or os.environ.get("NAMESPACE", "") or NAMESPACE,
            timeout=duration(
                self.admission_controller_status_lease_timeout, "--admission-controller-status-lease-timeout"
            ),
        )
        lifetime = duration(
            self.in_recommendation_bounds_eviction_lifetime_threshold,
            "--in-recommendation-bounds-eviction-lifetime-threshold",
        )
        quick = duration(self.evict_after_oom_threshold, "--evict-after-oom-threshold")
        limit, burst = self.eviction_rate_limit, self.eviction_rate_burst
        return UpdaterSettings(
            interval=duration(self.updater_interval, "--updater-interval"),
            rules=update.UpdateSettings(
                gates=process.gates,
                min_replicas=self.min_replicas,
                tolerance=self.eviction_tolerance,
                thresholds=Thresholds(
                    update=self.pod_update_threshold,
                    lifetime=timedelta(seconds=lifetime),
                    quick_oom=timedelta(seconds=quick),
                ),
                skip_disruption_budget=self.in_place_skip_disruption_budget,
                upstream_compatible=self.upstream_compatible,
            ),
            eviction_rate=Rate(limit, burst) if limit > 0 else None,
            admission=lease if self.use_admission_controller_status else None,
            namespace=process.vpa_object_namespace,
            ignored=process.ignored,
        )

    def _check(self) -> None:
        if not 0 <= self.eviction_tolerance <= 1:
            raise UsageError(f"--eviction-tolerance {self.eviction_tolerance:g}: it has to be from 0 to 1")
        if self.min_replicas < 1:
            raise UsageError(f"--min-replicas {self.min_replicas}: it has to be at least 1")
        if self.eviction_rate_burst < 1:
            raise UsageError(f"--eviction-rate-burst {self.eviction_rate_burst}: it has to be at least 1")
        if self.pod_update_threshold < 0:
            raise UsageError(f"--pod-update-threshold {self.pod_update_threshold:g}: it has to be at least 0")


VpaUpdater: TypeAlias = Annotated[VpaUpdaterFlags | None, Parameter(name="*")]


def updater(
    *,
    process: VpaProcess = None,
    flags: VpaUpdater = None,
    election: ElectedProcess = None,
    secure_port: Annotated[int, Parameter(help="Of health and metrics; 0 takes a free one.")] = 8943,
    log: Log = None,
) -> int:
    """Run the updater of the Vertical Pod Autoscaler: it resizes pods in place, or evicts them (any cluster)."""

    process = process or VpaProcessFlags()
    settings, clock = (flags or VpaUpdaterFlags()).settings(process), SystemClock()
    passes = Passes(clock, settings.interval)
    options = control_options(
        "vpa updater",
        process,
        election or ElectionFlags(),
        lease=LEASE,
        port=secure_port,
        healthy=lambda: passes.healthy,
        told=settings.published().annotation(),
    )

    def loops(client_of: ClientOf, metrics: Metrics) -> Iterator[Loop]:
        return updater_loops(client_of, settings, clock, metrics, passes)

    return run_process(options, loops, log or LogFlags())
