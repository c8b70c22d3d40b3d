"""Workloads as VPAs and HPAs name them, and which of several VPAs counts.

Neither the group nor the version of a target counts: every place where a VPA or an HPA is looked up by its workload
asks here, the components and the answers alike.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.decide.autoscaling.policies import OFF, boosts, observes, update_mode


class NamedTarget(NamedTuple):
    namespace: str
    kind: str
    name: str


def target_of(vpa: VerticalPodAutoscaler) -> NamedTarget | None:
    """None for one that names nothing."""
    target = vpa.spec.target_ref
    return NamedTarget(vpa.metadata.namespace, target.kind, target.name) if target is not None else None


def scaled_by(autoscaler: HorizontalPodAutoscaler) -> NamedTarget:
    target = autoscaler.spec.scale_target_ref
    return NamedTarget(autoscaler.metadata.namespace, target.kind, target.name)


def by_age(vpa: VerticalPodAutoscaler) -> tuple[bool, str, str]:
    """Sort key: the oldest first, then by name; times of the API are all in UTC and of one width."""
    created = vpa.metadata.creation_timestamp
    return not created, created or "", vpa.metadata.name


def naming(vpas: Iterable[VerticalPodAutoscaler], target: NamedTarget) -> list[VerticalPodAutoscaler]:
    """Those that name a workload, the one that counts first."""
    return sorted((vpa for vpa in vpas if target_of(vpa) == target), key=by_age)


def gives_to_new_pods(vpa: VerticalPodAutoscaler, now: datetime, *, boosting: bool) -> bool:
    """Whether the admission controller sizes new pods by it; the next younger one counts where it does not. `boosting`
    is whether CPU startup boosts are on."""
    return not observes(vpa, now) and (update_mode(vpa) != OFF or (boosting and boosts(vpa)))
