"""The kinds of workloads: where each is served, which pods it selects, and how many it wants.

How its pods are replaced when its template changes is said in `deployment.status.is_replaced`,
`stateful.steps.replaced_from` and `daemon.steps.replaces`; the others replace none.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.selectors import requirements
from podfit.api.meta.v1.types import LabelSelector
from podfit.core.selectors import Requirement, from_map


class WorkloadKind(msgspec.Struct, frozen=True):
    """`short` is kubectl's name for it, empty where it has none."""

    type: type[Any]
    group: str
    resource: str
    short: str = ""
    version: str = "v1"

    @property
    def kind(self) -> str:
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """`v1`, or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


WORKLOADS = (
    WorkloadKind(Deployment, "apps", "deployments", "deploy"),
    WorkloadKind(StatefulSet, "apps", "statefulsets", "sts"),
    WorkloadKind(DaemonSet, "apps", "daemonsets", "ds"),
    WorkloadKind(ReplicaSet, "apps", "replicasets", "rs"),
    WorkloadKind(Job, "batch", "jobs"),
    WorkloadKind(CronJob, "batch", "cronjobs", "cj"),
    WorkloadKind(ReplicationController, "", "replicationcontrollers", "rc"),
)


def selection(selector: LabelSelector | Mapping[str, str] | None) -> tuple[Requirement, ...] | None:
    """What a workload asks of its pods' labels; None where it selects nothing. A ReplicationController has a map."""
    return from_map(selector).requirements if isinstance(selector, Mapping) else requirements(selector)


def replicas(number: int | None) -> int:
    """How many pods are wanted: one where nothing is said."""
    return 1 if number is None else number
