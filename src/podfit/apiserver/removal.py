"""How objects end.

Most go at once. One with finalizers is marked and waits until they are gone. A pod on a node is marked with the time by
which it must have ended; its kubelet deletes it for good when it has. A namespace waits for its contents.
"""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from podfit.api.core.namespaces import Namespace
from podfit.api.core.pods import Pod
from podfit.api.meta import DeleteOptions
from podfit.api.registry import ResourceInfo
from podfit.apiserver.context import Context
from podfit.apiserver.stored import Stored
from podfit.core.errors import conflict
from podfit.core.times import format_time
from podfit.store.protocol import Record

TERMINAL = ("Succeeded", "Failed")
DEFAULT_GRACE = 30


def check_preconditions(info: ResourceInfo, obj: Any, options: DeleteOptions) -> None:
    wanted, meta = options.preconditions, obj.metadata
    if wanted is None:
        return
    if wanted.uid is not None and wanted.uid != meta.uid:
        text = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: {meta.uid}"
        raise conflict(info.resource, meta.name, text, group=info.group)
    if wanted.resource_version is not None and wanted.resource_version != meta.resource_version:
        text = (
            f"Precondition failed: ResourceVersion in precondition: {wanted.resource_version}, "
            f"ResourceVersion in object meta: {meta.resource_version}"
        )
        raise conflict(info.resource, meta.name, text, group=info.group)


def grace_of(obj: Any, options: DeleteOptions) -> int:
    """Seconds that the object may take to end; nothing but a pod on a node needs any."""
    if not isinstance(obj, Pod) or not obj.spec.node_name or obj.status.phase in TERMINAL:
        return 0
    asked = options.grace_period_seconds
    if asked is None:
        asked = obj.spec.termination_grace_period_seconds
    return max(DEFAULT_GRACE if asked is None else asked, 0)


def marked(context: Context, obj: Any, grace: int) -> Any:
    """The object on its way out; the same object when it already has to be gone by then."""
    meta = obj.metadata
    if meta.deletion_timestamp and (meta.deletion_grace_period_seconds or 0) <= grace:
        return obj
    when = format_time(context.clock.now() + timedelta(seconds=grace))
    generation = meta.generation + (isinstance(obj, Pod) and not meta.deletion_timestamp)
    meta = replace(meta, deletion_timestamp=when, deletion_grace_period_seconds=grace, generation=generation)
    if isinstance(obj, Namespace):
        return replace(obj, metadata=replace(meta, deletion_grace_period_seconds=None),
                       status=replace(obj.status, phase="Terminating"))  # fmt: skip
    return replace(obj, metadata=meta)


def held(obj: Any) -> bool:
    """Something has to happen before the object may go."""
    return bool(obj.metadata.finalizers) or (isinstance(obj, Namespace) and bool(obj.spec.finalizers))


async def finish_if_released(context: Context, info: ResourceInfo, obj: Any, record: Record) -> None:
    """After an update: an object that was only waiting for its finalizers goes now."""
    meta = obj.metadata
    if meta.deletion_timestamp and not meta.deletion_grace_period_seconds and not held(obj):
        await Stored[Any](context.store, info).delete(meta.namespace, meta.name, expected=record.mod_revision)
