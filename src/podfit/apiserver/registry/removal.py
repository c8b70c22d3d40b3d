"""Deletion: finalizers, grace periods, and the removal of the stored object.

Most go at once. One with finalizers is marked and waits until they are gone. A pod on a node is marked with the time by
which it must have ended; its kubelet deletes it for good when it has. A namespace waits for its contents.
"""

from datetime import datetime

from msgspec.structs import replace

from podfit.api.meta.base import Object, ObjectT
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.core.errors import conflict
from podfit.core.times import format_time, seconds_later
from podfit.decide.workload.propagation import wanted_finalizers


def check_preconditions(info: ResourceInfo, obj: Object, options: DeleteOptions) -> None:
    wanted, meta = options.preconditions, obj.metadata
    if wanted is None:
        return
    strategy_of(info.type).delete.preconditions(info, meta, wanted)
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


def marked(obj: ObjectT, grace: int, now: datetime) -> ObjectT:
    """The object on its way out; the same object when it already has to be gone by then."""
    meta = obj.metadata
    if meta.deletion_timestamp and (meta.deletion_grace_period_seconds or 0) <= grace:
        return obj
    when = format_time(seconds_later(now, grace))
    generation = meta.generation + (meta.generation > 0 and not meta.deletion_timestamp)
    meta = replace(meta, deletion_timestamp=when, deletion_grace_period_seconds=grace, generation=generation)
    leaving: ObjectT = strategy_of(type(obj)).delete.mark(replace(obj, metadata=meta))
    return leaving


def propagating(info: ResourceInfo, obj: ObjectT, options: DeleteOptions) -> ObjectT:
    """The object with the finalizers that its deletion has to wait for; the same object when nothing changes."""
    if not strategy_of(info.type).delete.propagates:
        return obj
    meta = obj.metadata
    wanted = wanted_finalizers(options, meta.finalizers, default=info.propagation)
    return obj if wanted == meta.finalizers else replace(obj, metadata=replace(meta, finalizers=wanted))


def held(obj: Object) -> bool:
    """Something has to happen before the object may go."""
    return bool(obj.metadata.finalizers) or strategy_of(type(obj)).delete.held(obj)


def released(obj: Object) -> bool:
    """Nothing keeps a deleted object any more: the write that lets go of it is its deletion."""
    meta = obj.metadata
    return bool(meta.deletion_timestamp) and not meta.deletion_grace_period_seconds and not held(obj)
