"""The messages in the pod manager's queue."""

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod


class Added(msgspec.Struct, frozen=True):
    pod: Pod


class Changed(msgspec.Struct, frozen=True):
    pod: Pod


class Deleted(msgspec.Struct, frozen=True):
    pod: Pod


class RetryAdmission(msgspec.Struct, frozen=True):
    """A pod that was neither admitted nor rejected is tried once more."""

    uid: str


class TryAlone(msgspec.Struct, frozen=True):
    """It is this pod's turn to be tried alone."""

    uid: str


FromApi: TypeAlias = Added | Changed | Deleted
PodChange: TypeAlias = FromApi | RetryAdmission | TryAlone


def uid_of(change: PodChange) -> str:
    return change.uid if isinstance(change, RetryAdmission | TryAlone) else change.pod.metadata.uid


def same_but_status(old: Pod, new: Pod) -> bool:
    """Whether only the status changed, which is our own doing most of the time."""
    was, now = old.metadata, new.metadata
    return old.spec == new.spec and was == replace(
        now, resource_version=was.resource_version, managed_fields=was.managed_fields
    )
