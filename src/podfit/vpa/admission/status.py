"""The Lease that tells updaters that admission controllers are there."""

import logging
import socket
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease, LeaseSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.options import DURATION, POSITIVE, Option
from podfit.core.times import format_micro

log = logging.getLogger(__name__)
NOT_FOUND, CONFLICT = 404, 409
TRIES, WAIT = 3, 0.1


class StatusLease(msgspec.Struct, frozen=True, kw_only=True):
    """Renewed every `interval` seconds."""

    name: Annotated[str, Option("By which updaters see it.", flag="status-lease-name")] = "vpa-admission-controller"
    namespace: Annotated[
        str,
        Option("Where that is.", flag="status-lease-namespace", usual="NAMESPACE of the environment, else kube-system"),
    ] = "kube-system"
    interval: Annotated[
        float, Option("How often it is renewed.", flag="status-lease-update-interval", unit=DURATION, bound=POSITIVE)
    ] = 10.0
    holder: str = msgspec.field(default_factory=socket.gethostname)


async def keep_renewed(client: Client, clock: Clock, lease: StatusLease) -> None:
    """Until cancelled. Of several controllers each renews it: who loses a race has been spoken for."""
    while True:
        for attempt in range(1, TRIES + 1):
            try:
                await _renew(client, clock, lease)
            except (ApiError, ConnectionError) as error:
                if isinstance(error, ApiError) and error.code == CONFLICT:
                    break
                log.warning(
                    "lease not renewed lease=%s/%s attempt=%d error=%s", lease.namespace, lease.name, attempt, error
                )
                await clock.sleep(WAIT)
            else:
                break
        await clock.sleep(lease.interval)


async def _renew(client: Client, clock: Clock, lease: StatusLease) -> None:
    now = format_micro(clock.now())
    fresh = LeaseSpec(holder_identity=lease.holder, lease_duration_seconds=round(lease.interval), renew_time=now)
    try:
        found = await client.get(Lease, lease.name, lease.namespace)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        meta = ObjectMeta(name=lease.name, namespace=lease.namespace)
        await client.create(Lease(metadata=meta, spec=replace(fresh, acquire_time=now)))
        return
    await client.update(replace(found, spec=replace(fresh, acquire_time=found.spec.acquire_time or now)))
