"""Columns of `kubectl get` for controllers of pods."""

from typing import Any

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.replication.columns import PODS, SELECTOR, integers, pairs, pods_of, selected
from podfit.api.meta.columns import AGE, NAME, NONE, age
from podfit.api.meta.owners import controller_named
from podfit.api.meta.resource_info import Column

DEPLOYMENT = (
    NAME,
    Column("Ready", description="Pods that are ready, of those wanted."),
    Column("Up-to-date", description="Pods made from the present template."),
    Column("Available", description="Pods that have been ready for long enough."),
    AGE,
    *PODS,
    SELECTOR,
)


def deployment_row(deployment: Deployment, now: str) -> list[Any]:
    spec, status = deployment.spec, deployment.status
    return [
        deployment.metadata.name,
        f"{status.ready_replicas}/{spec.replicas or 0}",
        status.updated_replicas,
        status.available_replicas,
        age(deployment, now),
        *pods_of(spec.template),
        selected(spec.selector),
    ]


def replica_set_row(replicas: ReplicaSet, now: str) -> list[Any]:
    spec, status = replicas.spec, replicas.status
    counts = [spec.replicas or 0, status.replicas, status.ready_replicas]
    rest = [*pods_of(spec.template), selected(spec.selector)]
    return [replicas.metadata.name, *counts, age(replicas, now), *rest]


STATEFUL_SET = (NAME, Column("Ready", description="Pods that are ready, of those wanted."), AGE, *PODS)


def stateful_set_row(stateful: StatefulSet, now: str) -> list[Any]:
    ready = f"{stateful.status.ready_replicas}/{stateful.spec.replicas or 0}"
    return [stateful.metadata.name, ready, age(stateful, now), *pods_of(stateful.spec.template)]


DAEMON_SET = (
    NAME,
    *integers(
        ("Desired", "Nodes that should run a pod of it."),
        ("Current", "Nodes that have a pod of it."),
        ("Ready", "Nodes whose pod is ready."),
        ("Up-to-date", "Nodes whose pod is made from the present template."),
        ("Available", "Nodes whose pod has been ready for long enough."),
    ),
    Column("Node Selector", description="Labels of the nodes that it is for."),
    AGE,
    *PODS,
    SELECTOR,
)


def daemon_set_row(daemons: DaemonSet, now: str) -> list[Any]:
    spec, status = daemons.spec, daemons.status
    return [
        daemons.metadata.name,
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        pairs(spec.template.spec.node_selector),
        age(daemons, now),
        *pods_of(spec.template),
        selected(spec.selector),
    ]


REVISION = (
    NAME,
    Column("Controller", description="What this is a revision of."),
    Column("Revision", description="Number of the revision."),
    AGE,
)


def revision_row(revision: ControllerRevision, now: str) -> list[Any]:
    owner = controller_named(revision.metadata)
    shown = f"{owner.kind.lower()}{'.' if owner.group else ''}{owner.group}/{owner.name}" if owner else NONE
    return [revision.metadata.name, shown, revision.revision, age(revision, now)]
