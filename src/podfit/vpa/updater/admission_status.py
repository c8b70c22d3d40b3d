"""Whether an admission controller is alive (V-080): without one an evicted pod would come back at its old size."""

from datetime import datetime, timedelta

from podfit.api.coordination.v1.types import Lease
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.decide.autoscaling.published import AdmissionLease

TRIES, FIRST_WAIT, GROWS = 3, 0.1, 3


async def admits(client: Client, clock: Clock, lease: AdmissionLease) -> bool:
    """Raises ApiError or ConnectionError when it cannot be read, tried three times; a Lease that is not there is no."""
    wait = FIRST_WAIT
    for attempt in range(1, TRIES + 1):
        try:
            return is_fresh(await client.get(Lease, lease.name, lease.namespace), clock.now(), lease.timeout)
        except (ApiError, ConnectionError) as error:
            if isinstance(error, ApiError) and error.code == 404:
                return False
            if attempt == TRIES:
                raise
        await clock.sleep(wait)
        wait *= GROWS
    raise AssertionError("the last try returns or raises")


def is_fresh(lease: Lease, now: datetime, timeout: float) -> bool:
    times = (lease.metadata.creation_timestamp, lease.spec.renew_time)
    newest = max((parse_time(time) for time in times if time), default=None)
    return newest is not None and newest + timedelta(seconds=timeout) > now
