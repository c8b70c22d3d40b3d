"""Rules of leases."""

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.validation.metadata import nonnegative
from podfit.core.fields import FieldError, invalid


def validate_lease(lease: Lease) -> list[FieldError]:
    errors = []
    seconds = lease.spec.lease_duration_seconds
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + nonnegative(lease.spec.lease_transitions, "spec.leaseTransitions")
