"""How objects end.

Most go at once. One with finalizers is marked and waits until they are gone. A pod on a node is marked with the time by
which it must have ended; its kubelet deletes it for good when it has. A namespace waits for its contents.
"""

from typing import Any

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import (
    CLEANUP,
    TERMINATING,
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
)
from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import DeleteOptions, ObjectMeta, Preconditions
from podfit.api.registry import ResourceInfo
from podfit.apiserver.context import Context
from podfit.core.errors import conflict
from podfit.core.times import format_time, later
from podfit.decide.workload.propagation import wanted_finalizers

_PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
TERMINAL = ("Succeeded", "Failed")
DEFAULT_GRACE = 30
SHORTEST_GRACE = 1  # seconds, which a negative number stands for
LONGEST_GRACE = 100 * 365 * 86400  # what comes after cannot be written as a time


def check_preconditions(info: ResourceInfo, obj: Any, options: DeleteOptions) -> None:
    wanted, meta = options.preconditions, obj.metadata
    if wanted is None:
        return
    if isinstance(obj, Namespace | CustomResourceDefinition):
        _check_before_contents(info, meta, wanted)
    if wanted.uid is not None and wanted.uid != meta.uid:
        text = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({meta.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(info.kind, meta.name, text, group=info.group)
    if wanted.resource_version is not None and wanted.resource_version != meta.resource_version:
        text = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the ResourceVersion "
            f"in record ({meta.resource_version}). The object might have been modified"
        )
        raise conflict(info.kind, meta.name, text, group=info.group)


def _check_before_contents(info: ResourceInfo, meta: ObjectMeta, wanted: Preconditions) -> None:
    """What takes its contents along is looked at by rules of its own, with other words."""
    for name, asked, known in (
        ("UID", wanted.uid, meta.uid),
        ("ResourceVersion", wanted.resource_version, meta.resource_version),
    ):
        if asked is not None and asked != known:
            text = f"Precondition failed: {name} in precondition: {asked}, {name} in object meta: {known}"
            raise conflict(info.resource, meta.name, text, group=info.group)


def grace_of(obj: Any, options: DeleteOptions) -> int:
    """Seconds that the object may take to end; nothing but a pod on a node needs any."""
    if not isinstance(obj, Pod) or not obj.spec.node_name or obj.status.phase in TERMINAL:
        return 0
    asked = options.grace_period_seconds
    if asked is None:
        asked = obj.spec.termination_grace_period_seconds
    if asked is None:
        asked = DEFAULT_GRACE
    return min(asked if asked >= 0 else SHORTEST_GRACE, LONGEST_GRACE)


def marked(context: Context, obj: Any, grace: int) -> Any:
    """The object on its way out; the same object when it already has to be gone by then."""
    meta = obj.metadata
    if meta.deletion_timestamp and (meta.deletion_grace_period_seconds or 0) <= grace:
        return obj
    when = format_time(later(context.clock.now(), grace))
    generation = meta.generation + (meta.generation > 0 and not meta.deletion_timestamp)
    meta = replace(meta, deletion_timestamp=when, deletion_grace_period_seconds=grace, generation=generation)
    if isinstance(obj, Namespace):
        return replace(
            obj,
            metadata=replace(meta, deletion_grace_period_seconds=None),
            status=replace(obj.status, phase="Terminating"),
        )
    return _ending(obj, meta) if isinstance(obj, CustomResourceDefinition) else replace(obj, metadata=meta)


def _ending(definition: CustomResourceDefinition, meta: Any) -> CustomResourceDefinition:
    """A definition waits for its objects, and says so."""
    meta = replace(meta, finalizers=tuple(dict.fromkeys((*meta.finalizers, CLEANUP))))
    condition = CustomResourceDefinitionCondition(
        type=TERMINATING,
        status="True",
        reason="InstanceDeletionInProgress",
        message="CustomResource deletion is in progress",
        last_transition_time=meta.deletion_timestamp,
    )
    others = [each for each in definition.status.conditions or () if each.type != TERMINATING]
    return replace(definition, metadata=meta, status=replace(definition.status, conditions=(*others, condition)))


def propagating(info: ResourceInfo, obj: Any, options: DeleteOptions) -> Any:
    """The object with the finalizers that its deletion has to wait for; the same object when nothing changes.

    Namespaces take everything in them along by themselves, and events belong to nobody.
    """
    if info.resource in ("namespaces", "events"):
        return obj
    meta = obj.metadata
    wanted = wanted_finalizers(options, meta.finalizers, default=info.propagation)
    return obj if wanted == meta.finalizers else replace(obj, metadata=replace(meta, finalizers=wanted))


def left_behind(info: ResourceInfo, options: DeleteOptions) -> tuple[str, ...]:
    """What is said to who deletes jobs without a word about their pods: those stay."""
    said = options.propagation_policy or options.orphan_dependents is not None
    return () if info.type is not Job or said else (_PODS_STAY,)


def held(obj: Any) -> bool:
    """Something has to happen before the object may go."""
    if isinstance(obj, CustomResourceDefinition) and not obj.metadata.deletion_timestamp:
        return True  # its objects go first
    return bool(obj.metadata.finalizers) or (isinstance(obj, Namespace) and bool(obj.spec.finalizers))


def released(obj: Any) -> bool:
    """Nothing keeps a deleted object any more: the write that lets go of it is its deletion."""
    meta = obj.metadata
    return bool(meta.deletion_timestamp) and not meta.deletion_grace_period_seconds and not held(obj)
