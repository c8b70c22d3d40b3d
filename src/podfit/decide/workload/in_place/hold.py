"""How a template is changed without a rollout, under whichever controllers: hold, relabel, release.

    hold      the new template, and an update strategy by which no pod is replaced, in one write; the strategy before is
              kept in an annotation, for whoever goes on after a crash
    relabel   each pod that is to stay gets the label of the new revision, once its controller has made that
    release   the strategy before: there is nothing left to replace

Upstream's controllers judge a pod by its label alone, as podfit's do (Kubernetes 1.36.2): a StatefulSet's by
`getPodRevision` (`pkg/controller/statefulset/stateful_set_utils.go`), which `stateful_set_control.go` asks when it
counts updated pods and when it looks for the next one to delete; a DaemonSet's by `IsPodUpdated`
(`pkg/controller/daemon/util/daemonset_util.go`), by the hash or by the number of the template. Neither looks at the
pod's spec. A Deployment's pods belong to a ReplicaSet, whose template can be changed instead.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet, DaemonSetUpdateStrategy
from podfit.api.apps.v1.defaults import TEMPLATE_GENERATION
from podfit.api.apps.v1.statefulsets import StatefulSet, StatefulSetUpdateStrategy
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import decode, encode, to_dict
from podfit.decide.workload.daemon.nodes import GENERATION
from podfit.decide.workload.daemon.steps import replaces
from podfit.decide.workload.history import HASH, in_order, templates_in
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful.steps import replaced_from

HELD = "podfit.dev/update-strategy"
"""Annotation of a workload that is held: the update strategy that it had before, as JSON."""
ON_DELETE = "OnDelete"
Labelled: TypeAlias = StatefulSet | DaemonSet
Patch: TypeAlias = dict[str, Any]


def is_held(owner: Labelled) -> bool:
    return HELD in owner.metadata.annotations


def is_at_rest(owner: Labelled) -> bool:
    """Whether its controller has seen it as it is, and has no pod left to replace."""
    if not 0 < owner.metadata.generation <= owner.status.observed_generation:
        return False
    if isinstance(owner, DaemonSet):
        return owner.status.updated_number_scheduled == owner.status.desired_number_scheduled
    begin, end = replaced_from(owner), identity.first(owner) + identity.size(owner)
    return begin is None or owner.status.updated_replicas >= max(0, end - begin)


def held(owner: Labelled) -> Patch:
    """A strategic merge patch by which no pod is replaced."""
    if isinstance(owner, DaemonSet):
        strategy: Patch = {"type": ON_DELETE, "rollingUpdate": None}
    else:
        strategy = {"rollingUpdate": {"partition": identity.size(owner)}}
    note = owner.metadata.annotations.get(HELD, encode(owner.spec.update_strategy).decode())
    return {"metadata": {"annotations": {HELD: note}}, "spec": {"updateStrategy": strategy}}


def strategy_before(owner: Labelled) -> StatefulSetUpdateStrategy | DaemonSetUpdateStrategy:
    """What a held workload had, or has when it is not. Raises ValueError for a note that cannot be read."""
    note = owner.metadata.annotations.get(HELD)
    if note is None:
        return owner.spec.update_strategy
    try:
        if isinstance(owner, DaemonSet):
            return decode(note.encode(), DaemonSetUpdateStrategy)
        return decode(note.encode(), StatefulSetUpdateStrategy)
    except msgspec.DecodeError as error:
        raise ValueError(f"annotation {HELD} cannot be read: {error}") from None


def released(owner: Labelled) -> Patch:
    """A strategic merge patch that ends the hold. Raises ValueError as `strategy_before`."""
    strategy = {**to_dict(strategy_before(owner)), "$patch": "replace"}
    return {"metadata": {"annotations": {HELD: None}}, "spec": {"updateStrategy": strategy}}


def labels_of(owner: Labelled, revisions: Iterable[ControllerRevision]) -> dict[str, str] | None:
    """What a pod of the present template is labelled with; None while its controller has not made that revision.

    `revisions` are the workload's own.
    """
    if owner.status.observed_generation < owner.metadata.generation:
        return None
    if isinstance(owner, StatefulSet):
        name = owner.status.update_revision
        return {HASH: name} if name else None
    newest = [one for one in in_order(revisions) if _is_of(one, owner.spec.template)]
    digest = newest[-1].metadata.labels.get(HASH, "") if newest else ""
    if not digest:
        return None
    number = owner.metadata.annotations.get(TEMPLATE_GENERATION, "")
    return {HASH: digest} | ({GENERATION: number} if number else {})


def _is_of(revision: ControllerRevision, template: PodTemplateSpec) -> bool:
    return template in templates_in((revision,)).values()


def staying(owner: Labelled, pods: Iterable[Pod], before: Iterable[str]) -> list[Pod]:
    """The pods that would be replaced: of a revision of `before`, and from the partition on that there is without the
    hold. Raises ValueError as `strategy_before`."""
    labels, begin = set(before), first_replaced(owner)
    if begin is None:
        return []
    return [
        pod
        for pod in pods
        if is_active(pod)
        and pod.metadata.labels.get(HASH) in labels
        and (isinstance(owner, DaemonSet) or identity.ordinal(pod) >= begin)
    ]


def first_replaced(owner: Labelled) -> int | None:
    """The lowest ordinal that its controller would replace without the hold, of a daemon set 0; None when none is."""
    strategy = strategy_before(owner)
    if isinstance(strategy, DaemonSetUpdateStrategy):
        assert isinstance(owner, DaemonSet)
        return 0 if replaces(replace(owner, spec=replace(owner.spec, update_strategy=strategy))) else None
    assert isinstance(owner, StatefulSet)
    return replaced_from(replace(owner, spec=replace(owner.spec, update_strategy=strategy)))


def replaces_any(owner: Labelled) -> bool:
    """Whether its controller would replace pods of another template without the hold."""
    begin = first_replaced(owner)
    if begin is None or isinstance(owner, DaemonSet):
        return begin is not None
    return begin < identity.first(owner) + identity.size(owner)
