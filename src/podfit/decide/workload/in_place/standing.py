"""Rollouts in place under controllers that know nothing of them: a workload is held all the time, so that a new
template makes its controller replace no pod before it was looked at.

    held       a StatefulSet by a partition above all pods, a DaemonSet by OnDelete, a Deployment by its pause; what it
               had is in an annotation (`hold.HELD`)
    resized    pods of an old template that differs in resources alone; finished ones are told to be of the new one:
               by the label of the revision, of a Deployment by the template of their ReplicaSet
    left       to its controller: released, until nothing is left to replace, then held again. A pod that cannot be
               resized, and a template that differs in more than resources, are replaced so, by the strategy it had

Why that is enough, by upstream's code (Kubernetes 1.36.2, read, not tried): `hold` for the labels. A partition: in
`stateful_set_control.go`, `updateStatefulSet` ends before it deletes pods below it, `newVersionedStatefulSetPod`
(`stateful_set_utils.go`) makes those of the current revision, and `completeRollingUpdate` makes the update revision the
current one when all pods have its label, whatever the partition is. OnDelete: `updateDaemonSet`
(`daemon/daemon_controller.go`) calls `rollingUpdate` for the other strategy alone. A pause: `syncDeployment`
(`deployment/deployment_controller.go`) then calls `sync`, which scales and makes no ReplicaSet (`getNewReplicaSet` is
asked not to create), and `FindNewReplicaSet` (`deployment/util`) takes the ReplicaSet of an equal template for the
newest.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import to_dict
from podfit.decide.workload.deployment.status import is_replaced
from podfit.decide.workload.hashes import content_hash
from podfit.decide.workload.in_place import hold
from podfit.decide.workload.in_place.fates import PodSteps
from podfit.decide.workload.in_place.hold import HELD, ON_DELETE, Labelled, Patch

Owner: TypeAlias = Labelled | Deployment
LEFT = "podfit.dev/rollout-left"
"""Annotation: the revision that its controller rolls out, as it does without podfit."""
TO_REPLACE = "podfit.dev/rollout-replaces"
"""Annotation of a Deployment: the UIDs of pods that cannot be resized, when their ReplicaSet has the new template."""
ABOVE_ALL = 2**31 - 1
_PAUSED = '{"paused":false}'


class Stance(Enum):
    """What is due for a workload."""

    REST = "nothing, until something happens"
    HOLD = "hold it"
    RESIZE = "resize its pods"
    LEAVE = "leave it to its controller"


def is_mine(owner: Owner) -> bool:
    """Whether it is held by podfit, by all that the API tells."""
    if HELD not in owner.metadata.annotations:
        return False
    match owner:
        case Deployment():
            return bool(owner.spec.paused)
        case DaemonSet():
            return owner.spec.update_strategy.type == ON_DELETE
    rolling = owner.spec.update_strategy.rolling_update
    return rolling is not None and rolling.partition == ABOVE_ALL


def may_be_held(owner: Owner) -> bool:
    """Not what somebody else has paused, or whose pods wait for somebody to delete them."""
    if is_mine(owner):
        return True
    if isinstance(owner, Deployment):
        return not owner.spec.paused
    return owner.spec.update_strategy.type != ON_DELETE


def holding(owner: Owner) -> Patch:
    """A strategic merge patch. What it has now is kept, not what an earlier hold kept: somebody has changed it."""
    annotations: Patch = {LEFT: None}
    if isinstance(owner, Deployment):
        return {"metadata": {"annotations": annotations | {HELD: _PAUSED}}, "spec": {"paused": True}}
    patch = hold.held(_without_note(owner))
    patch["metadata"]["annotations"] |= annotations
    if isinstance(owner, StatefulSet):
        patch["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = ABOVE_ALL
    return patch


def _without_note(owner: Labelled) -> Any:
    notes = {key: value for key, value in owner.metadata.annotations.items() if key != HELD}
    return replace(owner, metadata=replace(owner.metadata, annotations=notes))


def releasing(owner: Owner, left: str | None = None) -> Patch:
    """A strategic merge patch; `left` is the revision that its controller is to roll out. Raises ValueError as
    `hold.strategy_before`."""
    annotations: Patch = {HELD: None, LEFT: left}
    if isinstance(owner, Deployment):
        return {"metadata": {"annotations": annotations | {TO_REPLACE: None}}, "spec": {"paused": None}}
    patch = hold.released(owner)
    patch["metadata"]["annotations"] |= annotations
    return patch


def unheld(owner: Labelled) -> Any:
    """The workload without the hold. Raises ValueError as `hold.strategy_before`."""
    return replace(owner, spec=replace(owner.spec, update_strategy=hold.strategy_before(owner)))


def stance(owner: Owner, revision: str, *, fit: int, unfit: int, at_rest: bool) -> Stance:
    """`revision` is that of its template. Of the pods that a rollout would replace `fit` can be resized."""
    if owner.metadata.annotations.get(LEFT) == revision and not is_mine(owner):
        return Stance.REST if fit or unfit or not at_rest else Stance.HOLD
    if not is_mine(owner):
        return Stance.REST if unfit else Stance.HOLD  # its controller replaces pods already
    if fit:
        return Stance.RESIZE
    return Stance.LEAVE if unfit else Stance.REST


def only_replaced(steps: PodSteps, fit: Sequence[Pod]) -> bool:
    """Whether no pod is left that can be resized."""
    return bool(fit) and len(steps.replaced) == len(fit)


# ------------------------------------------------------------ a Deployment


def revision_of(deployment: Deployment) -> str:
    return content_hash(deployment.spec.template, None)


def is_at_rest(deployment: Deployment) -> bool:
    return is_replaced(deployment, deployment.status)


def to_replace(deployment: Deployment) -> frozenset[str]:
    """UIDs of pods."""
    return frozenset(filter(None, deployment.metadata.annotations.get(TO_REPLACE, "").split(",")))


def replacing(uids: Iterable[str]) -> Patch:
    return {"metadata": {"annotations": {TO_REPLACE: ",".join(sorted(uids)) or None}}}


def adopting(template: PodTemplateSpec, replica_set: ReplicaSet) -> Patch:
    """A strategic merge patch by which a ReplicaSet has the sizes of a template that differs in nothing else."""
    spec = template.spec
    sized: Patch = {"containers": list(map(_sized, spec.containers))}
    if spec.init_containers:
        sized["initContainers"] = list(map(_sized, spec.init_containers))
    old = replica_set.spec.template.spec.resources
    if spec.resources is not None or old is not None:
        sized["resources"] = None if spec.resources is None else {"$patch": "replace", **to_dict(spec.resources)}
    return {"spec": {"template": {"spec": sized}}}


def _sized(container: Container) -> Patch:
    return {"name": container.name, "resources": {"$patch": "replace", **to_dict(container.resources)}}


class Deletions(msgspec.Struct, frozen=True):
    """`delete` now; `left` are UIDs of those that stay for the moment."""

    delete: tuple[Pod, ...] = ()
    left: frozenset[str] = frozenset()


def room(pods: Iterable[Pod], uids: frozenset[str], available: frozenset[str], spare: int) -> Deletions:
    """Which of the pods that are to be replaced go now: those that are not available, and `spare` others."""
    concerned = [pod for pod in pods if pod.metadata.uid in uids]
    well = [pod for pod in concerned if pod.metadata.uid in available]
    gone = (*(pod for pod in concerned if pod.metadata.uid not in available), *well[: max(0, spare)])
    return Deletions(gone, frozenset(pod.metadata.uid for pod in concerned) - {pod.metadata.uid for pod in gone})
