"""Strategies of deployments, stateful sets and daemon sets."""

from typing import Any

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.registry.strategies.strategy import (
    Strategy,
    UpdateStrategy,
    changed_object,
    changed_status,
    new_object,
    status_errors,
)
from podfit.core.features import FeatureGates
from podfit.decide.workload.workloads import changed_daemon_set, new_daemon_set


def _new_daemon_set(info: ResourceInfo, obj: DaemonSet, gates: FeatureGates) -> Any:
    return new_object(info, new_daemon_set(obj), gates)


def _changed_daemon_set(info: ResourceInfo, new: DaemonSet, old: DaemonSet, gates: FeatureGates) -> Any:
    kept = replace(new, status=old.status)
    return changed_object(info, changed_daemon_set(kept, old), old, gates)


def _deployment_status(info: ResourceInfo, new: Deployment, old: Deployment, gates: FeatureGates) -> Any:
    labelled = replace(new, metadata=replace(new.metadata, labels=old.metadata.labels))
    return changed_status(info, labelled, old, gates)


def _new_stateful_set(info: ResourceInfo, obj: StatefulSet, gates: FeatureGates) -> Any:
    return new_object(info, _bounded(obj, gates), gates)


def _changed_stateful_set(info: ResourceInfo, new: StatefulSet, old: StatefulSet, gates: FeatureGates) -> Any:
    """What is in use stays in use."""
    return changed_object(info, new if _has_bound(old) else _bounded(new, gates), old, gates)


def _bounded(obj: StatefulSet, gates: FeatureGates) -> StatefulSet:
    """Without `maxUnavailable`, which upstream drops in silence while its gate is off."""
    strategy = obj.spec.update_strategy
    if not _has_bound(obj) or gates["MaxUnavailableStatefulSet"] or strategy.rolling_update is None:
        return obj
    rolling = replace(strategy.rolling_update, max_unavailable=None)
    return replace(obj, spec=replace(obj.spec, update_strategy=replace(strategy, rolling_update=rolling)))


def _has_bound(obj: StatefulSet) -> bool:
    rolling = obj.spec.update_strategy.rolling_update
    return rolling is not None and rolling.max_unavailable is not None


STRATEGIES: dict[type[Object], Strategy] = {
    DaemonSet: Strategy(prepare_create=_new_daemon_set, update=UpdateStrategy(prepare=_changed_daemon_set)),
    StatefulSet: Strategy(prepare_create=_new_stateful_set, update=UpdateStrategy(prepare=_changed_stateful_set)),
    Deployment: Strategy(subresources={"status": UpdateStrategy(prepare=_deployment_status, validate=status_errors)}),
}
