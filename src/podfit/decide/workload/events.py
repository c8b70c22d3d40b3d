"""An event that a decision has a controller record."""

import msgspec

NORMAL, WARNING = "Normal", "Warning"


class WorkloadEvent(msgspec.Struct, frozen=True):
    type: str
    reason: str
    message: str
