"""Defaults of workload controllers (Deployment, ReplicaSet, StatefulSet, DaemonSet)."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.apps.v1.daemonsets import DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from podfit.api.apps.v1.deployments import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from podfit.api.apps.v1.statefulsets import (
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.pods.defaults import default_template
from podfit.api.core.v1.pods.templates import PodTemplate
from podfit.api.core.v1.pods.volume_defaults import default_claim
from podfit.api.core.v1.replication.types import ReplicationController, ReplicationControllerSpec
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_HISTORY = 10


def _deployment(deployment: Deployment) -> Deployment:
    return inside(deployment, spec=_deployment_spec)


def _deployment_spec(spec: DeploymentSpec) -> DeploymentSpec:
    spec = fill(spec, replicas=1, revision_history_limit=_HISTORY, progress_deadline_seconds=600)
    return inside(spec, strategy=_deployment_strategy, template=default_template)


def _deployment_strategy(strategy: DeploymentStrategy) -> DeploymentStrategy:
    strategy = fill(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    strategy = fill(strategy, rolling_update=RollingUpdateDeployment())
    return inside(strategy, rolling_update=lambda rolling: fill(rolling, max_unavailable="25%", max_surge="25%"))


def _replica_set(replicas: ReplicaSet) -> ReplicaSet:
    return inside(replicas, spec=_replica_set_spec)


def _replica_set_spec(spec: ReplicaSetSpec) -> ReplicaSetSpec:
    return inside(fill(spec, replicas=1), template=default_template)


def _stateful_set(stateful: StatefulSet) -> StatefulSet:
    return inside(stateful, spec=_stateful_set_spec)


def _stateful_set_spec(spec: StatefulSetSpec) -> StatefulSetSpec:
    spec = fill(
        spec,
        replicas=1,
        pod_management_policy="OrderedReady",
        revision_history_limit=_HISTORY,
        persistent_volume_claim_retention_policy=StatefulSetPersistentVolumeClaimRetentionPolicy(),
    )
    return inside(
        spec,
        update_strategy=_stateful_strategy,
        template=default_template,
        volume_claim_templates=_claim,
        persistent_volume_claim_retention_policy=lambda policy: fill(
            policy, when_deleted="Retain", when_scaled="Retain"
        ),
    )


def _stateful_strategy(strategy: StatefulSetUpdateStrategy) -> StatefulSetUpdateStrategy:
    strategy = fill(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    strategy = fill(strategy, rolling_update=RollingUpdateStatefulSetStrategy())
    return inside(strategy, rolling_update=lambda rolling: fill(rolling, partition=0))


def _claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return inside(claim, spec=default_claim, status=lambda status: fill(status, phase="Pending"))


def _daemon_set(daemons: DaemonSet) -> DaemonSet:
    """The annotation is what is left of a field of older versions; strategies count in it."""
    daemons = inside(daemons, spec=_daemon_set_spec)
    annotations = daemons.metadata.annotations
    if TEMPLATE_GENERATION in annotations:
        return daemons
    annotated = {**annotations, TEMPLATE_GENERATION: "0"}
    return change(daemons, metadata=change(daemons.metadata, annotations=annotated))


def _daemon_set_spec(spec: DaemonSetSpec) -> DaemonSetSpec:
    spec = fill(spec, revision_history_limit=_HISTORY)
    return inside(spec, update_strategy=_daemon_strategy, template=default_template)


def _daemon_strategy(strategy: DaemonSetUpdateStrategy) -> DaemonSetUpdateStrategy:
    strategy = fill(strategy, type="RollingUpdate")
    if strategy.type != "RollingUpdate":
        return strategy
    strategy = fill(strategy, rolling_update=RollingUpdateDaemonSet())
    return inside(strategy, rolling_update=lambda rolling: fill(rolling, max_unavailable=1, max_surge=0))


def _pod_template(template: PodTemplate) -> PodTemplate:
    return inside(template, template=default_template)


def _replication_controller(controller: ReplicationController) -> ReplicationController:
    """It selects, and is labelled, as its pods are."""
    controller = inside(controller, spec=_replication_spec)
    labels = controller.spec.template.metadata.labels if controller.spec.template else {}
    if not labels:
        return controller
    if not controller.spec.selector:
        controller = change(controller, spec=change(controller.spec, selector=labels))
    return controller if controller.metadata.labels else _labelled(controller, labels)


def _labelled(controller: ReplicationController, labels: dict[str, str]) -> ReplicationController:
    return change(controller, metadata=change(controller.metadata, labels=labels))


def _replication_spec(spec: ReplicationControllerSpec) -> ReplicationControllerSpec:
    return inside(fill(spec, replicas=1), template=default_template)


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {
    Deployment: _deployment,
    ReplicaSet: _replica_set,
    StatefulSet: _stateful_set,
    DaemonSet: _daemon_set,
    PodTemplate: _pod_template,
    ReplicationController: _replication_controller,
}
