"""The kind of events.k8s.io, which is stored as the core group's."""

from podfit.api.core.v1.events.columns import EVENT, event_row
from podfit.api.events.v1.types import Event, from_core, to_core
from podfit.api.kinds import core
from podfit.api.meta.resource_info import Conversion, ResourceInfo

_STORED = next(info for info in core.KINDS if info.resource == "events")

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=Event,
        created_by_update=True,
        group="events.k8s.io",
        resource="events",
        singular="event",
        short_names=("ev",),
        columns=EVENT,
        row=lambda obj, now: event_row(to_core(obj), now),
        conversion=Conversion(_STORED, shown=from_core, kept=to_core),
        fields={
            "regarding.kind": lambda o: o.regarding.kind,
            "regarding.namespace": lambda o: o.regarding.namespace,
            "regarding.name": lambda o: o.regarding.name,
            "regarding.uid": lambda o: o.regarding.uid,
            "regarding.apiVersion": lambda o: o.regarding.api_version,
            "regarding.resourceVersion": lambda o: o.regarding.resource_version,
            "regarding.fieldPath": lambda o: o.regarding.field_path,
            "reason": lambda o: o.reason,
            "reportingController": lambda o: o.reporting_controller,
            "type": lambda o: o.type,
        },
    ),
)
