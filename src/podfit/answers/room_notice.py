"""Whether a cluster makes room for resizes (docs/room.md): read from a Lease that the controller renews."""

from datetime import datetime, timedelta

import msgspec

from podfit.answers.kinds import LEASES
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.times import parse_time

LEASE, NAMESPACE, MODE = "podfit-room", "kube-system", "podfit.dev/make-room"
PREEMPT = "preempt"


class Room(msgspec.Struct, frozen=True):
    """`mode` is "shrink" or "preempt", empty where no room is made; `problem` says why that is not known."""

    mode: str = ""
    problem: str = ""


async def read_room(client: Client, now: datetime) -> Room:
    try:
        lease = await client.get(LEASES, LEASE, NAMESPACE)
    except ApiError as error:
        return Room(problem="" if error.code == 404 else error.message)
    if not lease.spec.renew_time:
        return Room()
    lasts = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    if abs(now - parse_time(lease.spec.renew_time)) >= lasts:  # too old, or of a time to come: the clock was set back
        return Room()
    return Room(lease.metadata.annotations.get(MODE, ""))
