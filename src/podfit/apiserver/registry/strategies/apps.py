"""Strategies of deployments and daemon sets."""

from typing import Any

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment
from podfit.api.meta.base import Object
from podfit.api.registry import ResourceInfo
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


STRATEGIES: dict[type[Object], Strategy] = {
    DaemonSet: Strategy(prepare_create=_new_daemon_set, update=UpdateStrategy(prepare=_changed_daemon_set)),
    Deployment: Strategy(subresources={"status": UpdateStrategy(prepare=_deployment_status, validate=status_errors)}),
}
